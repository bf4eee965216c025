#!/usr/bin/env python3
"""Plants faults in a small tree and expects tools/check_structure.py to name each."""

import pathlib
import tempfile
import unittest

import check_structure

ONE = """
namespace a {
Server::Server(int x) : x_(x) {}
absl::StatusOr<std::vector<int>> Server::Ask(
    int x) {
  return Other::Of(x);
}
}  // namespace a
"""
TWO = "void Server::Tell() {}\n"


class CheckStructureTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()

    def write(self, name: str, text: str = "") -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_a_class_is_defined_in_one_file(self) -> None:
        self.write("services/worker/one.cc", ONE)
        self.assertEqual(check_structure.check(self.root), [])
        self.write("services/worker/two.cc", TWO)
        self.assertEqual(check_structure.check(self.root),
                         ["class services/worker Server is defined in 2 .cc files: divide it into classes"])

    def test_a_folder_without_sources_is_none_of_the_project(self) -> None:
        self.assertEqual(check_structure.check(self.root), [f"{self.root}: there are no sources"])

    def test_classes_of_one_name_in_two_folders_are_two(self) -> None:
        self.write("services/worker/one.cc", ONE)
        self.write("operator/core/two.cc", TWO)
        self.assertEqual(check_structure.check(self.root), [])

    def test_calls_are_no_definitions(self) -> None:
        self.write("services/worker/one.cc", ONE)
        self.write("services/worker/two.cc", "int Count() {\n  return Server::Count();\n}\n")
        self.assertEqual(check_structure.check(self.root), [])

    def test_a_folder_holds_few_files(self) -> None:
        for i in range(25):
            self.write(f"tests/unit/{i}.cc")
        self.write("tests/unit/below/more.cc")
        self.write("tests/unit/data.yaml")
        self.assertEqual(check_structure.check(self.root), [])
        self.write("tests/unit/more.h")
        self.assertEqual(check_structure.check(self.root),
                         ["folder tests/unit holds 26 source files, at most 25: make folders by subject"])

    def test_what_is_known_may_only_fall(self) -> None:
        self.write("tools/structure.txt", "# known\nclass services/worker Server 3\n")
        self.write("services/worker/one.cc", ONE)
        self.write("services/worker/two.cc", TWO)
        [fault] = check_structure.check(self.root)
        self.assertIn("class services/worker Server has 2 now", fault)
        self.assertEqual(check_structure.check(self.root, fix=True), [])
        self.assertEqual(check_structure.read_list(self.root), {"class services/worker Server": 2})
        self.write("services/worker/three.cc", TWO)
        [fault] = check_structure.check(self.root, fix=True)
        self.assertIn("(2 before)", fault)
        (self.root / "services/worker/two.cc").unlink()
        (self.root / "services/worker/three.cc").unlink()
        check_structure.check(self.root, fix=True)
        self.assertEqual(check_structure.read_list(self.root), {})


if __name__ == "__main__":
    unittest.main()

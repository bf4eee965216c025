#!/usr/bin/env python3
"""Plants lists in a small tree and expects tools/check_cmake.py to name those out of order, and to put them right."""

import pathlib
import tempfile
import unittest

import check_cmake


class CheckCmakeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "services").mkdir()
        self.file = self.root / "services" / "CMakeLists.txt"
        (self.root / "CMakeLists.txt").write_text("add_subdirectory(services)\n")

    def fixed(self, text):
        self.file.write_text(text)
        check_cmake.check(self.root, fix=True)
        self.assertEqual(check_cmake.check(self.root), [])
        return self.file.read_text()

    def test_a_list_in_order_stays(self):
        text = "adamant_library(a\n  SRCS a.cc b/a.cc c.cc\n  HDRS a.h b/a.h\n  DEPS z a\n  ALONE a.cc c.cc)\n"
        self.assertEqual(self.fixed(text), text)

    def test_files_out_of_order_are_a_fault(self):
        self.file.write_text("adamant_library(a\n  SRCS b.cc a.cc\n  DEPS c)\n")
        [fault] = check_cmake.check(self.root)
        self.assertEqual(fault, "services/CMakeLists.txt:2: here belongs 'SRCS a.cc b.cc': run tools/check_cmake.py --fix")
        self.assertEqual(self.fixed(self.file.read_text()), "adamant_library(a\n  SRCS a.cc b.cc\n  DEPS c)\n")

    def test_a_long_list_has_a_line_for_each_file(self):
        names = [f"a_name_that_is_long_{i}.cc" for i in range(6)]
        text = "adamant_test(a\n  SRCS " + " ".join(names[3:]) + "\n       " + " ".join(names[:3]) + ")\n"
        self.assertEqual(self.fixed(text), "adamant_test(a\n  SRCS\n    " + "\n    ".join(names) + ")\n")

    def test_other_words_keep_their_order(self):
        text = "adamant_test(a\n  SRCS a.cc\n  DEPS b a\n  LABELS unit threads)\n"
        self.assertEqual(self.fixed(text), text)

    def test_folders_that_follow_each_other(self):
        self.assertEqual(self.fixed("add_subdirectory(b)\nadd_subdirectory(a)\n\n# C.\nadd_subdirectory(c)\nset(d)\nadd_subdirectory(a)\n"),
                         "add_subdirectory(a)\nadd_subdirectory(b)\n\n# C.\nadd_subdirectory(c)\nset(d)\nadd_subdirectory(a)\n")

    def test_names_of_a_loop(self):
        self.assertEqual(self.fixed("  foreach(name b a)\n"), "  foreach(name a b)\n")
        self.assertEqual(self.fixed("foreach(name IN LISTS b a)\n"), "foreach(name IN LISTS b a)\n")
        names = [f"name_{i:02}" for i in range(20)]
        wrapped = self.fixed("foreach(name " + " ".join(reversed(names)) + ")\n")
        self.assertEqual(wrapped.split(), f"foreach(name {' '.join(names)})".split())
        self.assertLessEqual(max(map(len, wrapped.splitlines())), check_cmake.WIDTH)


if __name__ == "__main__":
    unittest.main()

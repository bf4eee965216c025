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
METHODS = """
namespace a::b {
int Free(int x);
template <class T>
class Server final : public Base<T()>, Other {
 public:
  explicit Server(int x, std::function<void()> f = {}) : x_{x}, y_(f), z_{1} { Call(); }
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  bool operator()(int x) const { return x < 1; }
  auto operator<=>(const Server&) const = default;
  explicit operator bool() const;
  [[nodiscard]] std::map<int, std::string> all() const ABSL_LOCKS_EXCLUDED(mutex_) { return {}; }
  template <class... T, int kSize = (1 + 2)>
  void Add(T&&... values);
  void Ask(int (*answer)(int), char brace = '{', const char* text = "}{");  // void No();
  virtual std::vector<std::pair<int, int>> Tell() = 0;
 private:
  struct Options {
    Options();
    int x = Free(1);
  };
  class View;
  enum class Kind { kOne };
  static constexpr auto Of(Kind kind) -> int { if (true) { Call(); } return 1; }
  void Last();
};
class ABSL_SCOPED_LOCKABLE Server::View {
  void Show();
};
struct Server::Later : Other { void Go(); };
}
"""
NO_METHODS = """
#define ADAMANT_CALL(x) \\
  x Call();
extern "C" {
int Free(int x);
}
namespace a {
class Server {
  friend class Other;
  friend bool operator==(const Server&, const Server&) = default;
  using Call = std::function<void(int)>;
  static_assert(sizeof(int) == 4);
  enum class Kind : std::uint8_t { kOne = Of(1), kTwo };
  // void No();
  /* void No(); */
  std::function<void(const std::vector<int>&)> send_ = [](auto) { Call(); };
  std::map<int, std::function<int()>> map_ ABSL_GUARDED_BY(mutex_){};
  int count_ ABSL_GUARDED_BY(mutex_) = Free(1);
  alignas(64) std::atomic<int> atomic_{Free(1)};
  decltype(Free(1)) other_;
  void (*pointer_)(int) = nullptr;
  struct {
    int x;
  } unnamed_[2];
};
inline void Free() { struct Local { int x; }; Server server; }
}
"""


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

    def test_a_class_of_tests_is_defined_in_one_file_too(self) -> None:
        self.write("tests/simulation/one.cc", ONE)
        self.write("tests/simulation/two.cc", TWO)
        self.assertEqual(check_structure.check(self.root),
                         ["class tests/simulation Server is defined in 2 .cc files: divide it into classes"])

    def test_a_file_has_few_lines(self) -> None:
        self.write("tests/unit/one.cc", "\n" * 500)
        self.write("services/worker/data.yaml", "\n" * 501)
        self.assertEqual(check_structure.check(self.root), [])
        self.write("tests/unit/one.cc", "\n" * 501)
        self.assertEqual(check_structure.check(self.root),
                         ["file tests/unit/one.cc has 501 lines, at most 500: divide it by subject"])

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

    def test_a_class_declares_few_methods(self) -> None:
        many = "".join(f"  void Do{i}(int x);\n" for i in range(30))
        self.write("services/worker/server.h", "namespace a {\nclass Server {\n" + many + "};\n}\n")
        self.assertEqual(check_structure.check(self.root), [])
        many += " private:\n  Server() = default;\n"
        self.write("services/worker/server.h", "namespace a {\nclass Server {\n" + many + "};\n}\n")
        self.assertEqual(check_structure.check(self.root),
                         ["methods services/worker Server are 31, at most 30: divide the class into classes"])
        self.write("tools/structure.txt", "methods services/worker Server 31\n")
        self.assertEqual(check_structure.check(self.root), [])

    def test_a_function_has_few_lines(self) -> None:
        begin = "namespace a {\nstd::vector<int> Server::Ask(int x,\n    int y) const {\n"
        body = "  call([&](int z) { return z; });  // {\n" * 57
        self.write("services/worker/one.cc", begin + body + "}\nint Next() { return 1; }\n}\n")
        self.assertEqual(check_structure.check(self.root), [])
        self.write("services/worker/one.cc", begin + body + "\n}\nint Next() { return 1; }\n}\n")
        self.assertEqual(check_structure.check(self.root),
                         ["function services/worker/one.cc Server::Ask has 61 lines, at most 60: divide it"])
        self.write("services/worker/one.cc", "const std::map<int, int> kMap = {\n" + "  {Of(1), 2},\n" * 70 + "};\n")
        self.assertEqual(check_structure.check(self.root), [])
        self.write("services/worker/one.h", "class A {\n  A() : x_{1} {\n" + body + "\n\n  }\n};\n")
        self.assertEqual(check_structure.check(self.root),
                         ["function services/worker/one.h A has 61 lines, at most 60: divide it"])

    def test_what_a_class_declares_is_counted(self) -> None:
        counts = self.count(METHODS)
        self.assertEqual(counts, {"Server": 13, "Server::Options": 1, "Server::View": 1, "Server::Later": 1})

    def test_what_is_no_method_is_not_counted(self) -> None:
        self.assertEqual(self.count(NO_METHODS), {})

    def count(self, text: str) -> dict[str, int]:
        self.write("operator/core/server.h", text)
        prefix = "methods operator/core "
        return {key.removeprefix(prefix): count for key, count in check_structure.methods(self.root).items() if count}

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

    def test_what_is_known_keeps_its_reason(self) -> None:
        self.write("tools/structure.txt", "# known\nclass services/worker Server 3  # a reason\n")
        self.write("services/worker/one.cc", ONE)
        self.write("services/worker/two.cc", TWO)
        self.assertEqual(check_structure.check(self.root, fix=True), [])
        self.assertTrue((self.root / "tools/structure.txt").read_text().endswith("\nclass services/worker Server 2  # a reason\n"))


if __name__ == "__main__":
    unittest.main()

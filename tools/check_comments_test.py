#!/usr/bin/env python3
"""Plants comments in a small tree and expects tools/check_comments.py to name those that are wrong."""

import pathlib
import tempfile
import unittest

import check_comments


class CheckCommentsTest(unittest.TestCase):
    def faults(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
            return check_comments.check(pathlib.Path(folder))[1]

    def test_a_clause_at_the_beginning_is_a_fault(self):
        for text in ("/// Whether it is.\nbool Is();\n", "  ///What it has.\n  int x;\n", "int x = 0;  ///< when it came\n",
                     "int x = 0;  ///< When it came\n"):
            with self.subTest(text):
                expected = 0 if "when" in text else 1
                self.assertEqual(len(self.faults("services/a.h", text)), expected)

    def test_what_stands_within_a_comment_is_free(self):
        self.assertEqual(self.faults("services/a.h", "/// Returns whether it is, and\n/// What it was.\nbool Is();\n"), [])
        self.assertEqual(self.faults("services/a.h", "/// Whatever comes.\nint x;\n"), [])
        self.assertEqual(self.faults("services/a.cc", "/// Whether it is.\n"), [])

    def test_an_empty_comment_is_a_fault(self):
        for line in ("  kReplica,  ///", "  int x;  ///<", "///", "  /// "):
            with self.subTest(line):
                self.assertIn("services/a.h:2: ", self.faults("services/a.h", "enum E {\n" + line + "\n};\n")[0])
        self.assertEqual(self.faults("services/a.h", "/// One thing.\n///\n/// Another.\nint x;\n"), [])

    def test_a_fault_names_its_line(self):
        self.assertIn("operator/a.h:3: ", self.faults("operator/a.h", "\n\n/// Who waits.\nint x;\n")[0])

    def test_fields_and_values_have_comments(self):
        good = "message M {\n  uint32 a = 1;  // seconds\n  // Bytes.\n  repeated p.B b = 2;\n  enum E {\n    X = 0;  // none\n  }\n}\n"
        self.assertEqual(self.faults("proto/a.proto", good), [])
        for line in ("  uint32 a = 1;", "  map<string, uint32> a = 12;", "    X = 0;", "  optional bool a = 3 [deprecated = true];"):
            with self.subTest(line):
                self.assertIn("proto/a.proto:2: ", self.faults("proto/a.proto", "message M {\n" + line + "\n}\n")[0])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Plants retired words in a small tree and expects tools/check_words.py to name each."""

import pathlib
import tempfile
import unittest

import check_words


class CheckWordsTest(unittest.TestCase):
    def faults(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
            return check_words.check(pathlib.Path(folder))[1]

    def test_parts_of_identifiers_count(self):
        for line in ("bool HasHeirs();", "int next_heir_ = 0;", "class WorkDealerTest {};", "kLeadOut,", "LeadOut lead;"):
            with self.subTest(line):
                found = self.faults("services/a.h", "\n" + line + "\n")
                self.assertEqual(len(found), 1, found)
                self.assertIn("services/a.h:2: ", found[0])

    def test_other_words_that_contain_one_do_not(self):
        self.assertEqual(self.faults("services/a.h", "int their = threshold + ordealer;\nauto s = \"heir\";\n"), [])

    def test_comments_and_pages_count(self):
        self.assertEqual(len(self.faults("services/a.h", "// The heir.\n")), 1)
        self.assertEqual(len(self.faults("docs/a.md", "The \"heir\".\n")), 1)
        self.assertEqual(self.faults("docs/glossary.md", "| successor | heir |\n"), [])

    def test_tools_count(self):
        self.assertEqual(len(self.faults("tools/a.py", "roster = 1\n")), 1)
        self.assertEqual(len(self.faults("tools/a", "# The roster.\n")), 1)
        self.assertEqual(self.faults("tools/__pycache__/a.pyc", "roster"), [])

    def test_file_names_count(self):
        self.assertEqual(len(self.faults("operator/core/roster.h", "")), 1)

    def test_an_exception_is_of_one_word_and_place(self):
        self.assertEqual(self.faults("services/common/codec/buckets.cc", "message.heir();"), [])
        self.assertEqual(len(self.faults("services/common/codec/buckets.cc", "int roster;")), 1)
        self.assertEqual(len(self.faults("services/common/codec/control.cc", "message.heir();")), 1)


if __name__ == "__main__":
    unittest.main()

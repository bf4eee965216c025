#!/usr/bin/env python3
"""Plants faults in a small tree and expects tools/check_docs.py to name each."""

import pathlib
import tempfile
import unittest

import check_docs


class CheckDocsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("services/worker/a.h", "services/worker/a.cc", "tools/b.py"):
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        (self.root / "docs").mkdir()
        (self.root / "docs" / "other.md").write_text("# A page\n\n## Words, `code` and [links](other.md)\n")

    def faults(self, text: str, name: str = "docs/page.md") -> list[str]:
        (self.root / name).write_text(text)
        return check_docs.check(self.root)

    def test_what_is_there_may_be_named(self) -> None:
        self.assertEqual(self.faults("# Page\n[a](other.md#words-code-and-links) [b](#page) [c](../tools/b.py)\n"
                                     "[d](https://nowhere.test/x) `services/worker/a.{h,cc}` `services/worker/`, "
                                     "`services/worker/a`, `tools/b --flag`\n```\n[e](gone.md) `tools/gone`\n```\n"), [])

    def test_a_folder_without_pages_is_none_of_the_project(self) -> None:
        self.assertEqual(check_docs.check(self.root / "services"), [f"{self.root / 'services'}: there are no pages"])

    def test_links_lead_somewhere(self) -> None:
        self.assertEqual(self.faults("[a](gone.md)\n[b](other.md#gone)\n[c](#gone)\n"),
                         ["docs/page.md:1: gone.md: there is no such file",
                          "docs/page.md:2: other.md#gone: there is no such heading",
                          "docs/page.md:3: #gone: there is no such heading"])

    def test_repeated_headings_are_numbered(self) -> None:
        self.assertEqual(self.faults("# A\n# A\n# A\n[a](#a-2)\n"), [])
        self.assertEqual(len(self.faults("# A\n# A\n[a](#a-2)\n")), 1)

    def test_files_that_are_named_are_there(self) -> None:
        self.assertEqual(self.faults("in `services/worker/{a,gone}.cc`\n"),
                         ["docs/page.md:1: `services/worker/gone.cc` is not there"])

    def test_lines_are_short(self) -> None:
        self.assertEqual(self.faults("x" * 125 + "\n|" + "x" * 199 + "\n"), [])
        self.assertEqual(self.faults("x" * 126 + "\n|" + "x" * 200 + "\n"),
                         ["docs/page.md:1: 126 columns, at most 125", "docs/page.md:2: 201 columns, at most 200"])

    def test_rows_that_programs_write_may_be_long(self) -> None:
        self.assertEqual(self.faults("|" + "x" * 300 + "\n", "docs/metrics.md"), [])
        self.assertEqual(len(self.faults("x" * 300 + "\n", "docs/metrics.md")), 1)


if __name__ == "__main__":
    unittest.main()

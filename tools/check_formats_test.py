#!/usr/bin/env python3
"""Plants format versions in a small tree and expects tools/check_formats.py to name those that the page lacks."""

import pathlib
import tempfile
import unittest

import check_formats


class CheckFormatsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("services/a.cc", "constexpr std::uint32_t kFormatVersion = 2;\n")
        self.write("operator/b.h", "inline constexpr std::uint64_t kStateFormatVersion = 17;\n")
        self.write("operator/c.cc", 'constexpr std::string_view kMarkFormatVersion = "1 ";\n')
        self.rows = ["| shard | `kFormatVersion` | `services/a.cc` | 2 |",
                     "| state | `kStateFormatVersion` | `operator/b.h` | 17 |",
                     "| mark | `kMarkFormatVersion` | `operator/c.cc` | 1 |"]

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def faults(self, rows):
        self.write(check_formats.PAGE, "# Formats\n\n| what | constant | file | version |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
        return check_formats.check(self.root)

    def test_a_complete_page_has_no_faults(self):
        self.assertEqual(self.faults(self.rows), [])

    def test_a_version_without_a_row(self):
        self.assertEqual(self.faults(self.rows[1:]), ["docs/formats.md: services/a.cc has kFormatVersion 2, which has no row"])

    def test_a_row_without_a_version(self):
        self.write("services/a.cc", "")
        self.assertEqual(self.faults(self.rows), ["docs/formats.md: services/a.cc has no kFormatVersion"])

    def test_a_version_that_was_raised(self):
        self.write("operator/b.h", "inline constexpr std::uint64_t kStateFormatVersion = 18;\n")
        self.assertEqual(self.faults(self.rows), ["docs/formats.md: kStateFormatVersion of operator/b.h is 18, not 17"])

    def test_a_tree_without_versions(self):
        for path in ("services/a.cc", "operator/b.h", "operator/c.cc"):
            self.write(path, "")
        self.assertEqual(self.faults([]), [f"{self.root}: there are no format versions"])


if __name__ == "__main__":
    unittest.main()

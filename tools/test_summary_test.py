#!/usr/bin/env python3
"""Feeds tools/test_summary.py what ctest writes and checks the counts."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

import test_summary
from test_summary import Counts

SKIPPING = """
import sys, unittest

@unittest.skip("needs root")
class Whole(unittest.TestCase):
    def test_a(self): pass

class Some(unittest.TestCase):
    def test_b(self):
        print("said before", file=sys.stderr)
        self.skipTest("no 'disk' here")
    def test_c(self):
        """ + '"""A line of documentation."""' + """
        self.skipTest("x")
    def test_d(self):
        for i in (1, 2):
            with self.subTest(i=i):
                self.skipTest("x")
    def test_e(self): pass

class Unset(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("x")
    def test_f(self): pass

unittest.main()
"""


def case(status: str, output: str, name: str = "") -> xml.etree.ElementTree.Element:
    element = xml.etree.ElementTree.Element("testcase", status=status, name=name)
    xml.etree.ElementTree.SubElement(element, "system-out").text = output
    return element


def output_of(*arguments: str) -> str:
    """What a unittest program prints that skips in every way there is."""
    return subprocess.run([sys.executable, "-c", SKIPPING, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=True).stdout


class CountTest(unittest.TestCase):
    def test_googletest_program_counts_its_cases(self):
        self.assertEqual(test_summary.count(case("run", "…\n[  PASSED  ] 12 tests.\n")), Counts(12, 0))

    def test_unittest_program_counts_its_cases(self):
        self.assertEqual(test_summary.count(case("run", "....\nRan 4 tests in 0.01s\n\nOK\n")), Counts(4, 0))

    def test_other_program_counts_once(self):
        self.assertEqual(test_summary.count(case("run", "layers: 7 files, 0 faults\n")), Counts(1, 0))

    def test_failed_cases_are_counted(self):
        output = "[  PASSED  ] 3 tests.\n[  FAILED  ] 2 tests, listed below:\n"
        self.assertEqual(test_summary.count(case("fail", output)), Counts(3, 2))

    def test_crash_counts_as_a_failure(self):
        self.assertEqual(test_summary.count(case("fail", "[ RUN      ] A.B\nSegmentation fault\n")), Counts(0, 1))

    def test_failure_after_all_cases_passed_counts(self):
        self.assertEqual(test_summary.count(case("fail", "[  PASSED  ] 3 tests.\nleak\n")), Counts(3, 1))

    def test_program_that_never_ran_counts_as_a_failure(self):
        self.assertEqual(test_summary.count(case("notrun", "")), Counts(0, 1))

    def test_skipped_cases_of_googletest_are_named_and_not_passed(self):
        output = ("[  SKIPPED ] A.B (0 ms)\n[  PASSED  ] 0 tests.\n[  SKIPPED ] 2 tests, listed below:\n"
                  "[  SKIPPED ] A.B\n[  SKIPPED ] C/D.E/1\n")
        self.assertEqual(test_summary.count(case("run", output)), Counts(0, 0, ["A.B", "C/D.E/1"]))

    def test_skipped_cases_of_unittest_are_named_and_not_passed(self):
        self.assertEqual(test_summary.count(case("run", output_of("-v"))),
                         Counts(1, 0, ["Some.test_b", "Some.test_c", "Some.test_d", "Unset", "Whole.test_a"]))

    def test_skips_that_unittest_does_not_name_are_counted(self):
        self.assertEqual(test_summary.count(case("run", "s..\nRan 3 tests in 0.01s\n\nOK (skipped=1)\n")),
                         Counts(2, 0, ["?"]))

    def test_program_that_says_that_it_skips_is_neither_passed_nor_failed(self):
        element = case("notrun", "needs root\n")
        xml.etree.ElementTree.SubElement(element, "skipped", message="SKIP_RETURN_CODE=77")
        self.assertEqual(test_summary.count(element), Counts(0, 0, ["*"]))

    def test_program_that_is_missing_counts_as_a_failure(self):
        element = case("notrun", "")
        xml.etree.ElementTree.SubElement(element, "skipped", message="Unable to find executable")
        self.assertEqual(test_summary.count(element), Counts(0, 1))


class SummaryTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        suite = xml.etree.ElementTree.Element("testsuite")
        suite.append(case("run", output_of("-v"), name="disk_test"))
        xml.etree.ElementTree.ElementTree(suite).write(self.folder / "release.xml")

    def summary(self, allowed: str | None) -> tuple[int, str]:
        arguments = [str(self.folder / "release.xml")]
        if allowed is not None:
            (self.folder / "allowed").write_text(allowed)
            arguments = ["--allowed-skips", str(self.folder / "allowed"), *arguments]
        with unittest.mock.patch.object(sys, "argv", ["test_summary.py", *arguments]), \
                contextlib.redirect_stdout(io.StringIO()) as output:
            return test_summary.main(), output.getvalue()

    def test_skipped_ones_are_named_and_fail_nothing_by_themselves(self):
        code, output = self.summary(None)
        self.assertEqual(code, 0)
        self.assertIn("skipped: release/disk_test/Some.test_b\n", output)
        self.assertTrue(output.endswith("1 passed, 0 failed, 5 skipped\n"), output)

    def test_only_what_is_allowed_may_skip(self):
        code, output = self.summary("release/disk_test/Some.*  # no disks\n*/disk_test/Unset # x\n")
        self.assertEqual(code, 1)
        self.assertIn("skipped: release/disk_test/Whole.test_a: not allowed by ", output)
        self.assertEqual(output.count("not allowed"), 1)
        self.assertEqual(self.summary("# all\n*/disk_test/*  # no disks\n")[0], 0)
        self.assertEqual(self.summary("asan/disk_test/*  # no disks\n")[0], 1)

    def test_what_is_allowed_has_a_reason(self):
        with self.assertRaisesRegex(SystemExit, r"allowed:2: say after a # why \*/disk_test/\* may skip"):
            self.summary("\n*/disk_test/*\n")

    def test_the_list_of_the_project_has_reasons(self):
        self.assertTrue(test_summary.read_allowed(pathlib.Path(__file__).with_name("allowed_skips.txt")))


if __name__ == "__main__":
    unittest.main()

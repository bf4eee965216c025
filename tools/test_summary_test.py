#!/usr/bin/env python3
"""Feeds tools/test_summary.py what ctest writes and checks the counts."""

import unittest
import xml.etree.ElementTree

import test_summary


def case(status: str, output: str) -> xml.etree.ElementTree.Element:
    element = xml.etree.ElementTree.Element("testcase", status=status)
    xml.etree.ElementTree.SubElement(element, "system-out").text = output
    return element


class CountTest(unittest.TestCase):
    def test_googletest_program_counts_its_cases(self):
        self.assertEqual(test_summary.count(case("run", "…\n[  PASSED  ] 12 tests.\n")), (12, 0))

    def test_unittest_program_counts_its_cases(self):
        self.assertEqual(test_summary.count(case("run", "....\nRan 4 tests in 0.01s\n\nOK\n")), (4, 0))

    def test_other_program_counts_once(self):
        self.assertEqual(test_summary.count(case("run", "layers: 7 files, 0 faults\n")), (1, 0))

    def test_failed_cases_are_counted(self):
        output = "[  PASSED  ] 3 tests.\n[  FAILED  ] 2 tests, listed below:\n"
        self.assertEqual(test_summary.count(case("fail", output)), (3, 2))

    def test_crash_counts_as_a_failure(self):
        self.assertEqual(test_summary.count(case("fail", "[ RUN      ] A.B\nSegmentation fault\n")), (0, 1))

    def test_failure_after_all_cases_passed_counts(self):
        self.assertEqual(test_summary.count(case("fail", "[  PASSED  ] 3 tests.\nleak\n")), (3, 1))

    def test_program_that_never_ran_counts_as_a_failure(self):
        self.assertEqual(test_summary.count(case("notrun", "")), (0, 1))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Adds up the test cases of several ctest runs: "N passed, N failed".

usage: tools/test_summary.py JUNIT_FILE...      exit code 1 if a test failed or none ran

ctest counts programs. A GoogleTest or unittest program says in its output how many cases it ran; those are counted. A
program that ends badly counts at least one failure, whatever it printed.
"""

import re
import sys
import xml.etree.ElementTree

PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)


def number(pattern: re.Pattern, text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def count(case: xml.etree.ElementTree.Element) -> tuple[int, int]:
    """The cases that passed and failed in one program."""
    output = case.findtext("system-out") or ""
    passed = number(PASSED, output)
    if case.get("status") == "run":
        return passed or number(UNITTEST, output) or 1, 0
    return passed, number(FAILED, output) or 1


def main() -> int:
    passed = failed = 0
    for path in sys.argv[1:]:
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            more_passed, more_failed = count(case)
            passed += more_passed
            failed += more_failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

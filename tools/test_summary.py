#!/usr/bin/env python3
"""Adds up the test cases of several ctest runs: "N passed, N failed, N skipped", and names those that were skipped.

usage: tools/test_summary.py [--allowed-skips FILE] JUNIT_FILE...
exit code 1 if a test failed, none ran, or one skipped that no line of FILE allows

ctest counts programs. A GoogleTest or unittest program (with -v) says in its output which cases it ran; those are
counted. A program that ends badly counts at least one failure, whatever it printed. A line of FILE is a pattern, as of
file names, for RUN/PROGRAM/CASE, and after a # why that may skip: RUN is the JUnit file's name without .xml.
"""

import argparse
import dataclasses
import fnmatch
import pathlib
import re
import sys
import xml.etree.ElementTree

PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below", re.MULTILINE)
SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+)$", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
UNITTEST_SKIPPED = re.compile(r"^(?:OK|FAILED) \(.*\bskipped=(\d+)", re.MULTILINE)
UNITTEST_CASE = re.compile(r"^\s*(test\w+|setUpClass|setUpModule) \((?:__main__\.)?([\w.]+)\)", re.MULTILINE)
UNITTEST_SKIP = re.compile(r"(?:^|\s)skipped (['\"]).*\1$")
WHOLE = "*"  # stands for all cases of a program


@dataclasses.dataclass
class Counts:
    """What became of the cases of one program."""
    passed: int = 0
    failed: int = 0
    skipped: list[str] = dataclasses.field(default_factory=list)  # names, as of "Class.test"


def number(pattern: re.Pattern, text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def unittest_skips(output: str) -> list[str]:
    """Names of what unittest skipped; "?" for each that it counts without naming it, as without -v."""
    names, case, told = [], "?", 0
    for line in output.splitlines():
        if found := UNITTEST_CASE.match(line):
            case = found[2]
        if UNITTEST_SKIP.search(line):
            told += 1
            if case not in names:
                names.append(case)
    return names + ["?"] * (number(UNITTEST_SKIPPED, output) - told)


def count_unittest(output: str) -> Counts:
    skipped = unittest_skips(output)
    single = [name for name in skipped if "." in name or name == "?"]  # a whole class is not among those that ran
    return Counts(max(0, number(UNITTEST, output) - len(single)), 0, skipped)


def count(case: xml.etree.ElementTree.Element) -> Counts:
    """The cases of one program."""
    output = case.findtext("system-out") or ""
    reason = case.find("skipped")
    if reason is not None and reason.get("message", "").startswith("SKIP_"):
        return Counts(skipped=[WHOLE])
    googletest = Counts(number(PASSED, output), 0, SKIPPED.findall(output))
    if case.get("status") != "run":
        return Counts(googletest.passed, number(FAILED, output) or 1, googletest.skipped)
    if PASSED.search(output):
        return googletest
    return count_unittest(output) if UNITTEST.search(output) else Counts(passed=1)


def read_allowed(path: str) -> list[str]:
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    patterns = []
    for number_, line in enumerate(lines, start=1):
        pattern, _, reason = line.partition("#")
        if pattern.strip():
            if not reason.strip():
                raise SystemExit(f"{path}:{number_}: say after a # why {pattern.strip()} may skip")
            patterns.append(pattern.strip())
    return patterns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allowed-skips", metavar="FILE")
    parser.add_argument("junit_file", nargs="+")
    arguments = parser.parse_args()
    allowed = read_allowed(arguments.allowed_skips) if arguments.allowed_skips else ["*"]
    total, refused = Counts(), 0
    for path in map(pathlib.Path, arguments.junit_file):
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            counts = count(case)
            total.passed += counts.passed
            total.failed += counts.failed
            for name in counts.skipped:
                total.skipped.append(f"{path.stem}/{case.get('name')}/{name}")
    for name in total.skipped:
        may = any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
        refused += not may
        print(f"skipped: {name}" + ("" if may else f": not allowed by {arguments.allowed_skips}"))
    print(f"{total.passed} passed, {total.failed} failed, {len(total.skipped)} skipped")
    return 1 if total.failed or refused or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())

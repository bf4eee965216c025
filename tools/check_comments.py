#!/usr/bin/env python3
"""Checks how what is declared is commented. A comment of a header (`///`) begins with a verb where it is a function's, and
with a noun where it is a type's or a member's; not with a clause ("Whether …", "What …"), and says something. Each field of
the protocol and each value of its enumerations has a comment, at its end or above it; *_UNSPECIFIED says it itself.

usage: tools/check_comments.py [ROOT]      exit code 1 if there are faults
"""

import pathlib
import re
import sys

HEADERS = ("services", "operator")
CLAUSE = re.compile(r"(How|That|Those|What|When|Where|Whether|Which|Who|Whose|Why)\b")
BLOCK = re.compile(r"\s*///(?!<)\s*(.*)")
TRAILING = re.compile(r"\S.*///<\s*(.*)")
EMPTY = re.compile(r".*\S.*///<?\s*")
MEMBER = re.compile(r"\s*(?:(?:map<[^>]*>|(?:optional |repeated )?[\w.]+)\s+)?\w+ = \d+\s*(?:\[.*\])?;")
UNSPECIFIED = re.compile(r"\s*\w+_UNSPECIFIED = 0;")


def faults_of_header(path: str, text: str) -> list[str]:
    faults = []
    continued = False
    for number, line in enumerate(text.split("\n"), 1):
        block = BLOCK.match(line)
        comment = None if block and continued else block or TRAILING.search(line)
        begins = block and not continued
        continued = bool(block)
        if EMPTY.fullmatch(line) or begins and not block.group(1):
            faults.append(f"{path}:{number}: has an empty comment: say what it is, or leave the slashes out")
        if comment and (clause := CLAUSE.match(comment.group(1))):
            faults.append(f"{path}:{number}: begins with \"{clause.group()}\": a function's comment begins with a verb "
                          "(\"Returns whether …\"), another's with a noun")
    return faults


def faults_of_proto(path: str, text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{path}:{number}: has no comment: what it is, its unit, its range"
            for number, (above, line) in enumerate(zip(["", *lines], lines), 1)
            if MEMBER.match(line) and not UNSPECIFIED.match(line) and "//" not in line and not above.lstrip().startswith("//")]


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    headers = [file for folder in HEADERS for file in sorted((root / folder).rglob("*.h"))]
    protos = sorted((root / "proto").rglob("*.proto"))
    faults = []
    for files, faults_of in ((headers, faults_of_header), (protos, faults_of_proto)):
        for file in files:
            faults += faults_of(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
    return len(headers) + len(protos), faults


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    count, faults = check(root)
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"comments: {count} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

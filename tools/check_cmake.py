#!/usr/bin/env python3
"""Checks that lists in CMakeLists.txt are in the order of the alphabet: the files of SRCS, HDRS and ALONE, the folders of
add_subdirectory lines that follow each other, and the names of a foreach.

Such a list is of one line, or of one line a file: two branches that add a file each seldom touch the same line.

usage: tools/check_cmake.py [--fix] [ROOT]    exit code 1 if there are faults; --fix writes the lists as they should be
"""

import argparse
import pathlib
import re
import sys

WIDTH = 120
FILES = re.compile(r"^(?P<indent> *)(?P<word>SRCS|HDRS|ALONE)(?P<items>(?:\s+[\w./-]+\.(?:cc|h)\b)+)", re.MULTILINE)
FOLDERS = re.compile(r"(?:^add_subdirectory\([\w./]+\)\n)+", re.MULTILINE)
LOOP = re.compile(r"^(?P<indent> *)(?P<word>foreach\(\w+)(?P<items>(?:\s+(?!IN\b)[\w-]+)+)\)", re.MULTILINE)


def files(match: re.Match) -> str:
    items = sorted(match["items"].split())
    line = " ".join([match["indent"] + match["word"], *items])
    return line if len(line) <= WIDTH else f"\n{match['indent']}  ".join([match["indent"] + match["word"], *items])


def folders(match: re.Match) -> str:
    return "".join(sorted(match[0].splitlines(keepends=True)))


def loop(match: re.Match) -> str:
    lines = [match["indent"] + match["word"]]
    for item in sorted(match["items"].split()):
        if len(lines[-1]) + len(item) > WIDTH - 2:
            lines.append(match["indent"] + "       ")
        lines[-1] += " " + item
    return "\n".join(lines) + ")"


def in_order(text: str) -> str:
    for pattern, ordered in ((FILES, files), (FOLDERS, folders), (LOOP, loop)):
        text = pattern.sub(ordered, text)
    return text


def lists(root: pathlib.Path) -> list[pathlib.Path]:
    tops = (root / top for top in ("operator", "proto", "services", "tests"))
    return [root / "CMakeLists.txt", *(path for top in tops for path in sorted(top.rglob("CMakeLists.txt")))]


def check(root: pathlib.Path, fix: bool = False) -> list[str]:
    faults = []
    for path in lists(root):
        text = path.read_text()
        ordered = in_order(text)
        if ordered == text:
            continue
        if fix:
            path.write_text(ordered)
            continue
        pairs = enumerate(zip(text.splitlines(), ordered.splitlines()), 1)
        number, (_, expected) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
        faults.append(f"{path.relative_to(root)}:{number}: here belongs '{expected.strip()}': run tools/check_cmake.py --fix")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    faults = check(arguments.root, arguments.fix)
    for fault in faults:
        print(fault)
    print(f"cmake: {len(lists(arguments.root))} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

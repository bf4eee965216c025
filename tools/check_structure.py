#!/usr/bin/env python3
"""Checks that a class is defined in one .cc, and that no folder holds more than 25 source files: limits of size are met by
dividing what a class does among classes, not by slicing its text.

usage: tools/check_structure.py [--fix] [ROOT]    exit code 1 if there are faults

What was so before there was this check stands in tools/structure.txt, with how many files it has. These numbers may only
fall: --fix writes lower ones, and takes out what has none any more.
"""

import argparse
import collections
import pathlib
import re
import sys

LIST = "tools/structure.txt"
HEADER = """\
# What check_structure.py does not allow, and what was there before it: with how many .cc a class, or files a folder, has.
# Numbers may only fall (tools/check_structure.py --fix).
"""
MOST_FILES = 25
PRODUCT = ("services", "operator")
ALL = (*PRODUCT, "tests")
# The definition of a member at the beginning of a line: `Type Class::Member(`.
MEMBER = re.compile(r'^(?!\s|//|#|return|static_assert|using|namespace)(?:[\w:<>,&*\s\[\]"]+?[\s&*])?'
                    r"([A-Z]\w*)::(?:[A-Z]\w*::)*(?:~?\w+|operator[^\s(]+)\(", re.MULTILINE)


def sources(root: pathlib.Path, tops: tuple[str, ...]) -> list[pathlib.Path]:
    return [path for top in tops for path in sorted((root / top).rglob("*")) if path.suffix in (".cc", ".h")]


def sliced_classes(root: pathlib.Path) -> dict[str, int]:
    """{"class FOLDER NAME": number of .cc that define members}, of those with more than one."""
    files = collections.defaultdict(set)
    for path in sources(root, PRODUCT):
        if path.suffix == ".cc":
            for name in MEMBER.findall(path.read_text()):
                files[f"class {path.parent.relative_to(root)} {name}"].add(path)
    return {key: len(found) for key, found in files.items() if len(found) > 1}


def large_folders(root: pathlib.Path) -> dict[str, int]:
    """{"folder PATH": number of source files}, of those with too many."""
    counts = collections.Counter(str(path.parent.relative_to(root)) for path in sources(root, ALL))
    return {f"folder {folder}": count for folder, count in counts.items() if count > MOST_FILES}


def read_list(root: pathlib.Path) -> dict[str, int]:
    path = root / LIST
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line.rsplit(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return {key: int(count) for key, count in rows}


def write_list(root: pathlib.Path, rows: dict[str, int]) -> None:
    (root / LIST).write_text(HEADER + "".join(f"{key} {count}\n" for key, count in sorted(rows.items())))


def check(root: pathlib.Path, fix: bool = False) -> list[str]:
    if not sources(root, ALL):
        return [f"{root}: there are no sources"]
    found = sliced_classes(root) | large_folders(root)
    known = read_list(root)
    if fix:
        known = {key: min(count, found[key]) for key, count in known.items() if key in found}
        write_list(root, known)
    faults = []
    for key, count in sorted(found.items()):
        if count > known.get(key, 0):
            what = (f"is defined in {count} .cc files: divide it into classes" if key.startswith("class")
                    else f"holds {count} source files, at most {MOST_FILES}: make folders by subject")
            faults.append(f"{key} {what}" + (f" ({known[key]} before)" if key in known else ""))
    faults += [f"{LIST}: {key} has {found.get(key, 'none')} now: run tools/check_structure.py --fix"
               for key, count in sorted(known.items()) if found.get(key, 0) < count]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    faults = check(arguments.root, arguments.fix)
    for fault in faults:
        print(fault)
    print(f"structure: {len(sources(arguments.root, ALL))} files, {len(faults)} faults, {len(read_list(arguments.root))} known")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks the pages of the project: that links lead to files and headings that are there, that files named as code exist, and
that no line is too long.

usage: tools/check_docs.py [ROOT]                 exit code 1 if there are faults
"""

import argparse
import itertools
import pathlib
import re
import sys

COLUMNS = 125
ROW_COLUMNS = 200  # of tables, which cannot be broken
# Written from comments in the code.
FROM_CODE = ("docs/manifest.md",)
# Their tables are written by programs.
GENERATED = ("docs/metrics.md", "docs/failpoints.md", "docs/bench/all.md", "docs/bench/pytorch.md",
             "docs/bench/scaling.md")

FENCE = re.compile(r"\s*```")
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
HEADING = re.compile(r"#+ (.*)")
# What is named from the root of the project; `{a,b}` stands for both.
NAMED = re.compile(r"(?:cmake|deploy|docker|docs|helm|operator|proto|services|tests|tools)/[\w./{},-]*[\w}]")
BRACES = re.compile(r"\{([^{}]*)\}")
ENDINGS = ("", ".h", ".cc", ".py")


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    return sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])


def prose(text: str) -> list[tuple[int, str]]:
    """Lines outside of fences, with their numbers."""
    lines, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            lines.append((number, line))
    return lines


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


def anchors(page: pathlib.Path) -> set[str]:
    found: set[str] = set()
    for _, line in prose(page.read_text()):
        heading = HEADING.match(line)
        if heading:
            name = anchor(heading[1])
            names = itertools.chain([name], (f"{name}-{i}" for i in itertools.count(1)))
            found.add(next(each for each in names if each not in found))
    return found


def expand(name: str) -> list[str]:
    braces = BRACES.search(name)
    if not braces:
        return [name]
    return [each for part in braces[1].split(",")
            for each in expand(name[:braces.start()] + part + name[braces.end():])]


def find_links(root: pathlib.Path, page: pathlib.Path) -> list[str]:
    faults = []
    for number, line in prose(page.read_text()):
        for target in LINK.findall(CODE.sub("", line)):
            path, _, heading = target.partition("#")
            if "://" in target:
                continue
            file = page.parent / path if path else page
            where = f"{page.relative_to(root)}:{number}"
            if not file.exists():
                faults.append(f"{where}: {target}: there is no such file")
            elif heading and file.suffix == ".md" and heading not in anchors(file):
                faults.append(f"{where}: {target}: there is no such heading")
    return faults


def find_named(root: pathlib.Path, page: pathlib.Path) -> list[str]:
    faults = []
    for number, line in prose(page.read_text()):
        for code in CODE.findall(line):
            for word in code.split():
                named = NAMED.fullmatch(word.rstrip("/.,"))
                for path in expand(named[0]) if named else []:
                    if not any((root / (path + ending)).exists() for ending in ENDINGS):
                        faults.append(f"{page.relative_to(root)}:{number}: `{path}` is not there")
    return faults


def find_long(root: pathlib.Path, page: pathlib.Path) -> list[str]:
    name = str(page.relative_to(root))
    faults: list[str] = []
    if name in FROM_CODE:
        return faults
    for number, line in enumerate(page.read_text().splitlines(), 1):
        row = line.startswith("|")
        most = ROW_COLUMNS if row else COLUMNS
        if len(line) > most and not (row and name in GENERATED):
            faults.append(f"{name}:{number}: {len(line)} columns, at most {most}")
    return faults


def check(root: pathlib.Path) -> list[str]:
    if not pages(root):
        return [f"{root}: there are no pages"]
    return [fault for page in pages(root)
            for find in (find_links, find_named, find_long) for fault in find(root, page)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    faults = check(root)
    for fault in faults:
        print(fault)
    print(f"docs: {len(pages(root))} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

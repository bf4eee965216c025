#!/usr/bin/env python3
"""Checks that no line of the tracked Markdown files is too long to be read and compared: 125 columns, rows of tables 200.

usage: tools/check_docs.py [--fix] [FILE...]    prints one line per fault; exit code 1 if there are any

--fix wraps paragraphs and list items that hold a long line anew; rows of tables and code are for people to shorten. What
is in `backquotes` and the addresses of links stay on one line.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import textwrap

COLUMNS = 125
ROW_COLUMNS = 200
GLUE = "\u00a0"  # stands for a space at which no line may break
ITEM = re.compile(r"\s*([-*+]|\d+\.)\s+")
UNBREAKABLE = re.compile(r"`[^`]+`|\]\([^)]*\)")
# Words that would begin a list, a heading, a quotation or a table if a line began with them.
STARTS_A_BLOCK = re.compile(r"([-+*#>|]|\d+[.)])$")


def is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def is_fence(line: str) -> bool:
    return line.lstrip().startswith("```")


def faults_of(name: str, text: str) -> list[str]:
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        limit = ROW_COLUMNS if is_row(line) else COLUMNS
        if len(line) > limit:
            faults.append(f"{name}:{number}: {len(line)} columns (allowed: {limit})")
    return faults


def begins_paragraph(line: str) -> bool:
    return bool(ITEM.match(line)) or line.lstrip().startswith(("#", ">", "<", "|"))


def wrap(paragraph: list[str]) -> list[str]:
    """The lines anew, with the indentation of the first two."""
    item = ITEM.match(paragraph[0])
    first = item[0] if item else re.match(r"\s*", paragraph[0])[0]
    rest = " " * len(first) if item else first
    words = " ".join([paragraph[0][len(first):], *(line.strip() for line in paragraph[1:])])
    words = UNBREAKABLE.sub(lambda found: found[0].replace(" ", GLUE), words)
    words = " ".join(word if not STARTS_A_BLOCK.match(word) else word + GLUE for word in words.split(" "))
    words = re.sub(GLUE + " ", GLUE, words)
    words = re.sub(r" (?=(?:[-+*#>|]|\d+[.)])" + GLUE + ")", GLUE, words)  # neither does one end before it
    lines = textwrap.wrap(words, COLUMNS, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                          break_on_hyphens=False)
    return [line.replace(GLUE, " ") for line in lines]


def fixed(text: str) -> str:
    result: list[str] = []
    paragraph: list[str] = []

    def end_paragraph() -> None:
        is_long = any(len(line) > COLUMNS for line in paragraph)
        result.extend(wrap(paragraph) if is_long and not paragraph[0].lstrip().startswith(("#", ">", "<", "|")) else paragraph)
        paragraph.clear()

    in_code = False
    for line in text.splitlines():
        if is_fence(line) or in_code or not line.strip():
            end_paragraph() if paragraph else None
            result.append(line)
            in_code = in_code != is_fence(line)
            continue
        if paragraph and (begins_paragraph(line) or begins_paragraph(paragraph[0]) and is_row(paragraph[0])):
            end_paragraph()
        paragraph.append(line)
    if paragraph:
        end_paragraph()
    return "\n".join(result) + "\n"


def tracked() -> list[pathlib.Path]:
    root = pathlib.Path(__file__).resolve().parent.parent
    names = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=root, check=True, capture_output=True, text=True)
    return [root / name for name in names.stdout.split("\0") if name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", type=pathlib.Path, nargs="*")
    arguments = parser.parse_args()
    faults = []
    for path in arguments.files or tracked():
        text = path.read_text()
        if arguments.fix and (wrapped := fixed(text)) != text:
            path.write_text(wrapped)
            text = wrapped
        faults += faults_of(str(path), text)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that a class is defined in one .cc, that one of the product declares at most 30 methods, that no function has more
than 60 lines, no source file more than 500, and no folder more than 25 of them: limits of size are met by dividing what a
class does among classes, not by slicing its text.

Methods are counted where the class is defined: private ones, constructors, destructors, operators and defaulted ones are
among them; friends and those of nested types, which count for themselves, are not. Lines of a function are counted from the
beginning of its declaration to its last brace; those of lambdas within are among them.

usage: tools/check_structure.py [--fix] [ROOT]    exit code 1 if there are faults

What was so before there was this check stands in tools/structure.txt, with how many files, methods or lines it has. These
numbers may only fall: --fix writes lower ones, and takes out what has none any more. What stands behind a # is the reason.
"""

import argparse
import collections
import pathlib
import re
import sys

LIST = "tools/structure.txt"
HEADER = """\
# What check_structure.py does not allow, and what was there before it: with how many .cc or methods a class, lines a
# function or file, or files a folder, has, and why. Numbers may only fall (tools/check_structure.py --fix).
"""
MOST_FILES = 25
MOST_METHODS = 30
MOST_LINES = 60
MOST_LINES_OF_A_FILE = 500
PRODUCT = ("services", "operator")
ALL = (*PRODUCT, "tests")
# The definition of a member at the beginning of a line: `Type Class::Member(`.
MEMBER = re.compile(r'^(?!\s|//|#|return|static_assert|using|namespace)(?:[\w:<>,&*\s\[\]"]+?[\s&*])?'
                    r"([A-Z]\w*)::(?:[A-Z]\w*::)*(?:~?\w+|operator[^\s(]+)\(", re.MULTILINE)
# What is no code: comments, texts, and directives with the lines that go on from them.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
                     r'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.MULTILINE | re.DOTALL)
ACCESS = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
# What has parentheses, and is no method: attributes, in upper case or of the language.
ATTRIBUTE = re.compile(r"\b(?:[A-Z][A-Z0-9_]+|alignas|decltype|explicit|noexcept|requires)\s*\(\)|\[\[[^\]]*\]\]")
TYPE = re.compile(r"^(?:class|struct|union)\b\s*(?:[A-Z][A-Z0-9_]*_[A-Z0-9_]*\s+)?(\w+(?:::\w+)*)?")
# What follows the braces of an initialiser; a body is followed by the next declaration.
GOES_ON = re.compile(r"\s*[,{;]")


def sources(root: pathlib.Path, tops: tuple[str, ...]) -> list[pathlib.Path]:
    return [path for top in tops for path in sorted((root / top).rglob("*")) if path.suffix in (".cc", ".h")]


def sliced_classes(root: pathlib.Path) -> dict[str, int]:
    """{"class FOLDER NAME": number of .cc that define members}, of those with more than one."""
    files = collections.defaultdict(set)
    for path in sources(root, ALL):
        if path.suffix == ".cc":
            for name in MEMBER.findall(path.read_text()):
                files[f"class {path.parent.relative_to(root)} {name}"].add(path)
    return {key: len(found) for key, found in files.items() if len(found) > 1}


def closing(text: str, at: int) -> int:
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "({[") - (text[i] in ")}]")
        if depth == 0:
            return i + 1
    return len(text)


def head_of(declaration: str) -> str:
    """A declaration without access, attributes, template arguments and initialiser; parentheses are empty."""
    text = ATTRIBUTE.sub(" ", ACCESS.sub(" ", declaration))
    if re.search(r"\boperator\b", text):
        return re.sub(r"^\s*template\s*<[^()]*?>\s", " ", text).strip()
    before = ""
    while before != text:
        before, text = text, re.sub(r"<[^<>]*>", " ", text)
    return re.sub(r"^template\b", "", text.split("=")[0].strip()).strip()


def is_method(head: str) -> bool:
    if re.match(r"(?:friend|using|typedef|static_assert|enum)\b", head):
        return False
    if re.search(r"\boperator\b", head):
        return True
    is_pointer = re.search(r"\(\)\s*\(\)", head)  # to a function
    return not is_pointer and bool(re.search(r"\w\s*\(\)", head))


def add_methods(text: str, name: str, counts: collections.Counter) -> None:
    """Counts the methods of class `name` whose body is `text`, code only, and those of the types in it; "": a namespace."""
    declaration = ""
    i = 0
    while i < len(text):
        char = text[i]
        if char == "(":
            declaration += "()"
            i = closing(text, i)
        elif char == "{":
            end = closing(text, i)
            head = head_of(declaration)
            kind = TYPE.match(head)
            if kind and "()" not in head:
                nested = "::".join(part for part in (name, kind[1]) if part)
                add_methods(text[i + 1:end - 1], nested or "unnamed", counts)
                declaration = "enum"  # what may follow until the semicolon declares no method
            elif re.match(r"(?:inline\s+)?namespace\b|extern\b\s*$", head):
                add_methods(text[i + 1:end - 1], name, counts)
                declaration = ""
            elif not GOES_ON.match(text, end):
                counts[name] += is_method(head)
                declaration = ""
            i = end
        elif char == ";":
            counts[name] += is_method(head_of(declaration))
            declaration = ""
            i += 1
        else:
            declaration += char
            i += 1


def methods(root: pathlib.Path) -> dict[str, int]:
    """{"methods FOLDER NAME": how many it declares}, of all classes of the product."""
    found: collections.Counter = collections.Counter()
    for path in sources(root, PRODUCT):
        counts: collections.Counter = collections.Counter()
        add_methods(NO_CODE.sub(" ", path.read_text()), "", counts)
        for name, count in counts.items():
            key = f"methods {path.parent.relative_to(root)} {name}"
            found[key] = max(found[key], count if name else 0)
    return found


def large_classes(root: pathlib.Path) -> dict[str, int]:
    """{"methods FOLDER NAME": how many it declares}, of those with too many."""
    return {key: count for key, count in methods(root).items() if count > MOST_METHODS}


def functions(text: str, base: int = 0) -> list[tuple[str, int, int]]:
    """(head, begin, end) of each function that `text`, code only, defines; not of those within another."""
    found = []
    declaration, begin = "", base
    i = 0
    while i < len(text):
        char = text[i]
        if char == "(":
            declaration += "()"
            i = closing(text, i)
        elif char == "{":
            end = closing(text, i)
            head = head_of(declaration)
            is_scope = re.match(r"(?:inline\s+)?namespace\b|extern\b\s*$", head)
            if is_scope or (TYPE.match(head) and "()" not in head):
                found += functions(text[i + 1:end - 1], base + i + 1)
                declaration = ""
            elif not GOES_ON.match(text, end):
                found += [(head, begin, base + end)] if "()" in declaration else []
                declaration = ""
            i = end
        else:
            begin = begin if declaration else base + i
            declaration = "" if char == ";" else (declaration + char).lstrip()
            i += 1
    return found


def long_functions(root: pathlib.Path) -> dict[str, int]:
    """{"function PATH NAME": how many lines it has}, of those with too many."""
    found: dict[str, int] = {}
    for path in sources(root, ALL):
        text = NO_CODE.sub(lambda match: re.sub(r"[^\n]+", " ", match[0]), path.read_text())
        for head, begin, end in functions(text):
            lines = text.count("\n", begin, end) + 1
            if lines > MOST_LINES:
                name = re.findall(r"([\w~:]+)\s*\(\)", head)
                key = f"function {path.relative_to(root)} {name[0] if name else 'operator'}"
                found[key] = max(lines, found.get(key, 0))
    return found


def large_folders(root: pathlib.Path) -> dict[str, int]:
    """{"folder PATH": number of source files}, of those with too many."""
    counts = collections.Counter(str(path.parent.relative_to(root)) for path in sources(root, ALL))
    return {f"folder {folder}": count for folder, count in counts.items() if count > MOST_FILES}


def long_files(root: pathlib.Path) -> dict[str, int]:
    """{"file PATH": how many lines it has}, of those with too many."""
    counts = {f"file {path.relative_to(root)}": path.read_text().count("\n") for path in sources(root, ALL)}
    return {key: count for key, count in counts.items() if count > MOST_LINES_OF_A_FILE}


def rows_of_list(root: pathlib.Path) -> list[tuple[str, int, str]]:
    """(key, number, reason) of each."""
    path = root / LIST
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        row, _, reason = line.partition("#")
        if row:
            key, count = row.rsplit(maxsplit=1)
            rows.append((key, int(count), reason.strip()))
    return rows


def read_list(root: pathlib.Path) -> dict[str, int]:
    return {key: count for key, count, _ in rows_of_list(root)}


def write_list(root: pathlib.Path, rows: dict[str, int]) -> None:
    reasons = {key: f"  # {reason}" for key, _, reason in rows_of_list(root) if reason}
    (root / LIST).write_text(HEADER + "".join(f"{key} {count}{reasons.get(key, '')}\n" for key, count in sorted(rows.items())))


def check(root: pathlib.Path, fix: bool = False) -> list[str]:
    if not sources(root, ALL):
        return [f"{root}: there are no sources"]
    found = sliced_classes(root) | large_classes(root) | long_functions(root)
    found |= long_files(root) | large_folders(root)
    known = read_list(root)
    if fix:
        known = {key: min(count, found[key]) for key, count in known.items() if key in found}
        write_list(root, known)
    faults = []
    for key, count in sorted(found.items()):
        if count > known.get(key, 0):
            what = {"class": f"is defined in {count} .cc files: divide it into classes",
                    "methods": f"are {count}, at most {MOST_METHODS}: divide the class into classes",
                    "file": f"has {count} lines, at most {MOST_LINES_OF_A_FILE}: divide it by subject",
                    "function": f"has {count} lines, at most {MOST_LINES}: divide it",
                    "folder": f"holds {count} source files, at most {MOST_FILES}: make folders by subject"}[key.split()[0]]
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

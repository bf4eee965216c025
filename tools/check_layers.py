#!/usr/bin/env python3
"""Checks every #include of services/, operator/ and tests/ against tools/layers.txt, which explains its own format.

usage: tools/check_layers.py [ROOT]      prints one line per fault; exit code 1 if there are any
"""

import dataclasses
import os
import pathlib
import re
import sys

LEVELS = ["base", "leaf", "core", "edge", "reconciler", "tool", "main", "tests"]
CLOSED = {"base", "leaf", "core"}  # levels whose headers do not show third parties to other folders
OURS = ("services/", "operator/", "proto/", "tests/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')

Includes = dict[str, list[tuple[int, str]]]  # by file: line and name of each include


@dataclasses.dataclass
class Row:
    level: str
    words: dict[str, set[str]]  # what stands in the table: the folders that it means, which may be included
    outside: list[str]  # prefixes of third-party includes

    @property
    def folders(self) -> set[str]:
        return set().union(*self.words.values())


@dataclasses.dataclass
class Rules:
    rows: dict[str, Row] = dataclasses.field(default_factory=dict)
    everywhere: list[str] = dataclasses.field(default_factory=list)
    forbidden: dict[str, set[str]] = dataclasses.field(default_factory=dict)  # level -> standard headers
    faults: list[str] = dataclasses.field(default_factory=list)


def expand(words: str) -> list[str]:
    """Splits at spaces and writes braces out: "a/{b,c} d" -> a/b a/c d."""
    result = []
    for word in words.split():
        match = re.fullmatch(r"(.*)\{([^}]*)\}(.*)", word)
        result += [match[1] + part + match[3] for part in match[2].split(",")] if match else [word]
    return result


def meant_by(rules: Rules, level: str, word: str) -> set[str]:
    """The folders of rows above: of lower levels ("*"), a folder and all in it ("a/*"), or one."""
    if word == "*":
        return {name for name, row in rules.rows.items() if row.level != level}
    if word.endswith("/*"):
        return {name for name in rules.rows if f"{name}/".startswith(word[:-1])}
    return {word} & rules.rows.keys()


def same_wing(folder: str, other: str) -> bool:
    """Whether both are rooms of one folder, which may use each other in the order of their rows: operator/kube/{pods,job}."""
    shared = os.path.commonpath([folder, other]).split("/")
    return len(shared) >= (3 if shared[0] == "services" else 2)


def parse_row(rules: Rules, level: str, line: str, where: str) -> None:
    match = re.fullmatch(r"(\S+)\s*:([^|]*)\|(.*)", line)
    if not match or not level:
        rules.faults.append(f"{where}: expected `folder : folders | includes` under a [level]")
        return
    folder, folders, outside = match[1], expand(match[2]), match[3].split()
    if folder in rules.rows:
        rules.faults.append(f"{where}: {folder} has a row already")
    words = {word: meant_by(rules, level, word) for word in folders}
    for word, meant in words.items():
        if not meant:
            rules.faults.append(f"{where}: {folder} may not include {word}: no row above has that name (cycle?)")
        rules.faults += [
            f"{where}: {folder} may not include {other}: both are {level}, siblings never link"
            for other in sorted(meant)
            if rules.rows[other].level == level != "leaf" and not same_wing(folder, other)
        ]
    rules.rows[folder] = Row(level, words, outside)


def parse_rules(path: pathlib.Path) -> Rules:
    rules = Rules()
    level = ""
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        where = f"{path.name}:{number}"
        line = line.split("#")[0].strip()
        if not line:
            continue
        if match := re.fullmatch(r"\[(\w+)\]", line):
            if match[1] not in LEVELS or level and LEVELS.index(match[1]) <= LEVELS.index(level):
                rules.faults.append(f"{where}: the levels are, in order, {' '.join(LEVELS)}")
            level = match[1]
        elif line.startswith("everywhere "):
            rules.everywhere += line.split()[1:]
        elif match := re.fullmatch(r"forbid (\w+) :(.*)", line):
            rules.forbidden.setdefault(match[1], set()).update(match[2].split())
        else:
            parse_row(rules, level, line, where)
    return rules


def folder_of(rules: Rules, file: str) -> str:
    """The folder whose row governs `file`: its own, or the nearest above it; a program's folder (main) governs only itself."""
    own = pathlib.PurePosixPath(file).parent
    for folder in map(str, (own, *own.parents)):
        if folder in rules.rows and (folder == str(own) or rules.rows[folder].level != "main"):
            return folder
    return str(own)


def is_standard(include: str) -> bool:
    """Standard C++ headers have neither a folder nor an extension."""
    return "/" not in include and "." not in include


def starts_with_any(include: str, prefixes: list[str]) -> bool:
    return "*" in prefixes or any(include.startswith(prefix) for prefix in prefixes)


def is_free(rules: Rules, include: str) -> bool:
    """What every folder may use: standard C++, and what stands under `everywhere`."""
    return is_standard(include) or starts_with_any(include, rules.everywhere)


def find_leaks(rules: Rules, includes: Includes) -> dict[str, str]:
    """The headers of closed folders that show a third-party header to whoever includes them, and which one."""
    leaks: dict[str, str] = {}
    headers = [
        file for file in includes
        if file.endswith(".h") and (row := rules.rows.get(folder_of(rules, file))) and row.level in CLOSED
    ]
    grown = True
    while grown:
        grown = False
        for file in headers:
            for _, include in includes[file]:
                shown = leaks.get(include) if include.startswith(OURS) else include
                if file not in leaks and shown and not is_free(rules, shown):
                    leaks[file] = shown
                    grown = True
    return leaks


def check_include(rules: Rules, leaks: dict[str, str], file: str, include: str) -> str | None:
    """What is wrong with `file` including `include`, or None."""
    folder = folder_of(rules, file)
    row = rules.rows[folder]
    if include.startswith(OURS):
        target = folder_of(rules, include)
        if target not in rules.rows:
            return f"includes {include}, whose folder has no row in layers.txt"
        if target != folder and target not in row.folders:
            return f"includes {include}, but {folder} may not include {target}"
        if target != folder and include in leaks and row.level != "tests":
            return f"includes {include}, which shows <{leaks[include]}> outside {target}"
        return None
    if include in rules.forbidden.get(row.level, set()):
        return f"includes <{include}>, which layers.txt forbids in {row.level} folders"
    if not is_free(rules, include) and not starts_with_any(include, row.outside):
        return f"includes <{include}>, which {folder} may not use"
    return None


def includes_of(path: pathlib.Path) -> list[tuple[int, str]]:
    """Line and name of each include."""
    lines = enumerate(path.read_text().splitlines(), start=1)
    return [(number, match[1] or match[2]) for number, line in lines if (match := INCLUDE.match(line))]


def find_idle(rules: Rules, includes: Includes) -> list[str]:
    """What rows allow and no file uses: the table says what is, not what might be."""
    used: dict[str, set[str]] = {name: set() for name in rules.rows}
    for file, lines in includes.items():
        used.get(folder_of(rules, file), set()).update(include for _, include in lines)
    faults = []
    for name, row in rules.rows.items():
        ours = {folder_of(rules, include) for include in used[name] if include.startswith(OURS)}
        idle = sorted(word for word, meant in row.words.items() if word != "*" and meant and not meant & ours)
        idle += [word for word in row.outside if not any(starts_with_any(include, [word]) for include in used[name])]
        faults += [f"layers.txt: {name} may include {word}, but does not" for word in idle]
    return faults


def load(root: pathlib.Path) -> tuple[Rules, Includes]:
    rules = parse_rules(root / "tools" / "layers.txt")
    return rules, {
        str(path.relative_to(root)): includes_of(path)
        for top in ("services", "operator", "tests")
        for path in sorted((root / top).rglob("*"))
        if path.suffix in (".h", ".cc")
    }


def check(rules: Rules, includes: Includes) -> list[str]:
    """The faults in the rules and in the files."""
    leaks = find_leaks(rules, includes)
    faults = list(rules.faults)
    for file, lines in includes.items():
        if folder_of(rules, file) not in rules.rows:
            faults.append(f"{file}: its folder has no row in layers.txt")
            continue
        found = [(number, check_include(rules, leaks, file, include)) for number, include in lines]
        faults += [f"{file}:{number}: {fault}" for number, fault in found if fault]
    return faults


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    rules, includes = load(root)
    faults = check(rules, includes) + find_idle(rules, includes)
    for fault in faults:
        print(fault)
    print(f"layers: {len(includes)} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

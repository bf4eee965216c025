#!/usr/bin/env python3
"""Checks that docs/failpoints.md lists the failpoints of services/ and operator/, that their names are sound, that the
simulations know those of the cores or say why not, and that a test meets each; given programs, also that these hold none of
the names.

usage: tools/check_failpoints.py [--fix] [--root ROOT] [PROGRAM...]
--fix writes the page anew and keeps what it says of each failpoint; exit code 1 if there are faults
"""

import argparse
import dataclasses
import pathlib
import re
import sys

PAGE = "docs/failpoints.md"
STEPS = "steps.inc"  # in tests/simulation and below: the failpoints that a simulation passes
SIMULATION_PAGE = "docs/design/0011-simulation.md"  # says why it passes no others
HOME = "services/common/base/failpoint"  # .h and .cc: where they are declared, not used
INTRODUCTION = """\
# Failpoints

Places in the code where a test can make things go wrong (`services/common/base/failpoint.h` says how). They exist only in
builds with the CMake option `ADAMANT_FAILPOINTS`. `tools/check_failpoints.py --fix` writes all but the last column. *Error*:
whether an error can be returned there. *Met by*: the simulations that put faults there (`tests/simulation`), and the tests
that ask something of it in real processes.

| name | error | file | met by | what is about to happen |
|---|---|---|---|---|
"""
USE = re.compile(r"\bADAMANT_FAILPOINT(_STATUS)?\(\s*([^)]*?)\s*\)")
LITERAL = re.compile(r'"([^"\\]*)"')
NAME = re.compile(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*")
ROW = re.compile(r"\| `([^`]*)` \|(?: [^|]* \|)+? ([^|]*) \|$", re.MULTILINE)
ASKED = re.compile(r'"([a-z0-9_]+/[a-z0-9_]+)["=]')  # "name" and "name=action"
NOT_HERE = re.compile(r"^ELSEWHERE = .*$", re.MULTILINE)  # what a test leaves to others


@dataclasses.dataclass(frozen=True)
class Failpoint:
    name: str
    error: bool
    file: str

    def row(self, met_by: list[str], meaning: str) -> str:
        return f"| `{self.name}` | {'yes' if self.error else 'no'} | `{self.file}` | {', '.join(met_by)} | {meaning} |\n"


def collect(root: pathlib.Path) -> tuple[dict[str, Failpoint], list[str]]:
    """The failpoints by name, and what is wrong with them."""
    failpoints: dict[str, Failpoint] = {}
    faults = []
    files = sorted(path for top in ("services", "operator") for path in (root / top).rglob("*"))
    for path in files:
        if path.suffix not in (".cc", ".h") or path.with_suffix("") == root / HOME:
            continue
        file = str(path.relative_to(root))
        text = path.read_text()
        for use in USE.finditer(text):
            where = f"{file}:{text.count(chr(10), 0, use.start()) + 1}"
            literal = LITERAL.fullmatch(use[2])
            if not literal or not NAME.fullmatch(literal[1]):
                faults.append(f'{where}: the name of a failpoint is a literal of lower-case words, "area/what"')
            elif literal[1] in failpoints:
                faults.append(f"{where}: {literal[1]} stands in {failpoints[literal[1]].file} already")
            else:
                failpoints[literal[1]] = Failpoint(literal[1], use[1] is not None, file)
    return failpoints, faults


def find_tests(root: pathlib.Path) -> dict[str, list[str]]:
    """By failpoint, the simulations and the tests that meet it."""
    found: dict[str, list[str]] = {}
    tests = root / "tests"
    steps = {tests / "simulation" / "job" / STEPS: "simulation", tests / "simulation" / "replication" / STEPS: "replication"}
    for path, simulation in steps.items():
        for name in LITERAL.findall(path.read_text() if path.exists() else ""):
            found.setdefault(name, []).append(simulation)
    for path in sorted(tests.rglob("*_test.*")):
        if path.suffix in (".py", ".cc"):
            for name in dict.fromkeys(ASKED.findall(NOT_HERE.sub("", path.read_text()))):
                found.setdefault(name, []).append(f"`{path.stem}`")
    return found


def page(failpoints: dict[str, Failpoint], tests: dict[str, list[str]], meanings: dict[str, str]) -> str:
    return INTRODUCTION + "".join(failpoints[name].row(tests.get(name, []), meanings.get(name, "")) for name in sorted(failpoints))


def check(root: pathlib.Path, fix: bool = False) -> tuple[dict[str, Failpoint], list[str]]:
    """The failpoints, and the faults in them and in the page."""
    failpoints, faults = collect(root)
    path = root / PAGE
    old = path.read_text() if path.exists() else ""
    meanings = dict(ROW.findall(old))
    tests = find_tests(root)
    new = page(failpoints, tests, meanings)
    if fix:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(new)
    elif old != new:
        faults.append(f"{PAGE} differs from the code: run tools/check_failpoints.py --fix")
    silent = [name for name in sorted(failpoints) if not meanings.get(name)]
    faults += [f"{PAGE}: say what is about to happen at {name}" for name in silent]
    faults += [f"{failpoints[name].file}: no test asks anything of {name}" for name in sorted(failpoints) if not tests.get(name)]
    return failpoints, faults


def unmet(root: pathlib.Path, failpoints: dict[str, Failpoint]) -> list[str]:
    """The steps of the cores at which no simulation can put a fault, and of which no page says why."""
    known = "".join(path.read_text() for path in (root / "tests" / "simulation").rglob(STEPS))
    explained = (root / SIMULATION_PAGE).read_text()
    return [f"{each.file}: no {STEPS} has {each.name}, a step of a core: measure them anew, or say in {SIMULATION_PAGE} "
            "why no seed passes it"
            for each in failpoints.values()
            if "/core/" in each.file and f'"{each.name}"' not in known and f"`{each.name}`" not in explained]


def find_leaks(failpoints: dict[str, Failpoint], programs: list[pathlib.Path]) -> list[str]:
    """The names that stand in programs built without failpoints."""
    faults = []
    for program in programs:
        content = program.read_bytes()
        faults += [f"{program}: contains the failpoint {name}" for name in failpoints if name.encode() in content]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("programs", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    failpoints, faults = check(options.root, options.fix)
    faults += unmet(options.root, failpoints)
    faults += find_leaks(failpoints, options.programs)
    for fault in faults:
        print(fault)
    print(f"failpoints: {len(failpoints)} failpoints, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

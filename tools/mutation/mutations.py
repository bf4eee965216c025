"""The lists in tests/mutations: small edits of the code, each of which breaks a promise (docs/design/0014-mutations.md)."""

import dataclasses
import hashlib
import pathlib
import re
import tomllib

LISTS = "tests/mutations"
OF_LIST = {"folder", "unit", "simulation", "mutation"}
MUST_HAVE = {"name", "file", "breaks", "find", "replace"}
MAY_HAVE = {"unit", "simulation", "noticed", "harmless"}
KINDS = ("unit", "simulation")
TEST = re.compile(r"\badamant_test\(\s*(\w+)")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")

# What an edit leaves without use is no fault of it. On one line, so that the others keep their numbers but for one.
QUIET = " ".join(f'_Pragma("GCC diagnostic ignored \\"-Wunused-{what}\\"")' for what in (
    "but-set-parameter", "but-set-variable", "function", "parameter", "value", "variable")) + "\n"


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    subject: str  # the list that it is in
    file: str
    breaks: str  # the promise
    find: str
    replace: str
    unit: tuple[str, ...]  # tests that run the code, by the names of their targets
    simulation: tuple[str, ...]
    noticed: tuple[str, ...] = ()  # of KINDS: who is known to notice
    harmless: str = ""  # why it may survive

    def apply(self, text: str) -> str:
        return QUIET + text.replace(self.find, self.replace, 1)

    def key(self, text: str) -> str:
        """Changes with the file, the edit and the tests that it is shown to: a result is one of this key."""
        parts = [text, self.find, self.replace, *self.unit, *self.simulation]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def load(root: pathlib.Path) -> tuple[list[Mutation], list[str]]:
    """All mutations, in the order of the lists, and what is wrong with the lists themselves."""
    mutations: list[Mutation] = []
    faults: list[str] = []
    for path in sorted((root / LISTS).glob("*.toml")):
        where = f"{LISTS}/{path.name}"
        try:
            listed = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            faults.append(f"{where}: {error}")
            continue
        faults += [f"{where}: nobody knows {key}" for key in listed.keys() - OF_LIST]
        for entry in listed.get("mutation", []):
            name = entry.get("name", "one without a name")
            wrong = [f"lacks {key}" for key in sorted(MUST_HAVE - entry.keys())]
            wrong += [f"has {key}, which nobody knows" for key in sorted(entry.keys() - MUST_HAVE - MAY_HAVE)]
            wrong += ["may be noticed by unit and simulation only"] if set(entry.get("noticed", [])) - set(KINDS) else []
            faults += [f"{where}: {name} {each}" for each in wrong]
            if not wrong:
                mutations.append(Mutation(
                    name=name,
                    subject=path.stem,
                    file=str(pathlib.PurePosixPath(listed.get("folder", "")) / entry["file"]),
                    breaks=entry["breaks"],
                    find=entry["find"],
                    replace=entry["replace"],
                    unit=tuple(entry.get("unit", listed.get("unit", []))),
                    simulation=tuple(entry.get("simulation", listed.get("simulation", []))),
                    noticed=tuple(entry.get("noticed", [])),
                    harmless=entry.get("harmless", "")))
    return mutations, faults


def tests_of(root: pathlib.Path) -> set[str]:
    return {name for path in (root / "tests").rglob("CMakeLists.txt") for name in TEST.findall(path.read_text())}


def fault_of(mutation: Mutation, root: pathlib.Path) -> str:
    """Why it does not apply to the tree; empty if it does."""
    if not NAME.fullmatch(mutation.name):
        return "its name may have letters, digits and hyphens"
    if mutation.find == mutation.replace:
        return "it changes nothing"
    if not mutation.find.strip():
        return "its text to find is empty"
    path = root / mutation.file
    if not path.is_file():
        return f"there is no {mutation.file}"
    count = path.read_text().count(mutation.find)
    if count != 1:
        return f"its text occurs {count} times in {mutation.file}; it must be there once"
    return ""


def check(root: pathlib.Path) -> tuple[list[Mutation], list[str]]:
    """All mutations, and why some cannot be run: a line each."""
    mutations, faults = load(root)
    tests = tests_of(root)
    seen: set[str] = set()
    for mutation in mutations:
        where = f"{LISTS}/{mutation.subject}.toml: {mutation.name}"
        if mutation.name in seen:
            faults.append(f"{where}: another has this name")
        seen.add(mutation.name)
        if fault := fault_of(mutation, root):
            faults.append(f"{where}: {fault}")
        faults += [f"{where}: there is no test {test}" for test in mutation.unit + mutation.simulation if test not in tests]
        if not mutation.unit + mutation.simulation:
            faults.append(f"{where}: no test is named for it")
    return mutations, faults

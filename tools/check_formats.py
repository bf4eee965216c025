#!/usr/bin/env python3
"""Checks that docs/formats.md lists all format versions of what is stored and sent, as the code has them: constants of
services/ and operator/ whose names end in FormatVersion.

usage: tools/check_formats.py [ROOT]      exit code 1 if there are faults
"""

import argparse
import pathlib
import re
import sys

PAGE = "docs/formats.md"
CONSTANT = re.compile(r"^(?:inline )?constexpr [\w:]+ (k\w*FormatVersion) = \"?(\d+) ?\"?;", re.MULTILINE)
ROW = re.compile(r"^\| [^|]+ \| `(\w+)` \| `([^`]+)` \| (\d+) \|$", re.MULTILINE)


def in_code(root: pathlib.Path) -> dict[tuple[str, str], str]:
    """{(file, constant): version}."""
    files = (path for top in ("operator", "services") for path in sorted((root / top).rglob("*"))
             if path.suffix in (".cc", ".h"))
    return {(str(path.relative_to(root)), name): version
            for path in files for name, version in CONSTANT.findall(path.read_text())}


def on_page(root: pathlib.Path) -> dict[tuple[str, str], str]:
    return {(file, name): version for name, file, version in ROW.findall((root / PAGE).read_text())}


def check(root: pathlib.Path) -> list[str]:
    code, page = in_code(root), on_page(root)
    if not code:
        return [f"{root}: there are no format versions"]
    faults = [f"{PAGE}: {file} has {name} {version}, which has no row" for (file, name), version in code.items()
              if (file, name) not in page]
    faults += [f"{PAGE}: {file} has no {name}" for file, name in page if (file, name) not in code]
    faults += [f"{PAGE}: {name} of {file} is {code[file, name]}, not {version}" for (file, name), version in page.items()
               if code.get((file, name), version) != version]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    faults = check(root)
    for fault in faults:
        print(fault)
    print(f"formats: {len(in_code(root))} versions, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

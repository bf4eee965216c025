#!/usr/bin/env python3
"""Writes deploy/crd and deploy/operator from the chart, helm/adamant, as its default values make it: who installs by kubectl
gets what helm would install. The files that kustomize reads, and the namespace, are written by hand.

usage: tools/write_deploy.py [--helm PROGRAM] [--check] [ROOT]      --check compares; exit code 1 if there are differences
"""

import argparse
import pathlib
import re
import subprocess
import sys

CHART = "helm/adamant"
RELEASE = "adamant"
NAMESPACE = "adamant-system"
KUBERNETES = "1.34.0"  # none is asked: the output is the same whatever helm was built with
FOLDERS = ("deploy/crd", "deploy/operator")
BY_HAND = {"deploy/operator/kustomization.yaml", "deploy/operator/namespace.yaml"}
HEADER = "# Written by tools/write_deploy.py from helm/adamant, with its default values: change it there.\n"

# Before each object helm says which template it is of.
SOURCE = re.compile(r"^---\n# Source: [^/\n]+/(\S+)\n", re.MULTILINE)
CRD_TEMPLATE = "templates/crds.yaml"
PLURAL = re.compile(r"^metadata:\n(?:[ #].*\n)*?  name: ([a-z]+)\.", re.MULTILINE)


def objects_of(output: str) -> list[tuple[str, str]]:
    """(template, text) of each object of `helm template`, in its order. ValueError where it is not as expected."""
    before, *parts = SOURCE.split(output)
    if before.strip() or not parts:
        raise ValueError(f"helm template: does not begin with an object and its source: {output[:200]!r}")
    return [(template, text.strip("\n") + "\n") for template, text in zip(parts[::2], parts[1::2])]


def target_of(template: str, text: str) -> str:
    """The file below deploy/ that the object goes to: custom resources have one each, others that of their template."""
    if template != CRD_TEMPLATE:
        return f"deploy/operator/{template.removeprefix('templates/')}"
    name = PLURAL.search(text)
    if not name:
        raise ValueError(f"{template}: an object has no name like PLURAL.GROUP: {text[:200]!r}")
    return f"deploy/crd/{name[1]}.yaml"


def files_of(output: str) -> dict[str, str]:
    """{path from the root: content} of all that is written."""
    texts: dict[str, list[str]] = {}
    for template, text in objects_of(output):
        texts.setdefault(target_of(template, text), []).append(text)
    return {path: HEADER + "---\n".join(parts) for path, parts in sorted(texts.items())}


def present(root: pathlib.Path) -> dict[str, str]:
    """Likewise, of what is there and not written by hand."""
    files = (file for folder in FOLDERS for file in sorted((root / folder).glob("*")))
    paths = {file.relative_to(root).as_posix(): file for file in files}
    return {path: file.read_text(encoding="utf-8") for path, file in paths.items() if path not in BY_HAND}


def differences(wanted: dict[str, str], found: dict[str, str]) -> list[str]:
    faults = []
    for path in sorted({*wanted, *found}):
        if path not in found:
            faults.append(f"{path}: is not there")
        elif path not in wanted:
            faults.append(f"{path}: is not of the chart")
        elif wanted[path] != found[path]:
            lines = zip(wanted[path].split("\n"), found[path].split("\n"))
            number = next((n for n, (a, b) in enumerate(lines, 1) if a != b), "end")
            faults.append(f"{path}:{number}: differs from the chart")
    return faults


def write(root: pathlib.Path, wanted: dict[str, str], found: dict[str, str]) -> None:
    for path in found.keys() - wanted.keys():
        (root / path).unlink()
    for path, text in wanted.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def render(helm: str, root: pathlib.Path) -> str:
    """What helm makes of the chart. OSError says why it makes nothing."""
    command = [helm, "template", RELEASE, str(root / CHART), "--namespace", NAMESPACE, "--kube-version", KUBERNETES, "--skip-tests"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}:\n{done.stderr.strip()}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--helm", default="helm", help="3.17 or newer, or 4 [the one in PATH]")
    parser.add_argument("--check", action="store_true", help="compares, and writes nothing")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    given = parser.parse_args()
    try:
        wanted = files_of(render(given.helm, given.root))
    except (OSError, ValueError) as error:
        print(f"write_deploy: {error}", file=sys.stderr)
        return 1
    found = present(given.root)
    faults = differences(wanted, found)
    if not given.check:
        write(given.root, wanted, found)
        print(f"deploy: {len(wanted)} files, {len(faults)} changed")
        return 0
    for fault in faults:
        print(fault)
    print(f"deploy: {len(wanted)} files, {len(faults)} faults{' (tools/write_deploy.py writes them)' if faults else ''}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

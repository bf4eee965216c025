#!/usr/bin/env python3
"""Writes Grafana's dashboards to deploy/grafana, out of the tables in tools/dashboards.

usage: tools/write_dashboards.py [--check] [ROOT]      --check only compares; exit code 1 if something is wrong
"""

import argparse
import json
import pathlib
import sys

from dashboards import data_servers, fleet, job, operators, parameter_servers
from dashboards.panels import Dashboard, dashboard_json, faults_of

FOLDER = "deploy/grafana"
DASHBOARDS: list[Dashboard] = [each.DASHBOARD for each in (fleet, job, parameter_servers, data_servers, operators)]


def texts(dashboards: list[Dashboard]) -> dict[str, str]:
    """The files, by name."""
    return {f"{each.uid}.json": json.dumps(dashboard_json(each), indent=1, ensure_ascii=False) + "\n" for each in dashboards}


def differences(folder: pathlib.Path, files: dict[str, str]) -> list[str]:
    there = {path.name: path.read_text() for path in folder.glob("*.json")}
    changed = sorted(name for name in files.keys() & there.keys() if files[name] != there[name])
    return ([f"{name} is not there" for name in sorted(files.keys() - there.keys())]
            + [f"{name} is of no dashboard" for name in sorted(there.keys() - files.keys())]
            + [f"{name} differs" for name in changed])


def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.json"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (folder / name).write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    folder = options.root / FOLDER
    faults = [fault for dashboard in DASHBOARDS for fault in faults_of(dashboard)]
    if not options.check and not faults:
        write(folder, texts(DASHBOARDS))
    faults += [f"{FOLDER}/{text}: run tools/write_dashboards.py" for text in differences(folder, texts(DASHBOARDS))]
    for fault in faults:
        print(fault)
    panels = sum(len(dashboard.panels()) for dashboard in DASHBOARDS)
    print(f"dashboards: {len(DASHBOARDS)} dashboards, {panels} panels, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

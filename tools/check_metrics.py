#!/usr/bin/env python3
"""Checks that docs/metrics.md lists the metrics that services/ and operator/ register, and that their names are sound.

usage: tools/check_metrics.py [--fix] [ROOT]      --fix writes the page anew; exit code 1 if there are faults
"""

import argparse
import dataclasses
import pathlib
import re
import sys

PAGE = "docs/metrics.md"
INTRODUCTION = """\
# Metrics

At `http://HOST:PORT/metrics` in Prometheus' text format (flag `--metrics-listen`). In a cluster: the operator at port 8080;
the pods of a job, each the series of its process, at port 7070 (named `metrics`). On one machine
`adamant train --metrics-listen` serves those of the controller, and each process its own at a port that it chooses and logs.
Base units; counters end in `_total`. Written by `tools/check_metrics.py --fix` from the code that registers them.

| name | served by | type | labels | meaning |
|---|---|---|---|---|
"""
# Whose folder registers them; the longest that fits counts.
SERVED_BY = {
    "services/common/metrics": "all",
    "services/common/rpc/tls": "operator, job processes with TLS",
    "services/common/service": "job processes with TLS",
    "services/data_server": "data server",
    "services/parameter_server": "parameter server",
    "services/worker": "worker",
    "operator": "operator",
    "operator/control": "operator, `adamant train`",
    "operator/local": "`adamant train`",
}
CALL = re.compile(r"(?<!::)\bAdd(Counter|Gauge|Histogram)\(")  # `Registry::AddGauge(` is the definition
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
TEXTS = re.compile(r'\s*((?:"(?:[^"\\]|\\.)*"\s*)+),?')  # adjacent literals are one
LABEL = re.compile(r'\{\s*"(\w+)"\s*,')
# The operator's are called as all controllers call them, and those of any process as all processes, where these have such.
NAME = re.compile(r"(adamant|controller_runtime|leader_election|process|rest_client|workqueue)(_[a-z0-9]+)+")


@dataclasses.dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    served_by: str = ""

    def row(self) -> str:
        labels = ", ".join(f"`{label}`" for label in self.labels)
        return f"| `{self.name}` | {self.served_by} | {self.kind} | {labels} | {self.meaning.rstrip('.')}. |\n"


def arguments(text: str, start: int) -> str:
    """The text from `start`, just after an opening parenthesis, to the one that closes it."""
    depth = 1
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[()]', text[start:]):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return text[start : start + match.start()]
    return text[start:]


def parse_call(kind: str, call: str) -> Metric | None:
    """None when name and meaning are no literals."""
    name = TEXTS.match(call)
    meaning = TEXTS.match(call, name.end()) if name else None
    if not meaning:
        return None
    join = lambda literals: "".join(TEXT.findall(literals))
    return Metric(join(name[1]), kind.lower(), tuple(LABEL.findall(call, meaning.end())), join(meaning[1]))


def served_by(path: pathlib.PurePath) -> str | None:
    """By which process, from the place of the file that registers it; None when that is none's."""
    folder = next((folder for folder in path.parents if folder.as_posix() in SERVED_BY), None)
    return folder and SERVED_BY[folder.as_posix()]


def faults_of(metric: Metric) -> list[str]:
    faults = []
    if not NAME.fullmatch(metric.name):
        faults.append("names are adamant_ or a shared prefix, and more words of a-z and 0-9 between underscores")
    if metric.name.endswith("_total") != (metric.kind == "counter"):
        faults.append("counters end in _total, others do not")
    return faults


def collect(root: pathlib.Path) -> tuple[dict[str, Metric], list[str]]:
    """The metrics by name, and what is wrong with them."""
    metrics: dict[str, Metric] = {}
    faults = []
    files = sorted(path for top in ("services", "operator") for path in (root / top).rglob("*.cc"))
    for path in files:
        text = path.read_text()
        for match in CALL.finditer(text):
            where = f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
            metric = parse_call(match[1], arguments(text, match.end()))
            if metric is None:
                faults.append(f"{where}: write name and meaning of a metric as literals")
                continue
            process = served_by(path.relative_to(root))
            if process is None:
                faults.append(f"{where}: which process serves what is registered here? Add the folder to SERVED_BY")
                continue
            metric = dataclasses.replace(metric, served_by=process)
            faults += [f"{where}: {metric.name}: {fault}" for fault in faults_of(metric)]
            if metrics.setdefault(metric.name, metric) != metric:
                faults.append(f"{where}: {metric.name} is registered elsewhere with another type, labels or meaning")
    return metrics, faults


def page(metrics: dict[str, Metric]) -> str:
    return INTRODUCTION + "".join(metrics[name].row() for name in sorted(metrics))


def check(root: pathlib.Path, fix: bool = False) -> tuple[int, list[str]]:
    """The number of metrics, and the faults."""
    metrics, faults = collect(root)
    path = root / PAGE
    if fix:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(metrics))
    elif not path.exists() or path.read_text() != page(metrics):
        faults.append(f"{PAGE} differs from the code: run tools/check_metrics.py --fix")
    return len(metrics), faults


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    count, faults = check(options.root, options.fix)
    for fault in faults:
        print(fault)
    print(f"metrics: {count} metrics, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks the queries of deploy/grafana, deploy/prometheus and docs/runbooks: every metric that they name is in
docs/metrics.md, or in one of the tables of what is to be built or changed in the design note, and every label is one of its
own or of the scrape. A metric that is there is not in the note any more. Each alert has its severity and texts, and a page.

usage: tools/check_queries.py [--unused] [ROOT]     --unused: also what no query asks for; exit code 1 if there are faults
"""

import argparse
import collections.abc
import dataclasses
import json
import pathlib
import re
import sys

import yaml

PAGE = "docs/metrics.md"
NOTE = "docs/design/0016-observability.md"
DASHBOARDS = "deploy/grafana"
ALERTS = "deploy/prometheus/alerts.yaml"
RUNBOOKS = "docs/runbooks"

TOKEN = re.compile(r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
  | (?P<range>\[[^\]]*\])
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+|[smhdwy]\w*)?)
  | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
  | (?P<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){},@])
""", re.VERBOSE)
WITH_LABELS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
WORDS = WITH_LABELS | {"and", "or", "unless", "atan2", "offset", "bool", "inf", "nan"}
# What Prometheus makes itself, and the labels that come with a scrape: docs/design/0016-observability.md.
OWN = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
SCRAPED = {"namespace", "job", "role", "slot", "pod", "instance", "container"}
PARTS = ("_bucket", "_sum", "_count")  # of a histogram

ROW = re.compile(r"^\| `([a-z0-9_]+)` \| ([^|]*) \| (counter|gauge|histogram) \| ([^|]*)\|", re.MULTILINE)
SECTION = re.compile(r"^## (To be (?:built|changed))\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LABEL_VALUES = re.compile(r"label_values\((.*),\s*(\w+)\s*\)", re.DOTALL)
FENCE = re.compile(r"^```promql\n(.*?)^```", re.MULTILINE | re.DOTALL)


class SyntaxFault(ValueError):
    """A query that cannot be read."""


@dataclasses.dataclass(frozen=True)
class Metric:
    served_by: str
    kind: str
    labels: frozenset[str]

    def of_pods(self) -> bool:
        return any(process in self.served_by for process in ("worker", "server", "all"))


@dataclasses.dataclass
class Named:
    """What a query names: metrics, each with the labels of its matchers; and the labels that it groups and joins by."""
    metrics: list[tuple[str, set[str]]] = dataclasses.field(default_factory=list)
    labels: set[str] = dataclasses.field(default_factory=set)


def tokens(query: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(query):
        match = TOKEN.match(query, at)
        if not match:
            raise SyntaxFault(f"cannot read {query[at:at + 20]!r}")
        at = match.end()
        if match.lastgroup != "space":
            found.append((match.lastgroup or "", match[0]))
    return found


def labels_in(rest: list[tuple[str, str]], closing: str) -> set[str]:
    """Label names up to a sign, which is taken as well: of a selector, or of a list."""
    labels = set()
    while rest:
        kind, text = rest.pop(0)
        if text == closing:
            return labels
        if kind == "name":
            labels.add(text)
    raise SyntaxFault(f"{closing} is missing")


def read(query: str) -> Named:
    named = Named()
    rest = tokens(query)
    depth = 0
    while rest:
        kind, text = rest.pop(0)
        depth += {"(": 1, ")": -1}.get(text, 0)
        if depth < 0:
            raise SyntaxFault("a ) too many")
        following = rest[0][1] if rest else ""
        if kind == "sign" and text == "{":
            raise SyntaxFault("a selector without the name of a metric")
        if kind != "name":
            continue
        if text in WITH_LABELS and following == "(":
            rest.pop(0)
            named.labels |= labels_in(rest, ")")
        elif text.lower() in WORDS or following == "(" or following in ("by", "without"):
            continue  # a word, a function, an aggregation
        elif following == "{":
            rest.pop(0)
            named.metrics.append((text, labels_in(rest, "}")))
        else:
            named.metrics.append((text, set()))
    if depth:
        raise SyntaxFault("a ) is missing")
    return named


def rows(text: str) -> dict[str, Metric]:
    return {name: Metric(served_by, kind, frozenset(re.findall(r"`(\w+)`", labels)))
            for name, served_by, kind, labels in ROW.findall(text)}


def metrics_of(root: pathlib.Path) -> tuple[dict[str, Metric], list[str]]:
    """Those that are there, and those that are to be; and where the note says what is so already."""
    there = rows((root / PAGE).read_text())
    faults = []
    planned: dict[str, Metric] = {}
    for section, text in SECTION.findall((root / NOTE).read_text()):
        for name, metric in rows(text).items():
            if there.get(name) == metric:
                faults.append(f"{NOTE}: {name} is there: take it out of \"{section}\"")
            elif (name in there) != (section == "To be changed"):
                faults.append(f"{NOTE}: {name} is in \"{section}\", and {'' if name in there else 'not '}in {PAGE}")
            planned[name] = metric
    metrics = there | planned
    faults += [f"{name}: in Prometheus its label {label} is the pod's"
               for name, metric in metrics.items() if metric.of_pods() for label in sorted(metric.labels & SCRAPED)]
    return metrics, faults


def base_of(name: str, metrics: dict[str, Metric]) -> tuple[str, set[str]] | None:
    """The metric that a series is of, and its labels."""
    if name in OWN:
        return name, OWN[name]
    if name in metrics:
        return None if metrics[name].kind == "histogram" else (name, set(metrics[name].labels))
    for part in PARTS:
        base = metrics.get(name.removesuffix(part)) if name.endswith(part) else None
        if base and base.kind == "histogram":
            return name.removesuffix(part), set(base.labels) | ({"le"} if part == "_bucket" else set())
    return None


def faults_of(query: str, metrics: dict[str, Metric], used: set[str]) -> list[str]:
    try:
        named = read(query)
    except SyntaxFault as fault:
        return [str(fault)]
    faults = []
    known = set(SCRAPED)
    for name, labels in named.metrics:
        found = base_of(name, metrics)
        if found is None:
            faults.append(f"{name} is neither in {PAGE} nor planned in {NOTE}")
            continue
        used.add(found[0])
        known |= found[1]
        faults += [f"{name} has no label {label}" for label in sorted(labels - found[1] - SCRAPED)]
    if not named.metrics:
        faults.append("no metric is asked for")
    return faults or [f"no metric of the query has a label {label}" for label in sorted(named.labels - known)]


Query = tuple[str, str]  # where it is, and its text


def queries_of_dashboard(path: pathlib.Path) -> collections.abc.Iterator[Query]:
    dashboard = json.loads(path.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"{path.name}: {panel['title']}", target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield f"{path.name}: annotation {annotation['name']}", annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            asked = LABEL_VALUES.fullmatch(variable["query"]["query"])
            # As a query that groups by that label: the metric must have it.
            text = f"count by ({asked[2]}) ({asked[1]})" if asked else variable["query"]["query"]
            yield f"{path.name}: variable {variable['name']}", text


def alerts_of(root: pathlib.Path) -> list[dict]:
    return [rule for group in yaml.safe_load((root / ALERTS).read_text())["groups"] for rule in group["rules"]]


def queries_of(root: pathlib.Path) -> list[Query]:
    found: list[Query] = []
    for path in sorted((root / DASHBOARDS).glob("*.json")):
        found += queries_of_dashboard(path)
    found += [(f"{ALERTS}: {rule.get('alert')}", rule["expr"]) for rule in alerts_of(root)]
    for path in sorted((root / RUNBOOKS).glob("*.md")):
        for block in FENCE.findall(path.read_text()):
            found += [(f"{RUNBOOKS}/{path.name}", text) for text in block.split("\n\n") if text.strip()]
    return found


def faults_of_alerts(root: pathlib.Path) -> list[str]:
    faults = []
    pages = set()
    for rule in alerts_of(root):
        where = f"{ALERTS}: {rule.get('alert')}"
        annotations = rule.get("annotations", {})
        page = f"{RUNBOOKS}/{rule.get('alert')}.md"
        pages.add(page)
        if rule.get("labels", {}).get("severity") not in ("critical", "warning", "info"):
            faults.append(f"{where}: its severity is critical, warning or info")
        faults += [f"{where}: it has no {key}" for key in ("summary", "description") if not annotations.get(key)]
        if "for" not in rule:
            faults.append(f"{where}: say for how long (for)")
        if annotations.get("runbook_url") != page:
            faults.append(f"{where}: its runbook_url is {page}")
        elif not (root / page).is_file():
            faults.append(f"{where}: {page} is not there")
    for path in sorted((root / RUNBOOKS).glob("*.md")):
        if path.stem != "README" and f"{RUNBOOKS}/{path.name}" not in pages:
            faults.append(f"{RUNBOOKS}/{path.name} is of no alert")
    return faults


def check(root: pathlib.Path) -> tuple[int, list[str], list[str]]:
    """The number of queries, the faults, and the metrics that no query asks for."""
    metrics, faults = metrics_of(root)
    used: set[str] = set()
    queries = queries_of(root)
    for where, text in queries:
        faults += [f"{where}: {fault}" for fault in faults_of(text, metrics, used)]
    return len(queries), faults + faults_of_alerts(root), sorted(metrics.keys() - used)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--unused", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    count, faults, unused = check(options.root)
    for fault in faults:
        print(fault)
    if options.unused:
        print(*(f"no query asks for {name}" for name in unused), sep="\n")
    print(f"queries: {count} queries, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

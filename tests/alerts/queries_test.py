#!/usr/bin/env python3
"""Every query of the dashboards, run by promtool over series such as a job and its operators have, returns something: the
labels that it selects and joins by are there. That the programs serve these series is another test's.
"""

import itertools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_queries  # noqa: E402

PROMTOOL = shutil.which("promtool")
JOB = {"namespace": "ml", "job": "mnist"}
SYSTEM = {"namespace": "adamant-system", "job": "adamant-operator"}
# Of a label, or of a metric's label: values that it has.
VALUES = {
    "adamant_job_phase phase": ["Running"],
    "adamant_operator_jobs phase": ["Running", "Succeeded"],
    "adamant_job_recoveries_total phase": ["reconcile", "restart"],
    "adamant_job_recovery_seconds_total phase": ["reconcile", "restart"],
    "phase": ["detect", "replace", "reconcile", "catch_up"],
    "adamant_job_buckets state": ["Ready", "Blocked"],
    "adamant_job_processes state": ["wanted", "joined"],
    "adamant_operator_certificate_end_timestamp_seconds kind": ["leaf", "root"],
    "adamant_data_server_dealt_examples_total kind": ["train"],
    "kind": ["prepare", "beacon"],
    "outcome": ["applied", "duplicate"], "copy": ["primary", "secondary"], "for": ["batch", "fetch"], "layer": ["fc1"],
    "role": ["worker", "parameter-server"], "cause": ["Failed", "Evicted"], "reason": ["replaced", "wrong_job"],
    "name": ["adamant-operator"], "controller": ["trainingjob"], "result": ["success", "error"],
    "code": ["200", "500"], "method": ["GET"], "verb": ["GET"],
    "version": ["0.1.0"], "commit": ["1234567"],
}
VARIABLES = {"adamant-operators.json": SYSTEM}  # of all others: JOB

Labels = dict[str, str]


def pod(name: str, number: int, labels: Labels) -> Labels:
    return labels | {"pod": name, "instance": f"10.0.0.{number}:7070", "container": "adamant"}


TARGETS = {
    "operator": [pod(f"operator-{name}", number, SYSTEM) for number, name in enumerate("ab")],
    **{role: [pod(f"mnist-{role}-{slot}-1", first + slot, JOB | {"role": role, "slot": str(slot)}) for slot in range(2)]
       for first, role in ((10, "worker"), (20, "data-server"), (30, "parameter-server"))}}


def targets_of(served_by: str) -> list[Labels]:
    if served_by == "all":
        return list(itertools.chain(*TARGETS.values()))
    roles = [role.strip().replace(" ", "-") for role in served_by.split(",")]
    return list(itertools.chain(*(TARGETS.get(role, []) for role in roles)))  # `adamant train` is in no cluster


def series_of(name: str, labels: Labels, values: str) -> dict:
    return {"series": name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}", "values": values}


def series(name: str, metric: check_queries.Metric) -> list[dict]:
    own = sorted(metric.labels - set(JOB))
    found = []
    for target in targets_of(metric.served_by):
        for values in itertools.product(*(VALUES.get(f"{name} {label}", VALUES.get(label, [])) for label in own)):
            labels = target | dict(zip(own, values)) | (JOB if metric.labels >= set(JOB) else {})  # the scrape honours these
            if metric.kind == "histogram":
                found += [series_of(f"{name}_bucket", labels | {"le": bound}, f"0+{count}x60")
                          for bound, count in (("0.1", 2), ("10", 5), ("+Inf", 6))]
                found += [series_of(f"{name}_sum", labels, "0+9x60"), series_of(f"{name}_count", labels, "0+6x60")]
            else:
                found.append(series_of(name, labels, "0+3x60" if metric.kind == "counter" else "1x60"))
    return found


def queries() -> list[tuple[str, str]]:
    found = []
    for path in sorted((ROOT / check_queries.DASHBOARDS).glob("*.json")):
        names = VARIABLES.get(path.name, JOB)
        for where, query in check_queries.queries_of_dashboard(path):
            for old, new in (("$__rate_interval", "2m"), ("$namespace", names["namespace"]), ("$job", names["job"])):
                query = query.replace(old, new)
            found.append((where, query))
    return found


@unittest.skipUnless(PROMTOOL, "there is no promtool: install prometheus")
class QueriesTest(unittest.TestCase):
    def test_each_returns_something(self) -> None:
        metrics, _ = check_queries.metrics_of(ROOT)
        there = [each for name, metric in metrics.items() for each in series(name, metric)]
        there += [series_of("up", target, "1x60") for target in targets_of("all")]
        there.append(series_of("ALERTS", JOB | {"alertname": "AdamantJobStuck", "alertstate": "firing"}, "1x60"))
        asked = [{"expr": f"count({query}) > bool 0", "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": 1}]}
                 for _, query in queries()]
        tests = {"rule_files": [], "tests": [{"interval": "30s", "input_series": there, "promql_expr_test": asked}]}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "queries.yaml"
            file.write_text(json.dumps(tests))  # which YAML reads
            done = subprocess.run([PROMTOOL, "test", "rules", str(file)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

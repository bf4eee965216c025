#!/usr/bin/env python3
"""The alerts of deploy/prometheus: each fires from series that its cause makes, and none in an undisturbed run.

What promtool (Debian's package prometheus) is to find is in the YAML files beside this.
"""

import pathlib
import shutil
import subprocess
import sys
import unittest

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import check_queries  # noqa: E402

UNDISTURBED = FOLDER / "undisturbed.yaml"
PROMTOOL = shutil.which("promtool")
needs_promtool = unittest.skipUnless(PROMTOOL, "there is no promtool: install prometheus")


def groups(path: pathlib.Path) -> list[dict]:
    return yaml.safe_load(path.read_text())["tests"]


def promtool(*arguments: str) -> None:
    done = subprocess.run([PROMTOOL, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


class AlertsTest(unittest.TestCase):
    @needs_promtool
    def test_prometheus_reads_the_rules(self) -> None:
        promtool("check", "rules", check_queries.ALERTS)

    @needs_promtool
    def test_each_fires_when_its_test_says_so(self) -> None:
        promtool("test", "rules", *sorted(str(path.relative_to(ROOT)) for path in FOLDER.glob("*.yaml")))

    def test_each_rule_has_a_test_in_which_it_fires(self) -> None:
        rules = {(rule["alert"], rule["labels"]["severity"]) for rule in check_queries.alerts_of(ROOT)}
        fired = {(asked["alertname"], alert["exp_labels"]["severity"])
                 for path in FOLDER.glob("*.yaml") for group in groups(path)
                 for asked in group.get("alert_rule_test", []) for alert in asked["exp_alerts"]}
        self.assertEqual(rules - fired, set())

    def test_each_has_a_test_in_which_it_does_not(self) -> None:
        alerts = {rule["alert"] for rule in check_queries.alerts_of(ROOT)}
        quiet = {asked["alertname"] for path in FOLDER.glob("*.yaml") for group in groups(path)
                 for asked in group.get("alert_rule_test", []) if not asked["exp_alerts"]}
        self.assertEqual(alerts - quiet, set())

    def test_an_undisturbed_run_has_what_alerts_read(self) -> None:
        read = {name for rule in check_queries.alerts_of(ROOT) for name, _ in check_queries.read(rule["expr"]).metrics}
        there = {each["series"].partition("{")[0] for group in groups(UNDISTURBED) for each in group["input_series"]}
        self.assertEqual(read - there, set())


if __name__ == "__main__":
    unittest.main()

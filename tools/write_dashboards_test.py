#!/usr/bin/env python3
"""Checks of tools/write_dashboards.py and tools/dashboards/panels.py."""

import dataclasses
import json
import pathlib
import tempfile
import unittest

import write_dashboards
from dashboards.panels import (HEATMAP, STAT, TABLE, TIMESERIES, Annotation, Dashboard, Panel, Row, Variable, dashboard_json,
                               faults_of)

PACE = Panel(TIMESERIES, "Pace", "cps", "Examples a second.", {"{{slot}}": 'sum by (slot) (rate(pace_total{@, a="b"}[@]))'}, 12)
LIST = Panel(TABLE, "List", "none", "All of them.", {"of": "phase{@}", "Loss": "loss{@}"}, 12, hidden=("of",),
             labels={"job": "Job"}, units={"Loss": "percentunit"})
TEST = Dashboard("test", "Test", "A test.", 'job="$job"',
                 [Variable("namespace", "Namespace", "label_values(a, namespace)"),
                  Variable("job", "Job", "label_values(a, job)", many=True)],
                 [Row("First", [PACE, LIST])], [Annotation("Restarts", "{{role}}", "red", "restarts{@}[@]")])


def with_panels(*panels: Panel) -> Dashboard:
    return dataclasses.replace(TEST, rows=[Row("First", list(panels))])


class PanelsTest(unittest.TestCase):
    def test_queries_get_selector_and_interval(self) -> None:
        [_, pace, _] = dashboard_json(TEST)["panels"]
        [target] = pace["targets"]
        self.assertEqual(target["expr"], 'sum by (slot) (rate(pace_total{job="$job", a="b"}[$__rate_interval]))')
        self.assertEqual((target["legendFormat"], target["refId"], target["range"]), ("{{slot}}", "A", True))
        [annotation] = dashboard_json(TEST)["annotations"]["list"]
        self.assertEqual(annotation["expr"], 'restarts{job="$job"}[$__rate_interval]')

    def test_panels_stand_beside_each_other_and_rows_below(self) -> None:
        number = Panel(STAT, "Number", "none", "One.", {"n": "n"}, 12)
        rows = [Row("First", [PACE, number, dataclasses.replace(PACE, width=24)]), Row("Second", [PACE, PACE])]
        placed = [panel["gridPos"] for panel in dashboard_json(dataclasses.replace(TEST, rows=rows))["panels"]]
        self.assertEqual([(each["x"], each["y"], each["w"], each["h"]) for each in placed],
                         [(0, 0, 24, 1), (0, 1, 12, 8), (12, 1, 12, 4), (0, 9, 24, 8),
                          (0, 17, 24, 1), (0, 18, 12, 8), (12, 18, 12, 8)])

    def test_a_table_has_named_columns(self) -> None:
        [_, _, table] = dashboard_json(TEST)["panels"]
        merge, organize = table["transformations"]
        self.assertEqual(merge["id"], "merge")
        self.assertEqual(organize["options"]["renameByName"], {"job": "Job", "Value #B": "Loss"})
        self.assertEqual(organize["options"]["excludeByName"], {"Time": True, "Value #A": True})
        self.assertEqual(table["fieldConfig"]["overrides"][0]["matcher"]["options"], "Loss")
        self.assertTrue(all(target["instant"] and target["format"] == "table" for target in table["targets"]))

    def test_a_heatmap_reads_buckets(self) -> None:
        panel = Panel(HEATMAP, "Times", "s", "All of them.", {"{{le}}": "a_bucket"}, 24)
        self.assertEqual(dashboard_json(with_panels(panel))["panels"][1]["targets"][0]["format"], "heatmap")

    def test_faults_are_named(self) -> None:
        self.assertEqual(faults_of(TEST), [])
        for change, said in (({"unit": "parsec"}, "no unit parsec"), ({"description": "No sentence"}, "in a sentence"),
                             ({"queries": {"": "a"}}, "needs a legend"), ({"queries": {}}, "needs a legend"),
                             ({"title": "List"}, "two panels"), ({"width": 11}, "no multiple of 24")):
            [fault] = faults_of(with_panels(dataclasses.replace(PACE, **change), LIST))
            self.assertIn(said, fault)
        [fault] = faults_of(dataclasses.replace(TEST, variables=TEST.variables[:1]))
        self.assertIn("namespace and job", fault)


class WriteDashboardsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_what_is_written_is_accepted(self) -> None:
        files = write_dashboards.texts([TEST])
        self.assertEqual(write_dashboards.differences(self.folder, files), ["test.json is not there"])
        (self.folder / "old.json").write_text("{}")
        write_dashboards.write(self.folder, files)
        self.assertEqual(write_dashboards.differences(self.folder, files), [])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["test.json"])

    def test_differences_are_named(self) -> None:
        files = write_dashboards.texts([TEST])
        write_dashboards.write(self.folder, files)
        (self.folder / "old.json").write_text("{}")
        (self.folder / "test.json").write_text(files["test.json"].replace("cps", "ops"))
        self.assertEqual(write_dashboards.differences(self.folder, files), ["old.json is of no dashboard", "test.json differs"])

    def test_all_dashboards_are_sound(self) -> None:
        self.assertEqual([fault for each in write_dashboards.DASHBOARDS for fault in faults_of(each)], [])
        for text in write_dashboards.texts(write_dashboards.DASHBOARDS).values():
            ids = [panel["id"] for panel in json.loads(text)["panels"]]
            self.assertEqual(len(ids), len(set(ids)))


if __name__ == "__main__":
    unittest.main()

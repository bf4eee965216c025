#!/usr/bin/env python3
"""The rows and tables of tests/bench/scaling.py, with runs that are made up."""

import dataclasses
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import scaling  # noqa: E402
import scaling_groups  # noqa: E402
import scaling_manifest  # noqa: E402
import scaling_rows  # noqa: E402
import scaling_table  # noqa: E402
import scaling_virtual  # noqa: E402
from scaling_case import CHOOSING_SEEDS, Case, Results  # noqa: E402

MEASURED = {"step": 0.002, "push": 0.012, "fetch": 0.010, "fetch_wait": 0, "fetch_every": 8, "gap": 10.0}


def outcome(top1, **fields):
    return {"exit_code": 0, "message": "", "attempts": 1, "top1": [50.0, top1], "staleness": [4.0, 6.0], "seconds": 1.0,
            "training_seconds": 1.0, "updates_lost": 0, "examples_per_second": 100.0, "measured": MEASURED,
            "examples_to_target": 60000, "steps_to_target": 2000.0, "steps": 9000.0, **fields}


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "results.jsonl"
        self.results = Results(self.path)

    def finish(self, row, plan, top1_of):
        """Runs what the row wants until it wants no more; the cases in their order."""
        ran = []
        while missing := scaling.missing_of(scaling.groups_of(row, plan, self.results), self.results):
            self.results.add(missing[0], "abc", outcome(top1_of(missing[0])))
            ran.append(missing[0])
            self.assertLess(len(ran), 2000)
        return ran

    def test_every_row_comes_to_an_end(self):
        for row in scaling_rows.ROWS:
            with self.subTest(row):
                plan = scaling_rows.Plan([1], [], 0)
                self.finish(row, plan, lambda case: 99.0 + case.seed / 1000)
                heading, _ = scaling_rows.ROWS[row]
                groups = scaling.groups_of(row, plan, self.results)
                self.assertIn(f"## {heading}", scaling_table.section(heading, groups, self.results))

    def test_every_case_has_a_manifest_or_options(self):
        folder = pathlib.Path("/data")
        data = scaling_manifest.Data(folder, folder)
        for row in scaling_rows.ROWS:
            for case in self.finish(row, scaling_rows.Plan([1], [], 0), lambda _: 99.0):
                made = scaling_manifest.stale_options(case, data) if case.virtual else scaling_manifest.manifest(case, data)
                self.assertIn(str(case.workers), made)

    def test_counterpart_has_the_rate_that_was_best_on_other_seeds(self):
        ran = self.finish("recipe", scaling_rows.Plan([1, 2], [8], 0), lambda case: 99.0 if case.rate == 0.08 else 98.0)
        chosen = [case for case in ran if case.batch == 256 and case.seed in (1, 2)]
        self.assertEqual({case.rate for case in chosen}, {0.08})
        choosing = {case.seed for case in ran if case.batch == 256} - {1, 2}
        self.assertEqual(choosing, set(CHOOSING_SEEDS))

    def test_what_is_there_is_not_run_again(self):
        plan = scaling_rows.Plan([1], [1, 2], 0)
        self.assertTrue(self.finish("recipe", plan, lambda _: 99.0))
        self.results = Results(self.path)
        self.assertEqual(self.finish("recipe", plan, lambda _: 99.0), [])
        self.assertEqual({case.seed for case in self.finish("recipe", scaling_rows.Plan([1, 2], [1, 2], 0), lambda _: 99.0)},
                         {2})

    def test_lines_say_what_was_run_when_and_with_what(self):
        self.results.add(Case(workers=4), "abc", outcome(99.0))
        line = json.loads(self.path.read_text())
        self.assertEqual(line["case"], {"workers": 4})
        self.assertEqual(line["commit"], "abc")
        self.assertRegex(line["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def judge(self, here, there, points=0.15, **fields):
        """The last column of a group of runs beside another."""
        cases = [Case(seed=seed) for seed in range(len(here))]
        against = [Case(workers=2, seed=seed) for seed in range(len(there))]
        for case, top1 in zip([*cases, *against], [*here, *there]):
            self.results.add(case, "abc", outcome(top1, **(fields if case in cases else {})))
        group = scaling_groups.Group("", cases, against, "near", scaling_groups.near(points), points)
        return scaling_table.cells(group, self.results)[-1]

    def test_target_is_met_or_not(self):
        self.assertEqual(self.judge([98.90, 98.91], [99.00, 99.01]), "yes")
        self.assertEqual(self.judge([98.80, 98.81], [99.00, 99.01]), "**no**")

    def test_a_run_that_failed_does_not_meet_it(self):
        self.assertEqual(self.judge([99.00, 99.01], [99.00, 99.01], exit_code=1), "**no**, too few runs")

    def test_wide_intervals_are_told(self):
        self.assertEqual(self.judge([98.5, 99.5], [99.00, 99.01]), "yes, too few runs")

    def test_seeds_beyond_the_rows_count_too(self):
        group = scaling_groups.Group("", [Case(seed=1), Case(seed=2)])
        for seed, top1 in ((1, 99.0), (2, 99.2), (7, 99.4), (101, 50.0)):
            self.results.add(Case(seed=seed), "abc", outcome(top1))
        self.results.add(Case(seed=1, workers=2), "abc", outcome(98.0))
        runs, mean = scaling_table.cells(group, self.results)[1:3]
        self.assertEqual(runs, "3 of 2")
        self.assertTrue(mean.startswith("99.20"), mean)

    def test_half_measured_groups_say_so(self):
        against = [Case(workers=2, seed=1)]
        group = scaling_groups.Group("", [Case(seed=1), Case(seed=2)], against, "near", scaling_groups.near(0.15))
        self.results.add(Case(seed=1), "abc", outcome(99.0))
        self.assertEqual(scaling_table.cells(group, self.results)[-1], "not measured")
        self.results.add(against[0], "abc", outcome(99.0))
        self.assertEqual(scaling_table.cells(group, self.results)[-1], "yes, too few runs")

    def test_lost_updates_fail_the_row_of_kills(self):
        plan = scaling_rows.Plan([1], [], 0)
        self.finish("server-kills", plan, lambda _: 99.0)
        group = scaling.groups_of("server-kills", plan, self.results)[-1]
        self.assertTrue(group.met(self.results.of(group.cases), self.results.of(group.against)))
        lost = [outcome(99.0, updates_lost=1)]
        self.assertFalse(group.met(lost, self.results.of(group.against)))

    def test_falling_epochs_fail_the_row_of_workers_that_come_and_go(self):
        plan = scaling_rows.Plan([1], [], 0)
        self.finish("scale-virtual", plan, lambda _: 99.0)
        group = scaling.groups_of("scale-virtual", plan, self.results)[-1]
        against = self.results.of(group.against)
        self.assertTrue(group.met([outcome(99.0)], against))
        self.assertFalse(group.met([{**outcome(99.0), "top1": [98.9, 98.3, 99.0]}], against))

    def test_virtual_workers_get_the_times_of_real_ones(self):
        options = scaling_virtual.options_as(MEASURED, cores_shared=True)
        self.assertEqual(options[:4], ("--latency", "2.50", "--apply", "1.00"))
        waiting = {**MEASURED, "fetch_wait": 0.014, "fetch_every": 1}
        self.assertEqual(scaling_virtual.options_as(waiting, cores_shared=True)[:2], ("--latency", "4.00"))

    def test_virtual_workers_are_alike_or_not(self):
        there = [outcome(99.0)]
        self.assertTrue(scaling_rows.alike([outcome(99.1, gap=11.0)], there))
        self.assertFalse(scaling_rows.alike([outcome(99.1, gap=12.0)], there))
        self.assertFalse(scaling_rows.alike([outcome(99.2, gap=10.0)], there))

    def test_new_fields_leave_old_results_valid(self):
        self.assertEqual(Case().fields(), {})
        self.assertEqual(dataclasses.replace(Case(), threads=2).fields(), {"threads": 2})


if __name__ == "__main__":
    unittest.main()

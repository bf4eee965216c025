#!/usr/bin/env python3
"""A job whose controller is away for several epochs trains on, and is taken to its end by the next one."""

import csv
import re
import unittest

import netns
from cluster import Cluster, manifest

EPOCHS = 60
EXAMPLES = 20_000
AWAY = 60  # seconds within which the data server must have gone on: it waits for 15 s, a paused controller 5 s longer
TRAINING = 120  # seconds for the other epochs; alone on two cores they take 50


class NoControllerTest(unittest.TestCase):
    def setUp(self):
        job = manifest("{count: 2, copies: 1, buckets: 4}", workers=2).replace("epochs: 100000", f"epochs: {EPOCHS}")
        job = job.replace("examples: 1000}", f"examples: {EXAMPLES}}}")
        self.cluster = self.enterContext(Cluster(job, parameter_servers=2, workers=2))
        self.cluster.await_that(self.rows, "the first epoch's end")

    def rows(self):
        """The lines of metrics.csv so far, the header aside."""
        path = self.cluster.run_dir / "metrics.csv"
        return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []

    def opened_alone(self):
        """The epochs that the data server has opened without a controller."""
        lines = [line for line in self.cluster.log("data-server-0").splitlines() if "without it" in line]
        return [int(re.search(r'"epoch": ?"?(\d+)', line).group(1)) for line in lines]

    def await_three_epochs(self):
        self.cluster.await_that(lambda: len(self.opened_alone()) > 3, "three epochs without a controller", AWAY)

    def await_end_and_check(self):
        rows = self.cluster.await_that(lambda: len(found := self.rows()) == EPOCHS and found, "the last epoch's end", TRAINING)
        self.assertEqual([int(row["epoch"]) for row in rows], list(range(1, EPOCHS + 1)))
        self.assertEqual({int(row["examples_counted"]) for row in rows}, {EXAMPLES})
        unattended = [int(row["epoch"]) for row in rows if row["top1"] == ""]
        alone = self.opened_alone()
        self.assertEqual(alone, list(range(alone[0], alone[-1] + 1)))
        # The controller may have looked at the epoch before the first of them, and not have come to open the next. The
        # last of them may have ended before it was back, and not have been followed by another one yet.
        self.assertEqual(unattended, list(range(unattended[0], unattended[-1] + 1)))
        self.assertIn(unattended[0], (alone[0] - 1, alone[0]))
        self.assertIn(unattended[-1], (alone[-1] - 1, alone[-1]))
        self.assertLess(alone[-1], EPOCHS)
        self.assertGreater(float(rows[-1]["top1"]), 0.5)
        self.cluster.await_that(lambda: self.cluster.pid("controller") is None, "the end of the job")
        self.assertFalse([event for event in self.cluster.events() if event["event"] == "failure"])

    def test_killed_controller_is_missed_by_nobody(self):
        before = {name: self.cluster.pid(name) for name in ["data-server-0", *self.cluster.workers]}
        self.cluster.kill("controller")
        self.await_three_epochs()
        self.assertEqual({name: self.cluster.pid(name) for name in before}, before)
        self.cluster.start_controller()
        self.await_end_and_check()

    def test_paused_controller_finds_the_job_where_it_is(self):
        with self.cluster.paused("controller"):
            self.await_three_epochs()
        self.await_end_and_check()


if __name__ == "__main__":
    netns.main()

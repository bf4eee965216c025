#!/usr/bin/env python3
"""Checkpoints that cannot be copied, and starts that are killed."""

import os
import signal
import unittest

from start_from import COPIES, StartFromCase


@unittest.skipUnless(os.environ.get("ADAMANT_HAS_FAILPOINTS") == "1", "needs a build with failpoints")
class StartFromFailpointsTest(StartFromCase):

    def test_a_full_output_is_an_alarm_and_training_goes_on(self):
        os.environ["ADAMANT_FAILPOINTS"] = "checkpoint/copy=error(resource_exhausted)"
        self.addCleanup(os.environ.pop, "ADAMANT_FAILPOINTS", None)
        run = self.finished("full", self.job_with(COPIES))
        self.assertEqual(self.copied(run), {})
        alarms = [event["text"] for event in run.events() if event["event"] == "alarm"]
        self.assertTrue(any("could not be copied to" in text and "training goes on" in text for text in alarms), alarms)

    def test_a_start_that_is_killed_is_completed_when_the_run_is_resumed(self):
        copy = self.copied(self.first())[1]
        job = self.job_with(f"  startFrom: {{checkpoint: {{path: {copy}}}}}\n")
        for place in ("start/store", "start/move"):
            with self.subTest(place):
                os.environ["ADAMANT_FAILPOINTS"] = f"{place}=crash"
                self.addCleanup(os.environ.pop, "ADAMANT_FAILPOINTS", None)
                run = self.run_in(place.replace("/", "-")).train(job)
                self.assertEqual(run.wait()[0], -signal.SIGKILL)
                os.environ.pop("ADAMANT_FAILPOINTS")
                code, output = run.resume().wait()
                self.assertEqual(code, 0, output)
                self.assert_counted_once(run, 2, 3000)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""A healthy job whose weights become NaN in its third epoch goes back to the model of the second, and succeeds."""

import os
import unittest

import adamant

STEPS = 94  # of an epoch: 3,000 examples in batches of 32


@unittest.skipUnless(os.environ.get("ADAMANT_HAS_FAILPOINTS") == "1", "needs a build with failpoints")
class TrainFailpointsTest(adamant.TestCase):
    def test_weights_that_become_nan_are_replaced_by_those_of_the_last_healthy_model(self):
        # Counted by process: that of the next attempt has the third epoch, and what follows, before it.
        os.environ["ADAMANT_FAILPOINTS"] = f"train/step=error@{STEPS * 5 // 2}"
        self.addCleanup(os.environ.pop, "ADAMANT_FAILPOINTS")
        run = self.run_in().train(self.job(epochs=4, workers=1, validation="{digits: {seed: 2, examples: 1000}}"))
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assertIn("NaN", output)
        self.assertEqual([(int(row["epoch"]), int(row["attempt"])) for row in run.rows()], [(1, 1), (2, 1), (3, 2), (4, 2)])
        gone_back = [event for event in run.events() if event["event"] == "went-back"]
        self.assertEqual([event["epoch"] for event in gone_back], [3])
        tops = [float(row["top1"]) for row in run.rows()]
        self.assertGreater(tops[-1], tops[1])  # it learns on


if __name__ == "__main__":
    unittest.main()

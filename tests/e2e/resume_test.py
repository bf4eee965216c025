"""Runs that were stopped go on: from what is stored, and as what they were."""

import json
import signal
import time
import unittest

import adamant


def without_log(job):
    """The same job, of which only checkpoints are stored."""
    job.write_text(job.read_text().replace("flushInterval: 200ms", "mode: None"))
    return job


class ResumeTest(adamant.TestCase):

    def interrupt(self, run):
        """Ctrl-C; returns what was printed."""
        pids = [run.process.pid, *run.members().values()]
        begun = time.monotonic()
        run.process.send_signal(signal.SIGINT)
        code, output = run.wait()
        self.assertEqual(code, 3, output)
        self.assertLess(time.monotonic() - begun, 3.5)
        self.assert_all_gone(pids, 1)
        return output

    def test_without_a_log_and_a_checkpoint_a_run_begins_again_and_says_so(self):
        run = self.run_in().train(without_log(self.job(epochs=2, train="{digits: {seed: 1, examples: 20000}}",
                                                       on_divergence="{action: Fail}")))
        run.await_epoch(0)
        run.kill_all()
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertIn("goes back to its first weights, made anew", output)
        self.assert_counted_once(run, 2, 20000)

    def test_without_a_log_ctrl_c_takes_a_checkpoint_first(self):
        run = self.run_in().train(without_log(self.job(epochs=1, train="{digits: {seed: 1, examples: 20000}}",
                                                       layers=adamant.LAYERS.replace("channels: 4", "channels: 256"))))
        run.await_epoch(0)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
            if status["examples"] > 500:
                break
        self.interrupt(run)
        stopped = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        self.assertEqual(run.rows(), [], "the epoch's end would have taken one")
        self.assertGreater(stopped["checkpoint"], status["checkpoint"])
        exported = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertNotIn("made anew", output)
        self.assertNotIn("is lost", output)
        self.assertIn(f"nothing but checkpoints is stored; the job goes back to checkpoint {stopped['checkpoint']}\n",
                      output)
        self.assert_counted_once(run, 1, 20000)


if __name__ == "__main__":
    unittest.main()

"""Checkpoints are taken while a job trains, are exported, and are what it goes back to when nothing newer is left."""

import json
import shutil
import signal
import time
import unittest

import adamant

EXAMPLES = 100_000  # an epoch of seconds on a fast machine


class CheckpointTest(adamant.TestCase):

    def long_epoch(self, persistence, **values):
        """A job of one epoch that lasts for several checkpoints."""
        job = self.job(epochs=1, workers=1, **values, train=f"{{digits: {{seed: 1, examples: {EXAMPLES}}}}}",
                       layers=adamant.LAYERS.replace("channels: 4", "channels: 32"))
        text = job.read_text().replace("  runPolicy:\n", "  runPolicy:\n    checkpointInterval: 300ms\n")
        job.write_text(text.replace("persistence: {flushInterval: 200ms}", f"persistence: {persistence}"))
        return job

    def await_checkpoint(self, run, timeout=120):
        """The number of the newest checkpoint, once it was taken within an epoch and holds an update."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and run.process.poll() is None:
            for path in (run.folder / "checkpoints").glob("*.json"):
                try:
                    manifest = json.loads(path.read_text())
                except FileNotFoundError:
                    continue  # there is a newer one
                if any(cut["sequence"] > 0 for cut in manifest["cuts"]):
                    return manifest["snapshot"]
            time.sleep(0.01)
        raise AssertionError("no checkpoint was taken")

    def export(self, run, checkpoint, name):
        out = self.folder / name
        result = adamant.adamant("export", run.folder, "--checkpoint", checkpoint, "--format", "safetensors", "--out",
                                 out)
        return result, out

    def test_a_checkpoint_is_exported_while_training_goes_on_and_the_same_afterwards(self):
        run = self.run_in().train(self.long_epoch("{flushInterval: 200ms}"))
        while True:
            checkpoint = self.await_checkpoint(run)
            result, live = self.export(run, checkpoint, "live.safetensors")
            if result.returncode == 0:
                break  # else the next one had replaced it
            self.assertRegex(result.stderr, "holds no checkpoint|checkpoint [0-9]+ cannot be had")
        self.assertIsNone(run.process.poll(), "training goes on")
        self.assertEqual(run.rows(), [], "the epoch has not ended")
        run.kill_all()
        self.assertIn("--resume", adamant.adamant("status", run.folder).stdout)
        result, stored = self.export(run, checkpoint, "stored.safetensors")
        if result.returncode == 0:  # else a newer one had been completed just before the end
            self.assertEqual(live.read_bytes(), stored.read_bytes())
        code, output = run.resume().wait(timeout=240)
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 1, EXAMPLES)

    def export_live(self, run, checkpoint, name, timeout=60):
        """Exports from the running job as soon as its servers are there; returns the file's content."""
        deadline = time.monotonic() + timeout
        while True:
            result, out = self.export(run, checkpoint, name)
            self.assertIsNone(run.process.poll(), "training goes on")
            self.assertNotIn("dns_resolver", result.stderr)
            if result.returncode == 0:
                return out.read_bytes()
            self.assertRegex(result.stderr, "cannot be had (yet|now)|does not answer|has not said where it listens")
            self.assertLess(time.monotonic(), deadline, result.stderr)
            time.sleep(0.05)

    def test_a_checkpoint_is_exported_after_the_job_was_resumed_and_after_a_failover(self):
        run = self.run_in().train(self.job(epochs=9, train=f"{{digits: {{seed: 1, examples: {3 * EXAMPLES}}}}}",
                                           layers=adamant.LAYERS.replace("channels: 4", "channels: 32")))
        run.await_epoch(1)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10)[0], 3)
        result = adamant.adamant("status", run.folder, "--output", "json")
        checkpoint = json.loads(result.stdout)["checkpoint"]
        result, out = self.export(run, checkpoint, "stopped.safetensors")
        self.assertEqual(result.returncode, 0, result.stderr)
        run.resume()
        while "parameter-server-0" not in run.members():  # until then an export reads the disks
            time.sleep(0.05)
        self.assertEqual(self.export_live(run, checkpoint, "resumed.safetensors"), out.read_bytes())
        self.assertTrue(run.kill("parameter-server-0"))
        self.assertEqual(self.export_live(run, checkpoint, "failover.safetensors"), out.read_bytes())
        run.kill_all()

    def test_an_interval_that_is_shorter_than_a_checkpoint_takes_leaves_time_to_train(self):
        job = self.job(workers=2, epochs=3, train="{digits: {seed: 1, examples: 6000}}")
        job.write_text(job.read_text().replace("  runPolicy:\n", "  runPolicy:\n    checkpointInterval: 100ms\n"))
        run = self.run_in().train(job)
        code, output = run.wait(timeout=60)
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 3, 6000)

    def test_a_job_of_which_only_checkpoints_are_stored_goes_back_to_the_newest(self):
        run = self.run_in().train(self.long_epoch("{mode: None}"))
        self.await_checkpoint(run)
        run.kill_all()
        code, output = run.resume().wait(timeout=240)
        self.assertEqual(code, 0, output)
        restored = [event["text"] for event in run.events() if event["event"] == "restored"]
        self.assertTrue(any("the job goes back to checkpoint" in text for text in restored), restored)
        self.assert_counted_once(run, 1, EXAMPLES)

    def test_a_job_of_which_nothing_newer_is_on_disk_goes_back_to_the_newest(self):
        run = self.run_in().train(self.long_epoch("{flushInterval: 10m, flushBytes: 1Gi}"))
        self.await_checkpoint(run)
        run.kill_all()
        code, output = run.resume().wait(timeout=240)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"no update since checkpoint \d+ is on a disk; the job goes back to checkpoint \d+, and trains again")
        self.assertNotIn("rolled back", output)
        self.assert_counted_once(run, 1, EXAMPLES)

    def test_a_job_of_which_only_checkpoints_are_stored_goes_back_when_a_server_dies(self):
        run = self.run_in().train(self.long_epoch("{mode: None}", copies=1))
        self.await_checkpoint(run)
        self.assertTrue(run.kill("parameter-server-0"))
        code, output = run.wait(timeout=240)
        self.assertEqual(code, 0, output)
        texts = [event["text"] for event in run.events() if event["event"] == "went-back"]
        self.assertRegex("\n".join(texts), r"the job goes back to the model within epoch 1 \(checkpoint \d+\) and on as attempt 2")
        self.assert_counted_once(run, 1, EXAMPLES)
        self.assertEqual(run.rows()[0]["attempt"], "2")

    def test_a_server_without_its_disk_is_named_and_the_job_goes_on_when_it_is_back(self):
        run = self.run_in().train(self.job(epochs=30, copies=1))
        run.await_epoch(1)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10)[0], 3)
        disk = run.folder / "data" / "parameter-server-1"
        disk.rename(self.folder / "disk")
        for _ in range(2):
            code, output = run.resume().wait()
            self.assertEqual(code, 1, output)
            self.assertRegex(output, "(?s)checkpoint [0-9]+ cannot be restored either: .*parameter-server-1.*"
                                     "begin the job anew.*begin anew with: adamant train .*job.yaml --run-dir ")
            self.assertNotIn("go on with", output)
        shutil.rmtree(disk)
        (self.folder / "disk").rename(disk)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()

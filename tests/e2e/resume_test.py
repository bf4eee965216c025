"""Runs that were stopped go on: from what is stored, and as what they were."""

import gzip
import json
import os
import shutil
import signal
import time
import unittest

import adamant


def without_log(job):
    """The same job, of which only checkpoints are stored."""
    job.write_text(job.read_text().replace("flushInterval: 200ms", "mode: None"))
    return job


SLOW = adamant.LAYERS.replace("channels: 4", "channels: 256")  # so that an epoch is still open when it is stopped


class ResumeTest(adamant.TestCase):

    def edit(self, run, *replacements):
        manifest = run.folder / "job.yaml"
        text = manifest.read_text()
        for before, after in replacements:
            self.assertIn(before, text)
            text = text.replace(before, after)
        manifest.write_text(text)

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

    def stopped_run(self, **values):
        run = self.run_in().train(self.job(epochs=1000, **values))
        run.await_epoch(1)
        self.interrupt(run)
        return run

    def test_without_a_log_and_a_checkpoint_a_run_begins_again_and_says_so(self):
        run = self.run_in().train(without_log(self.job(epochs=1, train="{digits: {seed: 1, examples: 10000}}", layers=SLOW,
                                                       on_divergence="{action: Fail}")))
        run.await_epoch(0)
        run.kill_all()
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertIn("goes back to its first weights, made anew", output)
        self.assert_counted_once(run, 1, 10000)

    def test_without_a_log_ctrl_c_takes_a_checkpoint_first(self):
        run = self.run_in().train(without_log(self.job(epochs=1, train="{digits: {seed: 1, examples: 20000}}",
                                                       layers=SLOW)))
        run.await_epoch(0)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
            if (status["examples"] or 0) > 500:
                break
        self.interrupt(run)
        stopped = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        self.assertEqual(run.rows(), [], "the epoch's end would have taken one")
        self.assertGreater(stopped["checkpoint"], status["checkpoint"])
        exported = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertIn(f"model: checkpoint {stopped['checkpoint']}, epoch 1: the newest that can be read\n", exported.stderr)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertNotIn("made anew", output)
        self.assertNotIn("is lost", output)
        self.assertIn(f"nothing but checkpoints is stored; the job goes back to checkpoint {stopped['checkpoint']}, and "
                      "trains again what came after it\n", output)
        self.assert_counted_once(run, 1, 20000)

    def test_what_does_not_fit_a_run_is_refused_all_at_once_and_nothing_is_lost(self):
        run = self.stopped_run()
        before = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        started = (run.folder / "started.yaml").read_text()
        edits = (("channels: 4", "channels: 5"), ("batchSize: 32", "batchSize: 16"), ("count: 2", "count: 3"),
                 ("rate: 0.005", "rate: 0.004"), ("mode: Delayed", "mode: WalSync"), ("workers: 2", "workers: 3"))
        self.edit(run, *edits)
        code, output = run.resume().wait()
        self.assertEqual(code, 2, output)
        for line in (r"spec\.model\.network\.layers: changed \(the parameters that are stored",
                     r"spec\.data\.batchSize: 32 -> 16 \(",
                     r"spec\.distribution\.parameterServers\.count: 2 -> 3 \(",
                     r"spec\.optimiser\.rate: 0\.005 -> 0\.004 \(--accept-changes takes it\)",
                     r"spec\.distribution\.parameterServers\.persistence\.mode: Delayed -> WalSync \(--accept"):
            self.assertRegex(output, line)
        self.assertNotIn("spec.distribution.workers", output)
        self.edit(run, *((after, before) for before, after in edits if before != "mode: Delayed"))
        self.edit(run, ("mode: WalSync", "mode: Delayed"))
        self.assertEqual(json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)["epoch"],
                         before["epoch"])
        self.assertEqual((run.folder / "started.yaml").read_text(), started)
        run.resume()
        run.await_epoch(before["epoch"])
        self.assertNotIn("went-back", [event["event"] for event in run.events()])

    def test_the_mode_none_is_refused_before_what_it_makes_mistakes_of(self):
        run = self.stopped_run()
        self.edit(run, ("mode: Delayed", "mode: None"))
        code, output = run.resume().wait()
        self.assertEqual(code, 2, output)
        self.assertRegex(output, r"^adamant: .*persistence\.mode: Delayed -> None \(with None, checkpoints alone are stored\)")

    def test_what_may_change_is_taken_and_told(self):
        run = self.stopped_run()
        epochs = len(run.rows()) + 2
        self.edit(run, ("workers: 2", "workers: 3"), ("epochs: 1000", f"epochs: {epochs}"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertIn("changed since the run was started: spec.distribution.workers: 2 -> 3\n", output)
        self.assertIn(f"changed since the run was started: spec.runPolicy.epochs: 1000 -> {epochs}\n", output)
        self.assertIn("changed since the run was started: spec.distribution.workers: 2 -> 3",
                      [event["text"] for event in run.events() if event["event"] == "warning"])
        self.assert_counted_once(run, epochs, 3000)

    def test_changes_of_the_training_are_taken_when_they_are_meant(self):
        run = self.stopped_run()
        epochs = len(run.rows()) + 2
        self.edit(run, ("rate: 0.005", "rate: 0.004"), ("epochs: 1000", f"epochs: {epochs}"))
        code, output = run.start("--resume", run.folder, "--accept-changes").wait()
        self.assertEqual(code, 0, output)
        self.assertIn("spec.optimiser.rate: 0.005 -> 0.004\n", output)
        self.assertIn("rate: 0.004", (run.folder / "started.yaml").read_text())
        self.edit(run, ("seed: 1", "seed: 7"))
        code, output = run.start("--resume", run.folder, "--accept-changes").wait()
        self.assertEqual(code, 2, output)
        self.assertIn("spec.runPolicy.seed: 1 -> 7 (the weights were drawn", output)

    def test_a_rate_that_is_written_anew_after_training_diverged_is_taken_as_it_is(self):
        run = self.run_in().train(self.job(optimiser="{kind: Sgd, rate: 100}",
                                           validation="{digits: {seed: 2, examples: 1000}}",
                                           on_divergence="{action: Recover, times: 1}"))
        code, output = run.wait()
        self.assertEqual(code, 1, output)
        self.edit(run, ("rate: 100", "rate: 0.05"))
        code, output = run.start("--resume", run.folder, "--accept-changes").wait()
        self.assertEqual(code, 0, output)
        status = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        self.assertEqual((status["rate_factor"], status["attempt"]), (1, 3))

    def test_a_run_from_before_goes_on_as_its_manifest_says_if_that_is_accepted(self):
        run = self.stopped_run()
        (run.folder / "started.yaml").unlink()
        epochs = len(run.rows()) + 1
        self.edit(run, ("rate: 0.005", "rate: 0.004"), ("epochs: 1000", f"epochs: {epochs}"))
        code, output = run.start("--resume", run.folder, "--accept-changes").wait()
        self.assertEqual(code, 0, output)
        self.assertTrue((run.folder / "started.yaml").exists())

    def test_a_server_folder_that_is_an_earlier_copy_is_told(self):
        run = self.stopped_run(workers=1, parameter_servers=1)
        folder, earlier = run.folder / "data" / "parameter-server-0", self.folder / "earlier"
        shutil.copytree(folder, earlier)
        trained = len(run.rows())
        run.resume().await_epoch(trained + 3)
        self.interrupt(run)
        shutil.rmtree(folder)
        shutil.copytree(earlier, folder)
        code, output = run.resume().wait()
        self.assertEqual(code, 1, output)
        alarms = [event["text"] for event in run.events() if event["event"] == "alarm"]
        self.assertTrue(any("parameter-server-0: its disk seems to be an earlier copy, put back: incarnation 1 was the last to "
                            "open it, and incarnation 2 has held buckets since" in text for text in alarms), alarms)

    def test_a_run_that_was_begun_with_one_copy_keeps_one(self):
        job = self.job(epochs=1000)
        job.write_text(job.read_text().replace("{count: 2,", "{count: 2, copies: 1,"))
        run = self.run_in().train(job)
        run.await_epoch(1)
        self.interrupt(run)
        self.assertIn("copies: 1\n", (run.folder / "job.yaml").read_text())
        epochs = len(run.rows()) + 1
        self.edit(run, ("copies: 1\n", "\n"), ("epochs: 1000", f"epochs: {epochs}"))
        code, output = run.resume().wait()
        self.assertEqual(code, 2, output)
        self.assertIn("spec.distribution.parameterServers.copies: 1 -> 2 (--accept-changes takes it)", output)
        self.edit(run, ("count: 2\n", "count: 2\n      copies: 1\n"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        status = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        self.assertEqual({len(bucket["members"]) for bucket in status["buckets"]}, {1})

    def test_a_finished_run_trains_on_when_it_gets_more_epochs(self):
        run = self.run_in().train(self.job(epochs=2))
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.edit(run, ("workers: 2", "workers: 3"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertIn("warning: the run has succeeded, and of what has changed in its job.yaml or its data nothing is taken", output)
        self.assertIn("workers: 2", (run.folder / "started.yaml").read_text())
        self.edit(run, ("epochs: 2", "epochs: 4"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertIn("warning: changed since the run was started: spec.runPolicy.epochs: 2 -> 4\n", output)
        self.assertNotIn("is lost", output)
        self.assert_counted_once(run, 4, 3000)
        self.assertEqual({row["attempt"] for row in run.rows()}, {"1"})
        self.assertEqual({row["updates_lost"] for row in run.rows()}, {"0"})
        self.assertIn("epoch 4/4", output)

    def test_a_run_whose_deadline_was_over_goes_on_once_it_is_raised(self):
        job = self.job(epochs=1000, layers=SLOW)
        job.write_text(job.read_text().replace("seed: 1\n    restart", "seed: 1\n    activeDeadline: 4s\n    restart"))
        run = self.run_in().train(job)
        code, output = run.wait()
        self.assertEqual(code, 1, output)
        advice = f"raise spec.runPolicy.activeDeadline in {run.folder}/job.yaml first, or delete it; then go on with"
        self.assertIn("longer than spec.runPolicy.activeDeadline, 4 s", output)
        self.assertIn(advice, output)
        self.assertIn(advice, adamant.adamant("status", run.folder).stdout)
        evaluated = adamant.adamant("eval", run.folder)
        self.assertEqual(evaluated.returncode, 2)
        self.assertIn("holds no model, as the job failed (the job ran longer", evaluated.stderr)
        self.assertIn(advice, adamant.in_one_line(evaluated.stderr))
        self.edit(run, ("activeDeadline: 4s", "activeDeadline: 1h"), ("epochs: 1000", "epochs: 1"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertNotRegex(output, r"epoch (\d+)/(?!\1\b)\d+ ")

    def test_a_target_that_is_not_reached_is_told(self):
        job = self.job(epochs=1)
        job.write_text(job.read_text().replace("epochs: 1\n", "epochs: 1\n    targetAccuracy: 1\n"))
        run = self.run_in().train(job)
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count("spec.runPolicy.targetAccuracy, 1, was not reached: top-1 is 0."), 1, output)
        self.assertIn("was not reached", adamant.adamant("status", run.folder).stdout)
        self.assertIn("was not reached", [event for event in run.events() if event["event"] == "alarm"][-1]["text"])

    def run_on_files(self, compressed=True):
        """A stopped run on files of digits."""
        self.draw(1)
        for file in () if compressed else (self.folder / "data").iterdir():
            file.write_bytes(gzip.decompress(file.read_bytes()))
        files = {"train": "train", "validation": "t10k"}
        sources = {field: "{idx: {" + ", ".join(f"{kind}: {self.data_file(prefix, kind)}" for kind in ("images", "labels"))
                          + "}}" for field, prefix in files.items()}
        return self.stopped_run(**sources)

    def data_file(self, prefix, kind):
        return self.folder / "data" / f"{prefix}-{kind}-idx{3 if kind == 'images' else 1}-ubyte.gz"

    def draw(self, seed, train=3000):
        adamant.adamant("data", "digits", "--out", self.folder / "data", "--train", train, "--validation", 500,
                        "--seed", seed).check_returncode()

    def test_other_data_is_refused_unless_it_is_meant(self):
        run = self.run_on_files()
        epochs = len(run.rows()) + 2
        self.edit(run, ("epochs: 1000", f"epochs: {epochs}"))
        self.draw(7)
        files = {f"spec.data.{field}.idx.{kind}": self.data_file(prefix, kind)
                 for field, prefix in (("train", "train"), ("validation", "t10k")) for kind in ("images", "labels")}
        events = (run.folder / "events.jsonl").read_text()
        code, output = run.resume().wait()
        self.assertEqual(code, 2, output)
        self.assertIn("or its data is not what the run was started with; nothing was started:\n", output)
        for field, file in files.items():
            self.assertIn(f"  {field}: {file} is not the file that the job began with: its content differs "
                          "(--accept-changes takes it, or put that file back, or begin a new run with this one)\n", output)
        self.assertEqual((run.folder / "events.jsonl").read_text(), events)
        code, output = run.start("--resume", run.folder, "--accept-changes").wait()
        self.assertEqual(code, 0, output)
        for field, file in files.items():
            self.assertIn(f"changed since the run was started: {field}: {file} is not the file", output)
        self.assert_counted_once(run, epochs, 3000)
        self.edit(run, (f"epochs: {epochs}", f"epochs: {epochs + 1}"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertNotIn("is not the file", output)
        self.assert_counted_once(run, epochs + 1, 3000)

    def test_training_data_of_another_size_is_never_taken(self):
        run = self.run_on_files()
        epochs = len(run.rows()) + 1
        self.edit(run, ("epochs: 1000", f"epochs: {epochs}"))
        events = (run.folder / "events.jsonl").read_text()
        # 2,990 examples are as many batches as 3,000.
        for examples, *options in ((1000,), (1000, "--accept-changes"), (2990, "--accept-changes")):
            self.draw(1, train=examples)
            code, output = run.start("--resume", run.folder, *options).wait()
            self.assertEqual(code, 2, output)
            self.assertIn(f"  spec.data.train: 3000 examples -> {examples} (what of an epoch is done is counted in the batches "
                          "as they were: put those files back, or begin a new run with these)\n", output)
            self.assertNotIn("--accept-changes takes it", output)
        other = self.folder / "other"
        (self.folder / "data").rename(other)
        self.draw(1)
        self.edit(run, (f"images: {self.data_file('train', 'images')}", f"images: {other / self.data_file('train', 'images').name}"),
                  (f"labels: {self.data_file('train', 'labels')}", f"labels: {other / self.data_file('train', 'labels').name}"))
        code, output = run.resume().wait()
        self.assertEqual(code, 2, output)
        self.assertNotIn("--accept-changes takes it", output)
        self.edit(run, (str(other / "train-images"), str(self.folder / "data" / "train-images")),
                  (str(other / "train-labels"), str(self.folder / "data" / "train-labels")))
        self.assertEqual((run.folder / "events.jsonl").read_text(), events)
        code, output = run.resume().wait()  # the files are those of before
        self.assertEqual(code, 0, output)
        self.assertNotIn("is not the file", output)
        self.assert_counted_once(run, epochs, 3000)

    def test_a_finished_run_takes_nothing_of_other_data(self):
        run = self.run_on_files()
        self.edit(run, ("epochs: 1000", f"epochs: {len(run.rows()) + 1}"))
        self.assertEqual(run.resume().wait()[0], 0)
        warning = "warning: the run has succeeded, and of what has changed in its job.yaml or its data nothing is taken"
        for seed, examples in ((7, 3000), (7, 1000)):
            self.draw(seed, train=examples)
            code, output = run.resume().wait()
            self.assertEqual(code, 0, output)
            self.assertIn(warning, output)
            self.assertNotIn("--accept-changes", output)
        self.draw(1)
        self.edit(run, ("rate: 0.005", "rate: 0.004"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertIn(warning, output)
        self.edit(run, ("rate: 0.004", "rate: 0.005"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertNotIn("nothing is taken", output)

    def test_other_data_of_the_same_size_that_is_not_compressed_is_refused(self):
        run = self.run_on_files(compressed=False)
        labels = self.data_file("t10k", "labels")
        content = bytearray(labels.read_bytes())
        content[300] = (content[300] + 1) % 10
        labels.write_bytes(content)
        code, output = run.resume().wait()
        self.assertEqual(code, 2, output)
        self.assertIn(f"spec.data.validation.idx.labels: {labels} is not the file that the job began with", output)
        self.assertEqual(output.count("is not the file"), 1, output)

    def test_the_same_data_goes_on_wherever_it_is_and_however_new(self):
        run = self.run_on_files()
        epochs = len(run.rows()) + 1
        self.edit(run, ("epochs: 1000", f"epochs: {epochs}"))
        for prefix in ("train", "t10k"):
            images, labels = (self.data_file(prefix, kind) for kind in ("images", "labels"))
            os.utime(labels, (0, 0))
            copy = self.folder / "copy"
            copy.write_bytes(images.read_bytes())
            copy.replace(images)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, epochs, 3000)

    def test_a_data_server_that_comes_back_refuses_other_data(self):
        run = self.run_on_files()
        run.resume()
        run.await_epoch(len(run.rows()) + 1)
        self.draw(7)
        while not run.kill("data-server-0"):
            time.sleep(0.01)
        code, output = run.wait()
        self.assertEqual(code, 2, output)
        self.assertIn(f"spec.data.train.idx.images: {self.data_file('train', 'images')} is not the file that the job began "
                      "with: its content differs; only with that file can the job go on", output)
        self.draw(1)
        epochs = len(run.rows()) + 1
        self.edit(run, ("epochs: 1000", f"epochs: {epochs}"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, epochs, 3000)

    def test_accepting_changes_needs_a_run(self):
        result = adamant.adamant("train", self.job(), "--accept-changes", "--run-dir", self.folder / "run")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--accept-changes goes with --resume", result.stderr)
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main()

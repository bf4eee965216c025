"""What has been trained is looked at, measured and exported without what training needs."""

import json
import math
import shutil
import signal
import struct
import unittest

import adamant


NOTHING_TAKEN = ("warning: the run has succeeded, and of what has changed in its job.yaml or its data nothing is taken: it trains on "
                 "only with more spec.runPolicy.epochs in {}, which has 1 now. Changed: ")


class FinishedTest(adamant.TestCase):

    def file(self, prefix, kind):
        return self.folder / "data" / f"{prefix}-{kind}-idx{3 if kind == 'images' else 1}-ubyte.gz"

    def setUp(self):
        super().setUp()
        adamant.adamant("data", "digits", "--out", self.folder / "data", "--train", 3000, "--validation", 200).check_returncode()
        sources = {field: "{idx: {" + ", ".join(f"{kind}: {self.file(prefix, kind)}" for kind in ("images", "labels")) + "}}"
                   for field, prefix in {"train": "train", "validation": "t10k"}.items()}
        self.trained = self.run_in().train(self.job(epochs=1, **sources))
        code, output = self.trained.wait()
        self.assertEqual(code, 0, output)
        self.result = next(line for line in output.splitlines() if line.startswith("top-1 "))
        self.model = self.trained.folder / "model.safetensors"
        self.manifest = self.trained.folder / "job.yaml"

    def assert_all_work(self, warning=None, other_data=""):
        """Each command does its work; with `warning`, each says so that uses the manifest. `other_data`: what --resume says."""
        out = self.folder / "out.onnx"
        beside = f"net and data: {self.manifest if warning is None else self.trained.folder / 'started.yaml'}, beside the model\n"
        for command, shown, told in (
                (("status", self.trained.folder), "Succeeded", ""),
                (("eval", self.trained.folder), "of 200", ""),
                (("eval", self.model), "of 200", beside),
                (("export", self.trained.folder, "--format", "onnx", "--out", out), str(out), None),
                (("train", "--resume", self.trained.folder), self.result, other_data)):
            with self.subTest(command=command[0]):
                result = adamant.adamant(*command)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(shown, result.stdout)
                if told is None:
                    self.assertEqual((adamant.but_poor(result.stderr), out.read_bytes()), ("", (self.trained.folder / "model.onnx").read_bytes()))
                else:
                    self.assertEqual(adamant.but_poor(result.stderr), ("" if warning is None else f"warning: {warning}\n") + told)

    def assert_trains_on_with(self, problem):
        text = self.manifest.read_text()
        self.manifest.write_text(text.replace("epochs: 1\n", "epochs: 2\n"))
        result = adamant.adamant("train", "--resume", self.trained.folder)
        self.assertEqual((result.returncode, len(self.trained.rows())), (2, 1), result.stdout)
        self.assertIn(problem, result.stderr)
        self.manifest.write_text(text)

    def test_the_training_data_may_be_gone(self):
        for kind in ("images", "labels"):
            self.file("train", kind).unlink()
        self.assert_all_work()
        self.assert_trains_on_with(f"spec.data.train.idx.images: there is no file {self.file('train', 'images')}")

    def test_a_file_of_the_training_data_may_be_damaged(self):
        self.file("train", "labels").write_bytes(b"no labels")
        self.assert_all_work(other_data=NOTHING_TAKEN.format(self.manifest) + f"spec.data.train.idx.labels: {self.file('train', 'labels')} is "
                                        "not the file that the job began with: its content differs\n")
        self.assert_trains_on_with("spec.data.train.idx.labels: ")

    def test_only_eval_needs_the_validation_data(self):
        labels = self.file("t10k", "labels")
        labels.unlink()
        for command in (("status", self.trained.folder), ("train", "--resume", self.trained.folder),
                        ("export", self.trained.folder, "--format", "onnx", "--out", self.folder / "out.onnx")):
            result = adamant.adamant(*command)
            self.assertEqual((result.returncode, adamant.but_poor(result.stderr)), (0, ""))
        result = adamant.adamant("eval", self.trained.folder)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(f"spec.data.validation.idx.labels: there is no file {labels}", result.stderr)

    def test_a_manifest_with_a_field_that_nobody_knows_is_told_and_not_taken(self):
        text = self.manifest.read_text()
        self.manifest.write_text(text.replace("spec:\n", "spec:\n  colour: red\n"))
        line = text[:text.index("spec:\n")].count("\n") + 2
        self.assertIn("  colour: red\n", self.manifest.read_text())
        allowed = adamant.adamant("validate", self.manifest).stderr.splitlines()[0]
        self.assertTrue(allowed.startswith(f"{self.manifest}:{line}:"), allowed)
        self.assert_all_work(f"{allowed}; {self.trained.folder / 'started.yaml'} is taken, with which the run was started")
        (self.trained.folder / "started.yaml").unlink()
        for command in (("status",), ("eval",), ("train", "--resume")):
            result = adamant.adamant(*command, self.trained.folder)
            self.assertEqual((result.returncode, result.stderr.splitlines()[-1].removeprefix("adamant: ")), (2, allowed))

    def test_more_epochs_are_refused_where_the_manifest_has_mistakes(self):
        text = self.manifest.read_text()
        for good, bad, field in (("spec:\n", "spec:\n  colour: red\n", "spec.colour"),
                                 ("rate: 0.005", "rate: -1", "spec.optimiser.rate"),
                                 ("  runPolicy:\n", "  runPolicy:\n    epoch: 2\n", "spec.runPolicy.epoch")):
            edited = text.replace(good, bad, 1)
            if "epoch: " not in bad:  # a mistake in how many are wanted is refused by itself
                edited = edited.replace("epochs: 1\n", "epochs: 2\n")
            self.manifest.write_text(edited)
            line = next(i for i, line in enumerate(edited.splitlines(), 1) if bad.splitlines()[-1] in line)
            result = adamant.adamant("train", "--resume", self.trained.folder)
            self.assertEqual((result.returncode, len(self.trained.rows())), (2, 1), result.stdout)
            self.assertRegex(result.stderr, f"^{self.manifest}:{line}:[0-9]+: {field}: ")
        self.assertEqual(adamant.adamant("status", self.trained.folder).returncode, 0)

    def test_a_rate_that_is_changed_without_more_epochs_has_no_effect_and_that_is_told(self):
        self.manifest.write_text(self.manifest.read_text().replace("rate: 0.005", "rate: 0.01"))
        result = adamant.adamant("train", "--resume", self.trained.folder)
        self.assertEqual((result.returncode, len(self.trained.rows())), (0, 1))
        self.assertEqual(result.stderr, NOTHING_TAKEN.format(self.manifest) + "spec.optimiser.rate: 0.005 -> 0.01\n")

    def test_a_stopped_run_is_looked_at_without_data_and_needs_it_to_go_on(self):
        self.manifest.write_text(self.manifest.read_text().replace("epochs: 1\n", "epochs: 1000\n"))
        self.trained.resume().await_epoch(1)
        self.trained.kill_all()
        self.file("train", "images").unlink()
        status = json.loads(adamant.adamant("status", self.trained.folder, "--output", "json").stdout)
        self.assertEqual(status["phase"], "Interrupted")
        result = adamant.adamant("train", "--resume", self.trained.folder)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("there is no file", result.stderr)

    def test_eval_tells_a_killed_run_from_a_stopped_one(self):
        run = self.run_in("other").train(self.job(epochs=10000))
        run.await_epoch(0)
        run.kill_all()
        self.assertIn("this one was interrupted: its adamant train is gone", adamant.adamant("eval", run.folder).stderr)
        run.resume().await_epoch(1)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait()[0], 3)
        stopped = adamant.in_one_line(adamant.adamant("eval", run.folder).stderr)
        self.assertIn("this one was stopped; go on with", stopped)

    def test_a_lost_checkpoint_is_only_made_again_by_a_run_that_goes_on(self):
        number = next((self.trained.folder / "checkpoints").glob("*.json")).stem
        command = ("export", self.trained.folder, "--checkpoint", number, "--format", "onnx", "--out", self.folder / "x")
        for store in (self.trained.folder / "data").iterdir():
            shutil.rmtree(store)
        result = adamant.adamant(*command)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(f"the run has succeeded, and makes no other; its model is {self.model}", result.stderr)
        self.model.unlink()
        self.assertIn(f"can only be trained anew: adamant train {self.manifest} --run-dir NEW_FOLDER",
                      adamant.adamant(*command).stderr)

    def test_a_run_makes_another_checkpoint_only_with_the_folders_that_it_needs(self):
        for copies, goes_on in ((1, False), (2, True)):
            with self.subTest(copies=copies):
                run = self.run_in(f"copies-{copies}").train(self.job(epochs=10000, copies=copies))
                run.await_epoch(1)
                run.kill_all()
                number = next((run.folder / "checkpoints").glob("*.json")).stem
                stores = list((run.folder / "data").glob("parameter-server-*"))
                for store in [*stores, *(store / "shards" for store in stores)]:
                    store.rename(self.folder / "away")
                    result = adamant.adamant("export", run.folder, "--checkpoint", number, "--format", "onnx",
                                             "--out", self.folder / "x")
                    (self.folder / "away").rename(store)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertEqual("adamant train --resume" in result.stderr, goes_on, result.stderr)
                    self.assertEqual("can only be trained anew" in result.stderr, not goes_on, result.stderr)

    def test_what_a_killed_one_has_half_written_goes_away(self):
        left = [self.trained.folder / f"{name}.tmp" for name in ("learning-curve.svg", "model.onnx", "checkpoints/1.json")]
        mine = self.trained.folder / "notes.tmp"
        for path in (*left, mine):
            path.write_text("half")
        adamant.adamant("train", "--resume", self.trained.folder).check_returncode()
        self.assertEqual([path.name for path in (*left, mine) if path.exists()], ["notes.tmp"])

    def test_the_export_of_a_model_that_holds_nan_warns(self):
        content = self.model.read_bytes()
        size = 8 + struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:size])
        del header["__metadata__"]["xxh3_64"]
        header = json.dumps(header).encode()
        self.model.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<f", math.nan) + content[size + 4:])
        for kind in ("safetensors", "onnx"):
            out = self.folder / f"out.{kind}"
            result = adamant.adamant("export", self.trained.folder, "--format", kind, "--out", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("warning: 1 of the model's ", result.stderr)
            self.assertIn(b"not_finite", out.read_bytes())

    def test_a_run_whose_manifest_is_gone_is_called_one_and_says_how_it_comes_back(self):
        run = self.trained
        commands = (["train", "--resume"], ["status"], ["export", "--format", "onnx", "--out", self.folder / "x"], ["eval"])
        manifest, started = run.folder / "job.yaml", run.folder / "started.yaml"
        kept = manifest.read_text()
        manifest.unlink()
        for command in commands:
            result = adamant.adamant(*command, run.folder)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"{run.folder} holds a run whose job.yaml is missing; what it was started with last puts it back: "
                          f"cp {started} {manifest}", result.stderr)
        shutil.copy(started, manifest)
        for command in commands:
            self.assertEqual(adamant.adamant(*command, run.folder).returncode, 0, command)
        manifest.unlink()
        started.unlink()
        for command in commands:
            result = adamant.adamant(*command, run.folder)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"put the manifest that it was started with there as {manifest}", result.stderr)
        manifest.write_text(kept)
        for command in commands:
            self.assertEqual(adamant.adamant(*command, run.folder).returncode, 0, command)


if __name__ == "__main__":
    unittest.main()

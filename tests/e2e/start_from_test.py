#!/usr/bin/env python3
"""Checkpoints are copied whole while a job trains, and another job begins with one, or with weights alone."""

import array
import unittest

import adamant
from start_from import COPIES, StartFromCase, values


class StartFromTest(StartFromCase):

    def loss(self, run):
        """Of its first epoch."""
        row = run.rows()[0]
        self.assertNotEqual(row["training_loss"], "", (row, run.events()))
        return float(row["training_loss"])

    def test_a_job_that_goes_on_from_a_copy_is_like_one_that_was_not_disturbed_but_for_rounding(self):
        whole = self.first()
        copy = self.copied(whole)[1]
        rest = self.finished("rest", self.job_with(f"  startFrom: {{checkpoint: {{path: {copy}}}}}\n", name="restored"))
        weights, others = (array.array("f", values(run.folder / "model.safetensors")) for run in (whole, rest))
        self.assertEqual(len(weights), len(others))
        self.assertLess(max(abs(one - other) for one, other in zip(weights, others)), 1e-4)
        self.assert_counted_once(rest, 2, 3000)
        self.assertEqual([row["attempt"] for row in rest.rows()], ["1", "1"])

    def test_a_job_that_goes_on_from_an_export_has_the_bits_of_one_that_was_resumed(self):
        state = dict(optimiser="{kind: Momentum, location: Server, momentum: 0.5, rate: 0.01}")
        run = self.finished("resumed", self.job_with(epochs=1, **state))
        saved = self.folder / "saved"
        result = adamant.adamant("export", run.folder, "--format", "checkpoint", "--out", saved)
        self.assertEqual(result.returncode, 0, result.stderr)
        job = run.folder / "job.yaml"
        job.write_text(job.read_text().replace("epochs: 1\n", "epochs: 2\n"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        other = self.finished("other", self.job_with(f"  startFrom: {{checkpoint: {{path: {saved}}}}}\n", **state))
        self.assertEqual(values(run.folder / "model.safetensors"), values(other.folder / "model.safetensors"))

    def test_weights_begin_a_new_training(self):
        first = self.first()
        for name in ("model.safetensors", "model.onnx", self.copied(first)[2].relative_to(first.folder)):
            with self.subTest(name):
                more = f"  startFrom: {{weights: {{path: {first.folder / name}}}}}\n"
                run = self.finished(f"from-{len(str(name))}", self.job_with(more, epochs=1))
                self.assert_counted_once(run, 1, 3000)
                self.assertLess(self.loss(run), self.loss(first))

    def test_another_net_or_other_data_is_refused_before_anything_is_begun(self):
        copy = self.copied(self.first())[1]
        more = f"  startFrom: {{checkpoint: {{path: {copy}}}}}\n"
        output = self.refused(self.job_with(more, layers=adamant.LAYERS.replace("channels: 4", "channels: 6")))
        self.assertIn("spec.startFrom.checkpoint: ", output)
        self.assertIn("conv1.weight is 4x1x5x5, the net needs 6x1x5x5", output)
        output = self.refused(self.job_with(more, train="{digits: {seed: 1, examples: 2000}}"))
        self.assertIn("spec.data.train.digits.examples: 3000 -> 2000", output)
        more = more.replace("checkpoint:", "weights:")
        output = self.refused(self.job_with(more, layers=adamant.LAYERS.replace("channels: 4", "channels: 6")))
        self.assertIn("spec.startFrom.weights: ", output)
        self.assertIn("conv1.weight is 4x1x5x5, the net needs 6x1x5x5", output)

    def test_a_damaged_file_is_refused_by_its_checksum(self):
        copy = self.copied(self.first())[1]
        file = copy / "bucket-00000003"
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        output = self.refused(self.job_with(f"  startFrom: {{checkpoint: {{path: {copy}}}}}\n"))
        self.assertIn("bucket-00000003 is damaged", output)
        self.assertIn("checksum", output)

    def test_the_newest_copies_are_kept(self):
        run = self.finished("kept", self.job_with(COPIES.replace("keep: 5", "keep: 1"), epochs=3))
        self.assertEqual(set(self.copied(run)), {3})


if __name__ == "__main__":
    unittest.main()

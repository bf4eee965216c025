"""What a run leaves for other tools, read by them."""

import json
import pathlib
import subprocess
import unittest

import adamant

HERE = pathlib.Path(__file__).resolve().parent


class ModelTest(adamant.TestCase):

    def test_onnxruntime_classifies_as_eval_does_and_both_files_say_what_they_take(self):
        data = self.folder / "digits"
        adamant.adamant("data", "digits", "--out", data, "--train", 3000, "--validation", 500).check_returncode()
        job = self.job(epochs=2, train=f"{{idx: {{images: {data}/train-images-idx3-ubyte.gz, "
                                       f"labels: {data}/train-labels-idx1-ubyte.gz}}}}",
                       validation=f"{{idx: {{images: {data}/t10k-images-idx3-ubyte.gz, "
                                  f"labels: {data}/t10k-labels-idx1-ubyte.gz}}}}")
        job.write_text(job.read_text().replace(
            "  optimiser:", "    transformations: {normalise: {mean: 0.25, deviation: 0.5}}\n  optimiser:"))
        run = self.run_in().train(job)
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        evaluated = adamant.adamant("eval", run.folder, "--predictions", self.folder / "classes.txt")
        self.assertEqual(evaluated.returncode, 0, evaluated.stderr)
        python = subprocess.run([HERE.parents[1] / "tools" / "python_env"], capture_output=True, text=True,
                                check=True).stdout.strip()
        shown = subprocess.run([python, HERE / "predict.py", run.folder / "model.onnx",
                                run.folder / "model.safetensors", data / "t10k-images-idx3-ubyte.gz"],
                               capture_output=True, text=True, check=False)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        onnx, safetensors, *classes = shown.stdout.splitlines()
        self.assertEqual(classes, (self.folder / "classes.txt").read_text().split())
        self.assertGreater(len(set(classes)), 1, "a model that says one thing of all shows nothing")
        metadata = json.loads(onnx)
        of_weights = json.loads(safetensors)
        self.assertEqual(len(of_weights.pop("xxh3_64")), 16)
        self.assertEqual(len(metadata.pop("xxh3_64")), 16)
        self.assertEqual(metadata, of_weights)
        self.assertEqual({name: metadata[name] for name in ("job", "epoch", "mean", "deviation")},
                         {"job": "tiny", "epoch": "2", "mean": "[63.75]", "deviation": "[127.5]"})
        self.assertAlmostEqual(float(metadata["top1"]), float(run.rows()[-1]["top1"]), places=5)
        self.assertIn("[batch, 1, 28, 28] (NCHW): pixels from 0 to 255", metadata["input"])
        self.assertNotIn("classes", metadata)  # of files nobody knows their names
        self.assertEqual(metadata["net"], """input: 1x28x28
conv1: Conv2d(input), channels 4, kernel 5x5
pool1: MaxPool(conv1), kernel 4x4, stride 4x4
relu1: Relu(pool1)
fc1: FullyConnected(relu1), outputs 10
output: fc1
""")

    def test_the_classes_of_drawn_digits_have_names(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        header = (run.folder / "model.safetensors").read_bytes()[8:].split(b"}")[0].decode() + "}}"
        self.assertEqual(json.loads(json.loads(header)["__metadata__"]["classes"]), list("0123456789"))

    def test_a_model_is_evaluated_and_exported_with_the_normalisation_that_it_was_trained_with(self):
        def normalised(job, mean):
            job.write_text(job.read_text().replace(
                "  optimiser:", f"    transformations: {{normalise: {{mean: {mean}, deviation: 0.5}}}}\n  optimiser:"))
            return job

        run = self.run_in().train(normalised(self.job(epochs=2), 0.25))
        self.assertEqual(run.wait()[0], 0)
        model = run.folder / "model.safetensors"
        right = adamant.adamant("eval", run.folder)
        self.assertEqual((right.returncode, adamant.but_poor(right.stderr)), (0, ""))
        warning = (f"warning: {model} normalises pixels (0 to 255) by mean [63.75], deviation [127.5], as it was trained; "
                   "that is used, not mean {}, deviation {}, which is 255 times what is in {}\n")
        for other, mean, deviation in ((normalised(self.job(), -0.5), "[-127.5]", "[127.5]"), (self.job(), "[0]", "[255]")):
            named = adamant.adamant("eval", model, "--job", other)
            self.assertEqual((named.returncode, named.stdout, named.stderr),
                             (0, right.stdout, warning.format(mean, deviation, other)))

        written = (run.folder / "model.onnx").read_bytes()
        checkpoint = next((run.folder / "checkpoints").iterdir()).stem
        before, after = self.folder / "before.safetensors", self.folder / "after.safetensors"
        of_checkpoint = ("export", run.folder, "--checkpoint", checkpoint, "--format", "safetensors", "--out")
        adamant.adamant(*of_checkpoint, before).check_returncode()
        manifest = run.folder / "job.yaml"
        manifest.write_text(manifest.read_text().replace("mean: 0.25", "mean: -0.5"))
        adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "again.onnx").check_returncode()
        self.assertEqual((self.folder / "again.onnx").read_bytes(), written)
        adamant.adamant(*of_checkpoint, after).check_returncode()
        self.assertEqual(after.read_bytes(), before.read_bytes())

    def test_a_net_of_the_same_tensors_that_computes_something_else_is_another_net(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        for layers, difference in (
                (adamant.LAYERS.replace("Relu", "Tanh"), "relu1: Relu(pool1), not relu1: Tanh(pool1)"),
                (adamant.LAYERS.replace("MaxPool", "AveragePool"), "pool1: MaxPool(conv1), kernel 4x4, stride 4x4, not pool1: Av")):
            other = adamant.adamant("eval", run.folder / "model.safetensors", "--job", self.job(layers=layers))
            self.assertEqual((other.returncode, other.stdout), (2, ""))
            self.assertIn(f"is a model of another net: it has {difference}", other.stderr)


if __name__ == "__main__":
    unittest.main()

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
        self.assertEqual(metadata, of_weights)
        self.assertEqual({name: metadata[name] for name in ("job", "epoch", "mean", "deviation")},
                         {"job": "tiny", "epoch": "2", "mean": "[63.75]", "deviation": "[127.5]"})
        self.assertAlmostEqual(float(metadata["top1"]), float(run.rows()[-1]["top1"]), places=5)
        self.assertIn("[batch, 1, 28, 28] (NCHW): pixels from 0 to 255", metadata["input"])
        self.assertNotIn("classes", metadata)  # of files nobody knows their names

    def test_the_classes_of_drawn_digits_have_names(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        header = (run.folder / "model.safetensors").read_bytes()[8:].split(b"}")[0].decode() + "}}"
        self.assertEqual(json.loads(json.loads(header)["__metadata__"]["classes"]), list("0123456789"))


if __name__ == "__main__":
    unittest.main()

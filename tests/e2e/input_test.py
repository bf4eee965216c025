"""What is wrong from the start ends in one clear message and the documented exit code."""

import gzip
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import adamant


class InputTest(adamant.TestCase):

    def assert_refused(self, result, code, *texts):
        output = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, output)
        for text in texts:
            self.assertIn(text, output)
        self.assertNotIn("terminate called", output)

    def train(self, job, *arguments):
        return adamant.adamant("train", job, "--run-dir", self.folder / "run", *arguments)

    def test_unknown_commands_and_flags(self):
        self.assert_refused(adamant.adamant("trian"), 2, "trian")
        self.assert_refused(adamant.adamant("train", "--fast"), 2)
        self.assert_refused(adamant.adamant(), 2)

    def test_output_that_is_lost_is_no_success(self):
        job = self.job(workers=1)  # which warns of nothing
        for command in (("version",), ("--version",), ("help",), ("train", "--help"), ("completion", "bash"), ("validate", job),
                        ("validate", "--show-defaults", job), ("plan", "--steps", "1", job)):
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                result = subprocess.run([adamant.binary_folder() / "adamant", *map(str, command)], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=60, check=False)
                self.assertEqual(result.returncode, 4, result.stderr)
                self.assertEqual(result.stderr, "adamant: cannot write standard output: No space left on device\n")

    def test_a_reader_that_leaves_makes_no_error(self):
        for restored in (True, False):  # SIGPIPE: as shells have it, and ignored
            with self.subTest(restored=restored):
                reader, writer = os.pipe()
                os.close(reader)
                result = subprocess.run([adamant.binary_folder() / "adamant", "version"], stdout=writer, stderr=subprocess.PIPE,
                                        text=True, timeout=60, check=False, restore_signals=restored)
                os.close(writer)
                self.assertEqual(result.returncode, -signal.SIGPIPE if restored else 0)
                self.assertEqual(result.stderr, "")

    def test_train_needs_a_manifest_or_a_run(self):
        self.assert_refused(adamant.adamant("train"), 2, "needs a manifest, or --resume DIR;")
        self.assert_refused(adamant.adamant("train", self.job(), "--resume", self.folder), 2, "no manifest")

    def test_a_bad_flag_is_told_before_anything_is_made(self):
        for flags, text in {("--metrics-listen", "x"): '"x" is not HOST:PORT',
                            ("--metrics-listen", "127.0.0.1:99999"): "a port from 0 (any) to 65535",
                            ("--metrics-listen", "127.0.0.1:-1"): "a port from 0 (any) to 65535",
                            ("--output", "xml"): '--output: "xml" is not one of text, json'}.items():
            self.assert_refused(self.train(self.job(), *flags), 2, flags[0], text)
            self.assertFalse((self.folder / "run").exists())
        for address in ("no.such.host.invalid:0", "192.0.2.1:0"):
            self.assert_refused(self.train(self.job(), "--metrics-listen", address), 2, "--metrics-listen: ", address)
            self.assertFalse((self.folder / "run").exists())
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assert_refused(self.train(self.job(), "--metrics-listen", address), 4, "--metrics-listen: ", address)
            self.assertFalse((self.folder / "run").exists())
        self.assert_refused(adamant.adamant("data", "digits", "--out", self.folder / "data", "--seed", 3,
                                            "--validation-seed", 3), 2, "--validation-seed are the same")
        self.assert_refused(adamant.adamant("train", self.job(), "--run-dir", ""), 2, "--run-dir: the name is empty")
        self.assert_refused(adamant.adamant("data", "digits", "--out", self.folder / "data", "--seed", -1), 2,
                            '--seed: "-1" is not a whole number')
        for flag in ("--train", "--validation"):
            self.assert_refused(adamant.adamant("data", "digits", "--out", self.folder / "data", flag, 10_000_001), 2,
                                f'{flag}: "10000001" is not a whole number from 1 to 10000000')
        self.assertFalse((self.folder / "data").exists())
        self.assert_refused(adamant.adamant("export", self.folder, "--format", "onnx", "--out", "x",
                                            "--checkpoint", -1), 2, '--checkpoint: "-1" is not a whole number')
        for flag, value, most in (("--batch", "x", 1 << 20), ("--steps", "0", 1000), ("--batch", "1048577", 1 << 20)):
            self.assert_refused(adamant.adamant("plan", self.job(), flag, value), 2,
                                f'{flag}: "{value}" is not a whole number from 1 to {most}')
        self.assert_refused(adamant.adamant("train", self.job(), "--run-dir", self.job()), 2, "is a file")
        self.assert_refused(adamant.adamant("train", self.folder), 2, f"{self.folder} is a folder, and a manifest is wanted")
        self.assert_refused(adamant.adamant("train", self.job(), "--rundir", "x"), 2, "did you mean --run-dir?")

    def test_what_the_environment_does_not_let_is_told_before_anything_is_made(self):
        train = [adamant.binary_folder() / "adamant", "train", "--run-dir", self.folder / "run"]
        few, many = self.job(), self.job(workers=8)
        for job, code, text, settings in (
                (few, 2, 'ADAMANT_MAX_CPU_ISA: "avx9"', dict(env={**os.environ, "ADAMANT_MAX_CPU_ISA": "avx9"})),
                (few, 4, "no more than 20 files may be open at once",
                 dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))),
                (many, 4, "no more than 64 files may be open at once, which is too few: ulimit -n 1024",
                 dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))))):
            result = subprocess.run([*train, job], capture_output=True, text=True, timeout=60, check=False, **settings)
            self.assert_refused(result, code, text)
            self.assertFalse((self.folder / "run").exists())

    def test_the_version_and_help_are_found_by_both_their_names(self):
        version = adamant.adamant("--version")
        self.assert_refused(version, 0, "adamant ")
        self.assertEqual(version.stdout, adamant.adamant("version").stdout)
        for command in ([], ["train"], ["data", "digits"]):
            shown = adamant.adamant("help", *command)
            self.assert_refused(shown, 0, "Usage: " if command else "Examples:")
            self.assertEqual(shown.stdout, adamant.adamant(*command, "--help").stdout)
        self.assertNotIn("Examples", adamant.adamant("version", "--help").stdout)
        self.assert_refused(adamant.adamant("help", "trian"), 2, "train")

    def test_a_folder_for_a_model_is_tried_without_one(self):
        out = self.folder / "taken" / "run"
        adamant.adamant("save-model", "--check", "--out", out).check_returncode()
        self.assertEqual(list(out.iterdir()), [], "the folder is made, and the file in it has gone")
        out.rmdir()
        out.write_text("no folder")
        self.assert_refused(adamant.adamant("save-model", "--check", "--out", out / "run"), 1, f"cannot create {out}/run")
        self.assert_refused(adamant.adamant("save-model", "--inputs", "x", "--check", "--out", out), 2, "--check")

    def test_a_manifest_that_is_not_there(self):
        self.assert_refused(self.train(self.folder / "no.yaml"), 2, "no.yaml")
        self.assertFalse((self.folder / "run").exists())

    def test_a_manifest_with_problems_names_them_all(self):
        job = self.job(epochs=-1)
        job.write_text(job.read_text().replace("optimiser", "optimizer"))
        self.assert_refused(self.train(job), 2, f"{job}:", "spec.optimizer", "did you mean optimiser?",
                            "spec.runPolicy.epochs")
        self.assert_refused(adamant.adamant("validate", job), 2, "spec.optimizer", "2 problems")

    def test_of_many_problems_the_first_are_shown(self):
        job = self.job()
        job.write_text(job.read_text() + "".join(f"x{i}: 1\n" for i in range(60000)))
        for result in (self.train(job), adamant.adamant("validate", job)):
            self.assert_refused(result, 2, "x19: unknown field", "and 59980 more\n")
            self.assertNotIn("x20", result.stderr)
        self.assertTrue(result.stderr.endswith("60000 problems\n"))
        job.write_text(job.read_text() + "#" * (1 << 20))
        result = adamant.adamant("validate", job)
        self.assert_refused(result, 2, f"{job}: larger than the limit of 1048576 bytes\n")
        self.assertNotIn(f"{job}: {job}", result.stderr)

    def test_the_plan_names_every_layer(self):
        planned = adamant.adamant("plan", self.job(), "--steps", 3, "--batch", 16)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        for layer in ("conv1", "pool1", "relu1", "fc1"):
            self.assertRegex(planned.stdout, rf"(?m)^([a-z0-9]+\+)?{layer}[ +]")
        self.assertRegex(planned.stdout, r"step of 16 examples on one thread: \d+ us, \d+ examples/s")
        self.assert_refused(adamant.adamant("plan", self.folder / "no.yaml"), 2, "no.yaml")
        self.assert_refused(adamant.adamant("plan", self.job(), "--batch", 0), 2, "--batch")

    def test_more_workers_are_told_what_that_comes_to(self):
        for command in ("validate", "plan"):
            job = self.job(workers=20)
            result = adamant.adamant(command, job)
            self.assert_refused(result, 0, "workers: 20 x 1 thread, batches of 32: 640 examples at a time",
                                "learning rate 0.005 -> ", "momentum 0.9 -> ")
            self.assertRegex(result.stderr, r"^warning: spec\.distribution\.workers: 20 threads in all; .*\n"
                                            r"warning: spec\.distribution\.workers: the job has only \d+ batches in all .*\n$")
            result = adamant.adamant(command, self.job(workers=1))
            self.assertNotIn("staleness", result.stdout)
            self.assertEqual(result.stderr, "")
        manifest = adamant.adamant("validate", job, "--show-defaults").stdout
        self.assertNotIn("examples at a time", manifest)
        planned = adamant.adamant("plan", job, "--steps", 3, "--batch", 16)
        self.assertIn("batches of 16: 320 examples at a time", planned.stdout)

    def test_data_that_is_missing_or_corrupt(self):
        data = self.folder / "digits"
        made = adamant.adamant("data", "digits", "--out", data, "--train", 200, "--validation", 50)
        self.assertEqual(made.returncode, 0, made.stderr)

        def job():
            return self.job(train=f"{{idx: {{images: {data}/train-images-idx3-ubyte.gz, "
                                  f"labels: {data}/train-labels-idx1-ubyte.gz}}}}",
                            validation=f"{{idx: {{images: {data}/t10k-images-idx3-ubyte.gz, "
                                       f"labels: {data}/t10k-labels-idx1-ubyte.gz}}}}", epochs=1, warm_start=100)
        self.assert_refused(adamant.adamant("validate", job()), 0)
        images = data / "train-images-idx3-ubyte.gz"
        whole = images.read_bytes()
        content = gzip.decompress(whole)
        for damaged in (gzip.compress(content[:-100]),        # shorter than it says
                        gzip.compress(content + b"more"),
                        whole[:-100],                         # cut
                        whole[:-8] + b"\0\0\0\0" + whole[-4:],  # another check sum
                        whole + b"trailing"):
            images.write_bytes(damaged)
            for result in (adamant.adamant("validate", job()), self.train(job())):
                self.assert_refused(result, 2, "spec.data.train.idx.images: ", "train-images-idx3-ubyte.gz: offset ")
            self.assertFalse((self.folder / "run").exists())
        images.write_bytes(b"no images at all")
        self.assert_refused(self.train(job()), 2, "train-images-idx3-ubyte.gz")
        images.unlink()
        self.assert_refused(self.train(job()), 2, "train-images-idx3-ubyte.gz")

    def test_data_on_a_claim(self):
        job = self.job(validation="{idx: {images: images, labels: labels, claim: mnist}}")
        self.assert_refused(adamant.adamant("validate", job), 0)
        self.assert_refused(self.train(job), 2, "spec.data.validation.idx.claim: not available on one machine")
        self.assertFalse((self.folder / "run").exists())

    def test_a_run_directory_that_cannot_be_written(self):
        result = adamant.adamant("train", self.job(), "--run-dir", "/sys/adamant-run")
        self.assert_refused(result, 4, "/sys/adamant-run")

    def test_a_run_directory_that_holds_something_else(self):
        (self.folder / "run").mkdir()
        (self.folder / "run" / "thesis.txt").write_text("precious")
        self.assert_refused(self.train(self.job()), 2, "not empty")

    def test_a_run_that_is_running_already(self):
        run = self.run_in().train(self.job(epochs=10000))
        run.await_epoch(0)
        again = adamant.adamant("train", "--resume", f"{run.folder}/./")
        self.assert_refused(again, 4, f"adamant: {run.folder} is in use", f"`adamant status {run.folder}`")
        self.assertEqual(again.stdout, "", "nothing that looks like a start")

    def test_a_folder_without_a_run(self):
        for command in (["train", "--resume"], ["status"], ["export", "--format", "onnx", "--out", "x"]):
            self.assert_refused(adamant.adamant(*command, self.folder), 2, "holds no run")

    def test_a_folder_that_does_not_exist_is_called_that(self):
        for command in (["train", "--resume"], ["status"], ["export", "--format", "onnx", "--out", "x"], ["eval"]):
            self.assert_refused(adamant.adamant(*command, self.folder / "none"), 2, f"{self.folder}/none does not exist")
        (self.folder / "file").touch()
        for command in (["train", "--resume"], ["status"], ["export", "--format", "onnx", "--out", "x"]):
            self.assert_refused(adamant.adamant(*command, self.folder / "file"), 2, f"{self.folder}/file is no folder")

    def test_a_manifest_alone_is_no_run(self):
        project = self.folder / "project"
        (project / "data").mkdir(parents=True)
        (project / "data" / "images").touch()
        self.job().rename(project / "job.yaml")
        before = sorted(project.rglob("*"))
        for command in (["train", "--resume"], ["status"], ["export", "--format", "onnx", "--out", self.folder / "x"], ["eval"]):
            self.assert_refused(adamant.adamant(*command, project), 2,
                                f"{project} holds no run: it has a job.yaml, but no started.yaml. To begin one: adamant train")
        self.assertEqual(sorted(project.rglob("*")), before)

    def test_a_run_without_a_model_is_not_exported(self):
        run = self.run_in().train(self.job(epochs=1, train="{digits: {seed: 1, examples: 60000}}"))
        run.await_epoch(0)
        result = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        self.assert_refused(result, 2, "no model yet")
        self.assertFalse((self.folder / "model.onnx").exists())

    def test_output_goes_through_what_is_no_regular_file(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        model = (run.folder / "model.onnx").read_bytes()
        self.assertEqual(adamant.adamant("eval", run.folder, "--predictions",
                                         self.folder / "classes.txt").returncode, 0)
        classes = (self.folder / "classes.txt").read_bytes()
        link = self.folder / "link"
        link.symlink_to(self.folder / "target")
        self.assert_refused(adamant.adamant("export", run.folder, "--format", "onnx", "--out", link), 0, str(link))
        self.assertTrue(link.is_symlink())
        self.assertEqual((self.folder / "target").read_bytes(), model)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for command, content in ((["export", run.folder, "--format", "onnx", "--out"], model),
                                 (["eval", run.folder, "--predictions"], classes)):
            with subprocess.Popen([adamant.binary_folder() / "adamant", *command, pipe],
                                  stdout=subprocess.DEVNULL) as process:
                self.assertEqual(pipe.read_bytes(), content)
                self.assertEqual(process.wait(timeout=60), 0)
            self.assertTrue(pipe.is_fifo())
            shown = subprocess.run([adamant.binary_folder() / "adamant", *command, "/dev/stdout"],
                                   capture_output=True, timeout=60, check=True)
            self.assertEqual(shown.stdout, content)  # and nothing else
            self.assertNotEqual(shown.stderr, b"")
            self.assert_refused(adamant.adamant(*command, "/dev/full"), 4, "cannot write /dev/full")
            self.assertTrue(pathlib.Path("/dev/full").is_char_device())
        data = self.folder / "data"
        data.mkdir()
        (data / "t10k-labels-idx1-ubyte.gz").symlink_to(self.folder / "labels")
        made = adamant.adamant("data", "digits", "--out", data, "--train", 20, "--validation", 5)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertTrue((data / "t10k-labels-idx1-ubyte.gz").is_symlink())
        self.assertGreater((self.folder / "labels").stat().st_size, 0)

    def test_output_that_has_no_place_is_a_bad_flag(self):
        nowhere = self.folder / "nowhere" / "file"
        (self.folder / "file").touch()
        for command in (["export", self.folder, "--format", "onnx", "--out"], ["eval", self.folder, "--predictions"]):
            self.assert_refused(adamant.adamant(*command, nowhere), 2, f"{nowhere}: there is no folder")
            self.assert_refused(adamant.adamant(*command, self.folder), 2, f"{self.folder}: is a folder")
        for folder in (self.folder / "file", self.folder / "file" / "digits"):
            self.assert_refused(adamant.adamant("data", "digits", "--out", folder), 2, "file: is a file")
            self.assert_refused(adamant.adamant("data", "mnist", "--out", folder), 2, "file: is a file")

    def test_a_checkpoint_that_does_not_exist_is_not_exported(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        result = adamant.adamant("export", run.folder, "--checkpoint", 77, "--format", "onnx", "--out",
                                 self.folder / "model.onnx")
        self.assert_refused(result, 2, "holds no checkpoint 77; it has 2")
        (run.folder / "checkpoints" / "2.json").unlink()
        empty = f"{run.folder}/checkpoints, which names those there are, is empty; the newest was 2\n"
        for checkpoint, text in ((2, "holds no checkpoint 2 any more: "), (77, "holds no checkpoint 77: ")):
            result = adamant.adamant("export", run.folder, "--checkpoint", checkpoint, "--format", "onnx", "--out",
                                     self.folder / "model.onnx")
            self.assert_refused(result, 2, text + empty)
        (run.folder / "model.safetensors").unlink()
        result = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        self.assert_refused(result, 2, "holds no model any more: " + empty)

    def test_looking_at_a_run_disturbs_nobody(self):
        run = self.run_in().train(self.job(epochs=10000))
        run.await_epoch(1)
        run.kill_all()
        stop = threading.Event()
        failures = []

        def look():
            while not stop.is_set():
                result = adamant.adamant("status", run.folder)
                if result.returncode != 0:
                    failures.append(result.stderr)

        watchers = [threading.Thread(target=look) for _ in range(2)]
        for watcher in watchers:
            watcher.start()
        try:
            for _ in range(3):
                run.resume()
                run.await_epoch(len(run.rows()) + 1)
                run.kill_all()
        finally:
            stop.set()
            for watcher in watchers:
                watcher.join()
        self.assertEqual(failures, [])

    def test_copies_and_timeouts_that_do_not_fit(self):
        job = self.job(parameter_servers=2)
        job.write_text(job.read_text().replace("buckets: 8", "buckets: 8, copies: 3, minInSync: 3, "
                                                             "failover: {lease: 5s}"))
        self.assert_refused(self.train(job), 2, "3 copies need at least 3 parameter servers; count is 2",
                            "failover.grace: 4s is too short for a lease of 5s")
        self.assertFalse((self.folder / "run").exists())

    def test_a_mode_without_what_is_set_for_it(self):
        job = self.job()
        job.write_text(job.read_text().replace("flushInterval: 200ms", "mode: None, flushInterval: 200ms"))
        self.assert_refused(self.train(job), 2, "persistence.flushInterval: not used with None",
                            "Delayed, Wal, WalSync")

    def test_programs_that_are_missing(self):
        result = self.train(self.job(), "--bin-dir", self.folder)
        self.assert_refused(result, 4, "adamant-data-server", "--bin-dir")
        self.assertFalse((self.folder / "run").exists())

    def test_a_controller_state_that_is_damaged_twice(self):
        run = self.run_in().train(self.job(epochs=10000))
        run.await_epoch(1)
        run.kill_all()
        for path in [*(run.folder / "controller").iterdir(), *(run.folder / "controller.copy").iterdir()]:
            if path.suffix in (".log", ".sst"):
                content = bytearray(path.read_bytes())
                for i in range(0, len(content), 50):
                    content[i] ^= 0xFF
                path.write_bytes(content)
        left = f"adamant export {run.folder} writes the model of its newest checkpoint"
        refused = adamant.adamant("train", "--resume", run.folder)
        self.assert_refused(refused, 4, str(run.folder / "controller"), str(run.folder / "controller.copy"), left)
        self.assertNotIn("remove it", refused.stderr)
        for copy in ("controller", "controller.copy"):
            shutil.rmtree(run.folder / copy)
        self.assert_refused(adamant.adamant("train", "--resume", run.folder), 4, "the controller's state is missing", left)
        exported = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        self.assertEqual(exported.returncode, 0, exported.stderr)

    def test_a_model_of_another_net(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        beside = adamant.adamant("eval", run.folder / "model.safetensors")
        self.assertEqual(beside.returncode, 0, beside.stderr)
        self.assertEqual(beside.stderr, f"net and data: {run.folder / 'job.yaml'}, beside the model\n")
        shutil.copy(run.folder / "model.safetensors", self.folder / "model.safetensors")
        self.job(name="another").rename(self.folder / "job.yaml")
        beside = adamant.adamant("eval", self.folder / "model.safetensors")
        self.assertIn(f"warning: {self.folder / 'model.safetensors'} is a model of job tiny, and {self.folder / 'job.yaml'} "
                      "is the manifest of another", beside.stderr)
        named = adamant.adamant("eval", self.folder / "model.safetensors", "--job", self.folder / "job.yaml")
        self.assertEqual((named.returncode, named.stderr), (0, ""))
        other = self.job(layers=adamant.LAYERS.replace("channels: 4", "channels: 5"))
        result = adamant.adamant("eval", run.folder / "model.safetensors", "--job", other)
        self.assert_refused(result, 2, "conv1.weight")
        (run.folder / "model.safetensors").write_bytes(b"not a model")
        self.assert_refused(adamant.adamant("eval", run.folder), 2, "model.safetensors")

    def test_a_model_that_cannot_be_written(self):
        run = self.run_in().train(self.job(epochs=2))
        run.await_epoch(0)
        (run.folder / "model.onnx").mkdir()
        code, output = run.wait()
        self.assertEqual(code, 4, output)  # as docs/cli.md says of what is no file
        self.assertIn("model.onnx", output)
        (run.folder / "model.onnx").rmdir()
        self.assertEqual(run.resume().wait()[0], 0)
        self.assertTrue((run.folder / "model.onnx").is_file())

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            result = subprocess.run(
                [adamant.binary_folder() / "adamant-parameter-server", "--controller", "127.0.0.1:1", "--slot", "0",
                 "--data-dir", self.folder / "data", "--listen", address],
                capture_output=True, text=True, timeout=60, check=False)
        self.assert_refused(result, 1, address)


if __name__ == "__main__":
    unittest.main()

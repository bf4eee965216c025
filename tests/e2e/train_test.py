"""A job from the manifest to the exported model, through the real processes."""

import functools
import gzip
import hashlib
import http.server
import json
import struct
import subprocess
import threading
import unittest

import adamant


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class TrainTest(adamant.TestCase):

    def test_a_job_succeeds_and_leaves_everything_that_is_promised(self):
        run = self.run_in().train(self.job(data_servers=2, epochs=8))  # 3 end at 35 to 75 %, or less on busy cores
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 8, 3000)
        for name in ("job.yaml", "plan.txt", "events.jsonl", "learning-curve.svg", "model.safetensors", "model.onnx"):
            self.assertGreater((run.folder / name).stat().st_size, 0, name)
        logs = sorted(path.name for path in (run.folder / "logs").iterdir())
        self.assertEqual(logs, ["data-server-0.log", "data-server-1.log", "parameter-server-0.log",
                                "parameter-server-1.log", "worker-0.log", "worker-1.log"])
        for name in logs:
            self.assertNotIn("controller unreachable", (run.folder / "logs" / name).read_text())
        row = run.rows()[-1]
        self.assertEqual(int(row["examples_left"]), 0)
        self.assertEqual(int(row["validation_examples"]), 500)
        self.assertGreater(float(row["top1"]), 0.3)
        self.assertIn(f"{100 * float(row['top1']):.2f}%", output)

    def test_a_job_fetches_its_data_and_counts_it(self):
        data = self.folder / "data"
        adamant.adamant("data", "digits", "--out", data, "--train", 3000, "--validation", 500).check_returncode()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=data))
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever).start()

        def download(name):
            digest = hashlib.sha256((data / name).read_bytes()).hexdigest()
            return f"{{url: 'http://127.0.0.1:{server.server_address[1]}/{name}', sha256: '{digest}'}}"

        def source(prefix):
            return (f"{{download: {{images: {download(prefix + '-images-idx3-ubyte.gz')}, "
                    f"labels: {download(prefix + '-labels-idx1-ubyte.gz')}}}}}")

        job = self.job(train=source("train"), validation=source("t10k"))
        text = job.read_text()
        job.write_text(text.replace("rate: 0.005", "rate: 0.005, schedule: {kind: Linear, warmUp: {epochs: 0.5}}"))
        run = self.run_in().train(job)
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 3, 3000)

    def test_a_job_that_has_learned_nothing_fails_says_what_to_try_and_leaves_its_model(self):
        run = self.run_in().train(self.job(epochs=1, optimiser="{kind: Sgd, rate: 50}",
                                           validation="{digits: {seed: 2, examples: 1000}}",
                                           on_divergence="{action: Continue}"))
        code, output = run.wait()
        self.assertEqual(code, 1, output)
        self.assertIn("epoch 1: top-1 ", output)
        self.assertIn("try a lower spec.optimiser.rate", output)
        anew = f"once the cause is put right, begin anew with: adamant train {run.folder}/job.yaml --run-dir NEW_FOLDER\n"
        for said in (output, adamant.adamant("status", run.folder).stdout):
            self.assertTrue(said.endswith(anew), said)
        self.assertNotIn("--resume", output)
        self.assertGreater((run.folder / "model.onnx").stat().st_size, 0)
        warning = "warning: the job failed, and its newest model may be of no use: training did not learn: "
        exported = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        for result in (exported, adamant.adamant("eval", run.folder)):
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(result.stderr.startswith(warning), result.stderr)
        self.assertTrue(exported.stderr.endswith("model: epoch 1\n"), exported.stderr)
        manifest = run.folder / "job.yaml"
        manifest.write_text(manifest.read_text().replace("rate: 50", "rate: 0.01"))
        again = adamant.adamant("train", "--resume", run.folder, "--accept-changes")
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("warning: all epochs of the run are trained, and what has changed has no effect on its model: it trains on only "
                      f"with more spec.runPolicy.epochs in {manifest}, which has 1 now\n", again.stderr)

    def test_a_poor_model_is_called_that_wherever_it_is_used(self):
        run = self.run_in().train(self.job(epochs=2, optimiser="{kind: Sgd, rate: 0.01}"))
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        exported = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        for result in (exported, adamant.adamant("eval", run.folder)):
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, r"^warning: the job succeeded with a poor model: (?s:.*);\s+try ")

    def test_a_job_with_little_data_that_has_learned_nothing_fails_too(self):
        for rate, advice in (("50", "try a lower spec.optimiser.rate"), ("0.000001", "try a higher")):
            run = self.run_in(rate).train(self.job(epochs=5, optimiser=f"{{kind: Sgd, rate: {rate}}}",
                                                   train="{digits: {seed: 1, examples: 900}}",
                                                   validation="{digits: {seed: 2, examples: 900}}",
                                                   on_divergence="{action: Continue}"))
            code, output = run.wait()
            self.assertEqual(code, 1, output)
            self.assertIn("failed: training did not learn: the training loss", output)
            self.assertIn(advice, output)
            self.assertIn("it was warned of at the start, and may be why: spec.optimiser.rate: ", output[output.index("failed: training did"):])

    def test_workers_with_no_room_for_what_is_not_on_disk_do_not_wait_for_the_interval(self):
        for copies in (1, 2):
            job = self.job(epochs=1, copies=copies)
            text = job.read_text()
            self.assertIn("flushInterval: 200ms", text)
            job.write_text(text.replace("flushInterval: 200ms", "flushInterval: 1h, retain: 1"))
            run = self.run_in(f"{copies}").train(job)
            code, output = run.wait(timeout=300)  # each push waits for the disk, which others may keep busy
            self.assertEqual(code, 0, output)
            self.assert_counted_once(run, 1, 3000)

    def test_train_says_once_what_validate_warns_of(self):
        run = self.run_in().train(self.job(workers=3, epochs=1))
        _, output = run.wait()
        warnings = [event["text"] for event in run.events() if event["event"] == "warning"]
        self.assertEqual(len(warnings), 1, output)
        self.assertIn("spec.distribution.workers: ", warnings[0])
        self.assertEqual(output.count(f"warning: {warnings[0]}\n"), 1, output)

    def test_a_job_that_diverges_goes_back_as_often_as_it_may_and_fails(self):
        run = self.run_in().train(self.job(optimiser="{kind: Sgd, rate: 100}",
                                           validation="{digits: {seed: 2, examples: 1000}}",
                                           on_divergence="{action: Recover, times: 1}"))
        code, output = run.wait()
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"(?s)failed: training diverged.*, at .*\b50\b.*gone back 1 time.*spec\.optimiser\.rate")
        self.assertIn("--resume", output)
        self.assertEqual([event["event"] for event in run.events()].count("went-back"), 1)

    def test_a_job_that_diverges_fails_at_once_where_it_is_to(self):
        run = self.run_in().train(self.job(optimiser="{kind: Sgd, rate: 100}",
                                           validation="{digits: {seed: 2, examples: 1000}}",
                                           on_divergence="{action: Fail}"))
        code, output = run.wait()
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"failed: training diverged.*, at .*\b100\b.*spec\.optimiser\.rate")
        self.assertIn(f"write a lower spec.optimiser.rate into {run.folder}/job.yaml, then go on with: adamant train --resume "
                      f"{run.folder} --accept-changes\n", output)
        self.assertNotIn("went-back", [event["event"] for event in run.events()])
        exported = adamant.adamant("export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx")
        if exported.returncode == 0:  # else it had no checkpoint yet
            self.assertRegex(exported.stderr, "warning: the job failed, .*: training diverged")
        manifest = run.folder / "job.yaml"
        manifest.write_text(manifest.read_text().replace("action: Fail", "action: Recover"))
        run.resume().wait(timeout=200)
        status = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        self.assertGreater(status["attempt"], 1, "its first weights are made anew")

    def test_a_job_that_was_to_fail_goes_on_from_its_first_weights_at_the_rate_that_is_written_then(self):
        run = self.run_in().train(self.job(optimiser="{kind: Sgd, rate: 100}", epochs=8,
                                           validation="{digits: {seed: 2, examples: 1000}}",
                                           on_divergence="{action: Fail}"))
        self.assertEqual(run.wait()[0], 1)
        manifest = run.folder / "job.yaml"
        manifest.write_text(manifest.read_text().replace("rate: 100", "rate: 0.05"))
        code, output = run.start("--resume", run.folder, "--accept-changes").wait()
        self.assertEqual(code, 0, output)
        self.assertIn("training had diverged: the job goes back to its first weights, made anew, and on as attempt 2, at "
                      "learning rate 0.05\n", output)
        self.assertGreater(float(run.rows()[-1]["top1"]), 0.5)

    def test_a_job_whose_rate_is_too_high_goes_back_and_succeeds(self):
        run = self.run_in().train(self.job(optimiser="{kind: Sgd, rate: 50}",
                                           validation="{digits: {seed: 2, examples: 1000}}",
                                           on_divergence="{action: Recover, times: 10}"))
        code, output = run.wait(timeout=300)
        self.assertEqual(code, 0, output)
        last = {int(row["epoch"]): row for row in run.rows()}  # of later attempts those that count
        self.assertEqual(sorted(last), [1, 2, 3])
        for row in last.values():
            self.assertEqual(int(row["examples_counted"]) + int(row["examples_left"]), 3000, row)
        attempt = int(run.rows()[-1]["attempt"])
        self.assertGreater(attempt, 1)
        self.assertIn(f"epoch 3/3  attempt {attempt}  loss ", output)
        self.assertEqual([event["event"] for event in run.events()].count("went-back"), attempt - 1)
        self.assertIn(f"attempt {attempt}, learning rates x ", adamant.adamant("status", run.folder).stdout)

    def test_a_job_that_diverges_leaves_no_number_that_is_none(self):
        run = self.run_in().start(self.job(optimiser="{kind: Momentum, rate: 100}", on_divergence="{action: Continue}",
                                           epochs=2), "--run-dir", self.folder / "run")
        _, output = run.wait()
        evaluated = adamant.adamant("eval", run.folder) if (run.folder / "model.safetensors").exists() else None
        shown = {name: (run.folder / name).read_text() for name in ("metrics.csv", "learning-curve.svg", "events.jsonl")}
        shown |= {"output": output, "eval": evaluated.stdout if evaluated else "",
                  "status": adamant.adamant("status", run.folder).stdout,
                  "json": adamant.adamant("status", run.folder, "--output", "json").stdout}
        for name, text in shown.items():
            self.assertNotRegex(text.lower(), r"(?<![a-z])-?(nan|inf|infinity)(?![a-z])", name)
        self.assertGreater(len(run.rows()), 0, output)

    def test_a_model_whose_outputs_overflow_is_measured_without_a_loss(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        model = run.folder / "model.safetensors"
        content = model.read_bytes()
        content = content.replace(b"xxh3_64", b"of_othe")  # as by a program that knows no checksum
        values = 8 + struct.unpack("<Q", content[:8])[0]
        model.write_bytes(content[:values] + struct.pack("<f", 3e38) * ((len(content) - values) // 4))
        result = adamant.adamant("eval", run.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^top-1 \d+\.\d\d% \(\d+ of 500\), no finite loss")

    def test_the_shown_accuracy_is_that_of_the_exported_model(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        predictions = self.folder / "classes.txt"
        result = adamant.adamant("eval", run.folder, "--predictions", predictions)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"top-1 {100 * float(run.rows()[0]['top1']):.2f}%", result.stdout)
        self.assertEqual(len(predictions.read_text().split()), 500)

    def test_export_writes_what_the_run_left(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        for form in ("onnx", "safetensors"):
            out = self.folder / f"out.{form}"
            result = adamant.adamant("export", run.folder, "--format", form, "--out", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(out.read_bytes(), (run.folder / f"model.{form}").read_bytes())

    def test_one_worker_thread_and_server_give_the_same_bits_again(self):
        job = self.job(workers=1, parameter_servers=1, epochs=2)
        models = []
        for name in ("first", "second"):
            run = self.run_in(name).train(job)
            self.assertEqual(run.wait()[0], 0)
            models.append((run.folder / "model.safetensors").read_bytes())
        self.assertEqual(models[0], models[1])

    def test_every_rule_trains_where_it_may_run(self):
        for name, rule in {"sgd-worker": "kind: Sgd, rate: 0.05",
                           "sgd-server": "kind: Sgd, location: Server, rate: 0.05",
                           "momentum-server": "kind: Momentum, location: Server, momentum: 0.5, rate: 0.01",
                           "adagrad-server": "kind: Adagrad, location: Server, rate: 0.05"}.items():
            with self.subTest(name):
                run = self.run_in(name)
                code, output = run.train(self.job(optimiser=f"{{{rule}}}", workers=1, epochs=6)).wait()
                self.assertEqual(code, 0, output)
                self.assertGreater(float(run.rows()[-1]["top1"]), 0.6)

    def test_servers_multiply_what_workers_push_as_activations_and_the_job_learns(self):
        layers = ("\n        - {name: fc1, kind: FullyConnected, outputs: 64}\n        - {name: relu1, kind: Relu}"
                  "\n        - {name: fc2, kind: FullyConnected, outputs: 10}")
        accuracy = {}
        for protocol, pushing in {"Gradients": 0, "Activations": 2}.items():
            job = self.job(layers=layers, optimiser="{kind: Sgd, location: Server, rate: 0.05}", epochs=12)
            job.write_text(job.read_text().replace(
                "    dataServers:", f"    updateProtocol: {{default: {protocol}}}\n    dataServers:"))
            run = self.run_in(protocol).train(job)
            code, output = run.wait()
            self.assertEqual(code, 0, output)
            self.assert_counted_once(run, 12, 3000)
            for worker in (0, 1):
                log = (run.folder / f"logs/worker-{worker}.log").read_text()
                self.assertRegex(log, rf'"layersPushingActivations": ?"?{pushing}\b')
            self.assertEqual(sum(int(row["pushes_refused"]) for row in run.rows()), 0)
            accuracy[protocol] = float(run.rows()[-1]["top1"])
        self.assertGreater(min(accuracy.values()), 0.7, accuracy)
        self.assertLess(abs(accuracy["Activations"] - accuracy["Gradients"]), 0.1, accuracy)

    def test_files_train_as_the_digits_of_their_seed_that_a_manifest_draws(self):
        made = adamant.adamant("data", "digits", "--out", self.folder / "data", "--train", 3000, "--validation", 500)
        self.assertEqual(made.returncode, 0, made.stderr)
        for file in (self.folder / "data").glob("train-*.gz"):  # those of validation stay compressed
            file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        files = {part: f"{{idx: {{images: data/{name % 'images-idx3'}, labels: data/{name % 'labels-idx1'}}}}}"
                 for part, name in (("train", "train-%s-ubyte"), ("validation", "t10k-%s-ubyte.gz"))}
        losses = []
        for name, data in (("files", files), ("drawn", {})):
            run = self.run_in(name).train(self.job(epochs=1, workers=1, parameter_servers=1, **data))
            code, output = run.wait()
            self.assertEqual(code, 0, output)
            losses.append([(row["training_loss"], row["validation_loss"]) for row in run.rows()])
        self.assertEqual(losses[0], losses[1])

    def test_another_seed_gives_another_model(self):
        models = []
        for seed in (1, 2):
            run = self.run_in(f"seed{seed}").train(self.job(workers=1, parameter_servers=1, epochs=1, seed=seed))
            self.assertEqual(run.wait()[0], 0)
            models.append((run.folder / "model.safetensors").read_bytes())
        self.assertNotEqual(models[0], models[1])

    def test_two_runs_side_by_side_do_not_disturb_each_other(self):
        job = self.job(workers=1, parameter_servers=1, epochs=3)
        runs = [self.run_in(name).train(job) for name in ("left", "right")]
        for run in runs:
            self.assertEqual(run.wait()[0], 0)
            self.assert_counted_once(run, 3, 3000)
        left, right = ((run.folder / "model.safetensors").read_bytes() for run in runs)
        self.assertEqual(left, right)

    def test_an_epoch_may_end_early_and_reports_what_was_left_out(self):
        run = self.run_in().train(self.job(epochs=2, epoch_completion=0.5))
        self.assertEqual(run.wait()[0], 0)
        self.assert_counted_once(run, 2, 3000)
        for row in run.rows():
            self.assertGreaterEqual(int(row["examples_counted"]), 1500)

    def test_json_output_is_one_object_a_line_with_start_epochs_and_end(self):
        run = self.run_in()
        code, output = run.start(self.job(epochs=2), "--run-dir", run.folder, "--output", "json").wait()
        events = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(code, 0)
        self.assertEqual(events[0]["event"], "start")
        self.assertEqual([event["epoch"] for event in events if event["event"] == "epoch"], [1, 2])
        self.assertEqual((events[-1]["event"], events[-1]["phase"], events[-1]["exit_code"]), ("end", "Succeeded", 0))

    def test_status_works_while_a_job_runs_and_afterwards(self):
        run = self.run_in().train(self.job(epochs=1000))
        run.await_epoch(1)
        result = adamant.adamant("status", run.folder)
        self.assertIn("tiny: ", result.stdout)
        self.assertIn("worker-1", result.stdout)
        self.assertIn("/metrics", result.stdout)
        run.kill_all()
        result = adamant.adamant("status", run.folder)
        self.assertIn("tiny: Interrupted", result.stdout)
        self.assertIn("--resume", result.stdout)

    def test_a_finished_run_is_not_trained_again(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        before = (run.folder / "model.safetensors").stat().st_mtime_ns
        self.assertEqual(run.resume().wait()[0], 0)
        self.assertEqual((run.folder / "model.safetensors").stat().st_mtime_ns, before)
        self.assert_counted_once(run, 1, 3000)

    def test_a_finished_run_keeps_no_more_than_its_checkpoints_need(self):
        layers = ("\n        - {name: fc1, kind: FullyConnected, outputs: 256}"
                  "\n        - {name: fc2, kind: FullyConnected, outputs: 10}")  # 0.8 MB
        run = self.run_in().train(self.job(layers=layers, epochs=20))
        self.assertEqual(run.wait()[0], 0)

        def stored():
            return sum(path.stat().st_size for path in (run.folder / "data").rglob("*") if path.is_file())

        self.assertLess(stored(), 12e6)
        checkpoints = [path.stem for path in (run.folder / "checkpoints").iterdir()]
        self.assertGreater(len(checkpoints), 0)
        for checkpoint in checkpoints:
            out = self.folder / f"{checkpoint}.safetensors"
            result = adamant.adamant("export", run.folder, "--checkpoint", checkpoint, "--format", "safetensors",
                                     "--out", out)
            self.assertEqual(result.returncode, 0, result.stderr)
        model = (run.folder / "model.safetensors").read_bytes()
        newest = (self.folder / f"{max(checkpoints, key=int)}.safetensors").read_bytes()
        values = 4 * (784 * 256 + 256 + 2560 + 10)
        self.assertEqual(newest[-values:], model[-values:])
        self.assertIn("tiny: Succeeded", adamant.adamant("status", run.folder).stdout)
        self.assertEqual(adamant.adamant("eval", run.folder).returncode, 0)
        self.assertEqual(run.resume().wait()[0], 0)
        self.assert_counted_once(run, 20, 3000)

    def test_plan_says_what_memory_each_role_needs(self):
        result = adamant.adamant("plan", self.job())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout.splitlines()[-1],
                         r"^memory: worker 2 x \d+ MiB, parameter server 2 x \d+ MiB, data server \d+ MiB, "
                         r"controller \d+ MiB: about [\d.]+ [MG]iB in all, of [\d.]+ [MG]iB that are free here$")

    def test_completion_scripts_are_valid_bash(self):
        script = adamant.adamant("completion", "bash").stdout
        check = subprocess.run(
            ["bash", "-c", script + '\nCOMP_WORDS=(adamant train --r); COMP_CWORD=2; _adamant; echo "${COMPREPLY[*]}"'],
            capture_output=True, text=True, check=True)
        self.assertEqual(check.stdout.split(), ["--run-dir", "--resume"])


if __name__ == "__main__":
    unittest.main()

"""A run that has stopped, in good order or killed, goes on whichever file of its folder is damaged, or says which."""

import contextlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import adamant

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "processes"))
import damage  # noqa: E402

ALL = os.environ.get("ADAMANT_ALL_DAMAGE") == "1"
SEED = int(os.environ.get("ADAMANT_FAULT_SEED", "1"))

STATE = list(itertools.product((*damage.NEEDLESS, *damage.NEEDED), damage.OF_STORES, ("stopped", "killed"),
                               ("controller", "controller.copy")))

# With shards that are large enough for segments.
LARGE = """
        - {name: conv1, kind: Conv2d, channels: 8, kernel: [5, 5]}
        - {name: relu1, kind: Relu}
        - {name: fc1, kind: FullyConnected, outputs: 160}
        - {name: relu2, kind: Relu}
        - {name: fc2, kind: FullyConnected, outputs: 160}
        - {name: relu3, kind: Relu}
        - {name: fc3, kind: FullyConnected, outputs: 160}
        - {name: relu4, kind: Relu}
        - {name: fc4, kind: FullyConnected, outputs: 10}"""

# What people read, and what is of use while the run goes on; each is made anew or gone on with.
TOLD = ("events.jsonl", "learning-curve.svg", "plan.txt", "endpoint", "lock")

# Which of a run's files are looked at by which test.
KNOWN = {*TOLD, "metrics.csv", "job.yaml", "started.yaml", "checkpoints/*.json", "logs/*.log", "model.safetensors", "model.onnx"}


def lead_nowhere(path):
    path.symlink_to("/nowhere/at/all")


class DamageTest(adamant.TestCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)

    def run_to_damage(self):
        run = self.run_in().train(self.job(epochs=100_000, restarts=100_000))
        run.await_epoch(1)
        return run

    def stop(self, run, when):
        if when == "killed":
            run.kill_all()
        else:
            run.process.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(timeout=20)[0], 3)

    def go_on(self, run, *arguments):
        """Resumes; no epoch is lost, and none is trained twice."""
        before = run.rows()
        run.start("--resume", run.folder, *arguments).await_epoch(len(before) + 1)
        rows = run.rows()
        self.assertEqual(rows[:len(before)], before)
        self.assertEqual([int(row["epoch"]) for row in rows], list(range(1, len(rows) + 1)))

    def test_every_file_of_a_run_is_known(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        for path in run.folder.rglob("*"):
            name = path.relative_to(run.folder)
            if path.is_file() and name.parts[0] not in ("controller", "controller.copy", "data"):
                self.assertIn(str(name.parent / f"*{name.suffix}") if len(name.parts) > 1 else str(name), KNOWN)
        for folder in (run.folder / "controller", run.folder / "controller.copy"):
            self.assertEqual(damage.unknown_files(folder), set())
        for folder in (run.folder / "data").iterdir():
            self.assertEqual(damage.unknown_files(folder), set())

    def test_the_state_is_in_two_stores_and_one_is_enough(self):
        run = self.run_to_damage()
        self.stop(run, "killed")
        run.resume().await_epoch(len(run.rows()) + 1)  # the start has written a table
        for cell in STATE if ALL else self.random.sample(STATE, 16):
            with self.subTest(cell=cell):
                self.check_state(run, *cell)

    def test_status_says_where_the_state_has_gone_back(self):
        """The ends of both logs are gone, as after a loss of power on a disk that does not sync."""
        run = self.run_to_damage()
        run.await_epoch(3)
        self.stop(run, "killed")
        for copy in ("controller", "controller.copy"):
            log = damage.files(run.folder / copy, "*.log")[-1]
            os.truncate(log, log.stat().st_size // 2)
        status = adamant.adamant("status", run.folder)
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertRegex(status.stderr, r"warning: .*metrics\.csv has \d+ rows? that the controller's state lacks")

    def test_a_state_that_is_older_than_the_run_is_refused_until_it_is_accepted(self):
        """One put back from a copy that was made while it ran: no process has begun anew since."""
        run = self.run_to_damage()
        old, new = run.folder.parent / "old", run.folder.parent / "new"
        for copy in ("controller", "controller.copy"):
            shutil.copytree(run.folder / copy, old / copy)
        run.await_epoch(len(run.rows()) + 2)
        self.stop(run, "killed")
        before = run.rows()
        for copy in ("controller", "controller.copy"):
            shutil.move(run.folder / copy, new / copy)
            shutil.copytree(old / copy, run.folder / copy)
        for _ in range(2):
            refused = adamant.adamant("train", "--resume", run.folder)
            self.assertEqual(refused.returncode, 4, refused.stderr)
            self.assertIn("that the controller's state lacks", adamant.in_one_line(refused.stderr))
            self.assertIn("put back the newest", adamant.in_one_line(refused.stderr))
        self.assertEqual(run.rows(), before)
        accepted = adamant.Run(run.folder.parent / "accepted")
        shutil.copytree(run.folder, accepted.folder)
        for copy in ("controller", "controller.copy"):
            shutil.rmtree(run.folder / copy)
            shutil.copytree(new / copy, run.folder / copy)
        self.go_on(run)
        self.stop(run, "killed")
        accepted.start("--resume", accepted.folder, "--accept-changes").await_epoch(len(before) + 1)
        accepted.kill_all()

    def test_manifests_that_are_removed_while_it_runs_are_there_again(self):
        run = self.run_to_damage()
        for name in ("job.yaml", "started.yaml"):
            (run.folder / name).unlink()
        run.process.send_signal(signal.SIGINT)
        code, output = run.wait(timeout=20)
        self.assertEqual(code, 3, output)
        self.assertIn("was removed while the job ran", adamant.in_one_line(output))
        self.go_on(run)

    def check_state(self, run, kind, how, when, copy):
        folder = run.folder / copy
        aside = run.folder / f"{copy}.damaged"
        self.stop(run, when)
        shutil.rmtree(aside, ignore_errors=True)
        before = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        self.assertTrue(damage.files(folder, kind), kind)
        damage.apply(how, damage.files(folder, kind)[-1], self.random)
        seen = not damage.may_be_unseen(kind, how, when)
        status = adamant.adamant("status", run.folder, "--output", "json")
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertEqual(json.loads(status.stdout)["epoch"], before["epoch"])
        if seen:
            self.assertIn(f"{folder}", status.stderr)
        self.go_on(run)
        if seen:
            self.assertTrue(aside.is_dir())
            alarms = [event["text"] for event in run.events() if event["event"] == "alarm"]
            self.assertTrue(any(f"kept as {aside}" in text for text in alarms), alarms)

    def test_what_is_in_the_place_of_a_folder_goes_aside_where_others_have_its_data(self):
        run = self.run_to_damage()
        for name, make in itertools.product(("", "shards", "shards/records", "shards/segments"),
                                            (pathlib.Path.touch, os.mkfifo, lead_nowhere)):
            with self.subTest(name=name, make=make.__name__):
                self.stop(run, "stopped")
                path = run.folder / "data" / "parameter-server-0" / name
                aside = pathlib.Path(f"{path if name in ('', 'shards') else path.parent}.damaged")
                for old in (path, aside):
                    if old.is_dir():
                        shutil.rmtree(old)
                    else:  # where rmtree would wait, if it is a FIFO
                        old.unlink(missing_ok=True)
                make(path)
                self.go_on(run)
                self.assertTrue(os.path.lexists(aside))
                alarms = [event["text"] for event in run.events() if event["event"] == "alarm"]
                self.assertTrue(any(f"{path}: is a" in text for text in alarms), alarms)

    def test_what_is_damaged_while_it_runs_is_written_anew_and_told(self):
        """The values of all checkpoints too: an epoch's end waits for one."""
        moments = {"training": lambda run: run.await_epoch(1),
                   "evaluating": lambda run: self.await_phase(run, "Evaluating", 2)}
        for how, servers, moment in (("gone", [0], "training"), ("bit", [0], "evaluating"), ("gone", [0, 1, 2], "evaluating"),
                                     ("bit", [0, 1, 2], "training")):
            with self.subTest(how=how, servers=servers, moment=moment):
                run = self.run_in(f"{how}-{len(servers)}").train(
                    self.job(epochs=5, layers=LARGE, parameter_servers=3, copies=3))
                moments[moment](run)
                stores = [run.folder / "data" / f"parameter-server-{server}" / "shards" for server in servers]
                for path in [path for store in stores for path in damage.files(store, damage.SEGMENT)]:
                    with contextlib.suppress(FileNotFoundError):  # the server has written its values elsewhere meanwhile
                        damage.apply(how, path, self.random)
                code, output = run.wait(timeout=60)
                self.assertEqual(code, 0, output)
                self.assertEqual([int(row["epoch"]) for row in run.rows()], [1, 2, 3, 4, 5])
                self.assertNotIn("restored", [event["event"] for event in run.events()])
                alarms = [event["text"] for event in run.events() if event["event"] == "alarm"]
                if how == "gone" and moment == "evaluating":  # else all may have been written anew before anybody looked
                    self.assertTrue(any(f"{store}/segments/" in text for store in stores for text in alarms), alarms)

    def await_phase(self, run, phase, epoch):
        deadline = time.monotonic() + 60
        while not any(event.get("text") == phase and event["epoch"] == epoch for event in run.events()):
            self.assertLess(time.monotonic(), deadline, run.events())
            self.assertIsNone(run.process.poll())
            time.sleep(0.005)

    def test_without_the_folder_of_all_data_a_run_ends_at_once(self):
        run = self.run_to_damage()
        self.stop(run, "killed")
        shutil.rmtree(run.folder / "data")
        for make in (pathlib.Path.touch, os.mkfifo):
            make(run.folder / "data")
            result = adamant.adamant("train", "--resume", run.folder)
            self.assertEqual(result.returncode, 4, result.stderr)
            self.assertIn(f"{run.folder / 'data'}: is a", result.stderr)
            (run.folder / "data").unlink()

    def test_a_state_that_is_older_than_the_servers_disks_is_refused_until_the_newest_is_put_back(self):
        run = self.run_to_damage()
        self.stop(run, "stopped")
        states, older, newest = ("controller", "controller.copy"), self.folder / "older", self.folder / "newest"
        for state in states:
            shutil.copytree(run.folder / state, older / state)
        run.resume().await_epoch(len(run.rows()) + 1)
        self.stop(run, "stopped")
        rows = run.rows()
        newest.mkdir()
        for state in states:
            (run.folder / state).rename(newest / state)
            shutil.copytree(older / state, run.folder / state)
        for _ in range(3):  # accepted, as the rows of metrics.csv alone have it refused
            code, output = run.start("--resume", run.folder, "--accept-changes").wait()
            self.assertEqual(code, 1, output)
            self.assertIn("older than the disks of its parameter servers", adamant.in_one_line(output))
        for state in states:
            shutil.rmtree(run.folder / state)
            (newest / state).rename(run.folder / state)
        run.resume().await_epoch(len(rows) + 1)
        self.assertEqual(run.rows()[:len(rows)], rows)

    def test_with_one_copy_what_is_no_file_is_named_and_nothing_is_started_again(self):
        run = self.run_in().train(self.job(epochs=100_000, restarts=100_000, copies=1))
        run.await_epoch(1)
        self.stop(run, "stopped")
        path = run.folder / "data" / "parameter-server-0" / "shards" / "records" / "CURRENT"
        damage.apply("fifo", path, self.random)
        code, output = run.resume().wait(timeout=60)
        self.assertEqual(code, 1, output)
        self.assertIn(f"{path}: is a FIFO", output)
        self.assertNotIn("restarting", [event["event"] for event in run.events()])

    def test_with_one_copy_a_link_that_leads_nowhere_is_named_and_stays(self):
        run = self.run_in().train(self.job(epochs=100_000, restarts=100_000, copies=1))
        run.await_epoch(1)
        self.stop(run, "stopped")
        for name in ("", "shards"):
            path = run.folder / "data" / "parameter-server-0" / name
            kept = path.rename(self.folder / "kept")
            lead_nowhere(path)
            code, output = run.resume().wait(timeout=60)
            self.assertEqual(code, 1, output)
            self.assertIn(f"{path}: is a link that leads nowhere", adamant.in_one_line(output))
            path.unlink()
            kept.rename(path)
        self.go_on(run)

    def test_what_the_run_was_started_with_is_named_when_it_cannot_be_read_and_not_needed(self):
        run = self.run_to_damage()
        self.stop(run, "killed")
        path = run.folder / "started.yaml"
        whole = path.read_bytes()
        self.assertIn(b"rate: 0.005", whole)
        for damaged in (whole[:-1] + b"\0[", whole[:len(whole) // 2], whole.replace(b"rate: 0.005", b"rate: 0.007")):
            path.write_bytes(damaged)
            result = adamant.adamant("train", "--resume", run.folder)
            self.assertNotIn(result.returncode, (0, 1), result.stderr)
            self.assertIn(str(path), result.stderr)
        path.unlink()
        result = adamant.adamant("train", "--resume", run.folder)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn(f"{path} is gone, which says what the run was started with", result.stderr)
        self.go_on(run, "--accept-changes")

    def test_what_is_no_file_is_named_and_the_run_goes_on_without_it(self):
        run = self.run_to_damage()
        self.stop(run, "stopped")
        before = run.rows()
        for name, how in itertools.product(("started.yaml", "metrics.csv", "events.jsonl", "endpoint", "lock", "model.onnx",
                                             "model.safetensors", "logs/data-server-0.log"), ("folder", "fifo", "loop")):
            with self.subTest(file=name, damage=how):
                path = run.folder / name
                kept = path.rename(f"{path}.kept") if path.exists() else None
                {"folder": os.mkdir, "fifo": os.mkfifo, "loop": lambda path: path.symlink_to(path)}[how](path)
                result = adamant.adamant("train", "--resume", run.folder, timeout=60)
                self.assertEqual(result.returncode, 4, result.stderr)
                called = {"folder": "folder", "fifo": "FIFO", "loop": "link that leads to itself"}[how]
                self.assertIn(f"{path}: is a {called}, where a file belongs; move it away", result.stderr)
                path.rmdir() if how == "folder" else path.unlink()
                if kept is not None:
                    kept.rename(path)
        for name in ("logs", "checkpoints"):
            path = run.folder / name
            path.rename(self.folder / "kept")
            path.touch()
            result = adamant.adamant("train", "--resume", run.folder, timeout=60)
            self.assertEqual(result.returncode, 4, result.stderr)
            self.assertIn(f"{path}: is a file, where a folder belongs; move it away", result.stderr)
            path.unlink()
            (self.folder / "kept").rename(path)
        run.resume()
        self.await_rows(run, len(before) + 1)
        self.assertEqual(run.rows()[:len(before)], before)

    def test_what_is_no_file_holds_no_command_up(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        out = self.folder / "out"
        status, evaluate, resume = ("status", run.folder), ("eval", run.folder), ("train", "--resume", run.folder)
        export = ("export", run.folder, "--format", "onnx", "--out", out)
        number = min(int(path.stem) for path in (run.folder / "checkpoints").iterdir())
        of_checkpoint = (*export, "--checkpoint", number)
        for path, commands in ((run.folder / "job.yaml", (status, export, of_checkpoint, evaluate, resume)),
                               (run.folder / "model.safetensors", (export, evaluate)),
                               (run.folder / "checkpoints" / f"{number}.json", (of_checkpoint,))):
            kept = path.rename(self.folder / "kept")
            os.mkfifo(path)
            for command in commands:
                with self.subTest(file=path.name, command=command[0]):
                    result = adamant.adamant(*command)
                    self.assertIn(result.returncode, (2, 4), result.stderr)
                    self.assertIn(f"{path}: is a FIFO, where a file belongs", result.stderr)
            if path.parent.name == "checkpoints":
                self.assertEqual(adamant.adamant(*resume).returncode, 0)  # it is finished
            path.unlink()
            kept.rename(path)

    def test_a_user_may_name_a_pipe(self):
        text = self.job().read_text()
        result = subprocess.run([adamant.binary_folder() / "adamant", "validate", "/dev/stdin"], input=text, capture_output=True,
                                text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_rows_are_written_anew_from_the_state(self):
        run = self.run_to_damage()
        for how in damage.DAMAGES:
            with self.subTest(damage=how):
                self.stop(run, "killed")
                rows = (run.folder / "metrics.csv").read_text()
                damage.apply(how, run.folder / "metrics.csv", self.random)
                run.resume().await_epoch(rows.count("\n"))
                self.assertTrue((run.folder / "metrics.csv").read_text().startswith(rows))

    def test_a_damaged_model_is_not_measured(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        path = run.folder / "model.safetensors"
        self.assertEqual(adamant.adamant("eval", run.folder).returncode, 0)
        whole = path.read_bytes()
        for how in ("bit", "cut"):
            with self.subTest(damage=how):
                damage.apply(how, path, self.random)
                result = adamant.adamant("eval", run.folder)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(str(path), result.stderr)
                path.write_bytes(whole)

    def test_a_fifo_in_the_place_of_the_model_ends_the_run_which_goes_on_without_it(self):
        for name in ("model.onnx", "model.safetensors"):
            with self.subTest(file=name):
                run = self.run_in(name).train(self.job(epochs=2, train="{digits: {seed: 1, examples: 10000}}"))
                run.await_epoch(0)
                path = run.folder / name
                os.mkfifo(path)
                code, output = run.wait(timeout=60)
                self.assertEqual(code, 4, output)
                self.assertIn(f"cannot write the model: {path}: is a FIFO, where a file belongs", output)
                self.assertIn("move it away, then go on with: adamant train --resume", output)
                rows = run.rows()
                self.assertEqual(len(rows), 2)
                path.unlink()
                code, output = run.resume().wait()
                self.assertEqual(code, 0, output)
                self.assertNotIn("warning", output)
                self.assertEqual(run.rows(), rows)
                self.assertEqual(adamant.adamant("eval", run.folder).returncode, 0)

    def test_a_finished_run_whose_model_is_damaged_warns_and_says_how_it_is_written_anew(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        for name in ("model.onnx", "model.safetensors"):
            path = run.folder / name
            whole = path.read_bytes()
            flipped = bytearray(whole)
            flipped[len(whole) // 2] ^= 1
            for damaged in (None, b"", whole[:-100], whole[:-1], bytes(flipped)):
                with self.subTest(file=name, bytes=damaged and len(damaged)):
                    path.unlink() if damaged is None else path.write_bytes(damaged)
                    result = adamant.adamant("train", "--resume", run.folder)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    said = adamant.in_one_line(result.stdout + result.stderr)
                    warned = [line for line in said.splitlines() if "warning: " in line]
                    self.assertEqual(len(warned), 1, warned)
                    self.assertIn(str(path), warned[0])
                    command = warned[0].split(": adamant ")[1].split()
                    again = adamant.adamant(*command)
                    self.assertEqual(again.returncode, 0, again.stderr)
                    result = adamant.adamant("train", "--resume", run.folder)
                    self.assertNotIn("warning", result.stdout + result.stderr)

    def test_a_manifest_that_is_none_is_bad_input_to_all(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        (run.folder / "job.yaml").write_text("spec: [")
        for command in (["train", "--resume"], ["status"], ["export", "--format", "onnx", "--out", self.folder / "x"], ["eval"]):
            result = adamant.adamant(*command, run.folder)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(str(run.folder / "job.yaml"), result.stderr)

    def test_a_run_whose_lock_is_gone_is_in_use_all_the_same(self):
        run = self.run_in().train(self.job(epochs=10000))
        run.await_epoch(0)
        (run.folder / "lock").unlink()
        result = adamant.adamant("train", "--resume", run.folder)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn(f"{run.folder} is in use by another adamant", result.stderr)

    def test_no_picture_ends_a_run(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        curve = run.folder / "learning-curve.svg"
        curve.unlink()
        curve.mkdir()
        manifest = run.folder / "job.yaml"
        manifest.write_text(manifest.read_text().replace("epochs: 1\n", "epochs: 2\n"))
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assertIn(f"the story of the run is not complete: {curve}: is a folder, where a file belongs", output)
        self.assertEqual(len(run.rows()), 2)

    def test_what_only_tells_of_a_run_does_not_hold_it_up(self):
        run = self.run_to_damage()
        cells = list(itertools.product(TOLD, damage.DAMAGES))
        for name, how in cells if ALL else self.random.sample(cells, 5):
            with self.subTest(file=name, damage=how):
                self.stop(run, "killed")
                damage.apply(how, run.folder / name, self.random)
                before = run.rows()
                run.resume()
                self.await_rows(run, len(before) + 1)
                self.assertEqual(run.rows()[:len(before)], before)

    def await_rows(self, run, number):
        """Not by events.jsonl, which may be the damaged file."""
        deadline = time.monotonic() + 60
        while len(run.rows()) < number:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(run.process.poll())
            time.sleep(0.01)

    def test_a_damaged_manifest_of_a_checkpoint_is_not_exported(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        path = max((run.folder / "checkpoints").iterdir())
        whole = path.read_bytes()
        for how in damage.DAMAGES:
            with self.subTest(damage=how):
                damage.apply(how, path, self.random)
                result = adamant.adamant("export", run.folder, "--checkpoint", path.stem, "--format", "safetensors",
                                         "--out", self.folder / "model")
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("no checkpoint" if how == "gone" else str(path), result.stderr)
                path.write_bytes(whole)


if __name__ == "__main__":
    unittest.main()

"""Runs the real `adamant` for the tests and benchmarks of this folder's neighbours: manifests, processes, results."""

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

ROLES = ("worker", "data-server", "parameter-server")

LAYERS = """
        - {name: conv1, kind: Conv2d, channels: 4, kernel: [5, 5]}
        - {name: pool1, kind: MaxPool, kernel: [4, 4], stride: [4, 4]}
        - {name: relu1, kind: Relu}
        - {name: fc1, kind: FullyConnected, outputs: 10}"""

MANIFEST = """\
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:{layers}
  data:
    train: {train}
    validation: {validation}
  optimiser: {optimiser}
  distribution:
    workers: {workers}
    warmStart: {{examples: {warm_start}}}
    dataServers: {data_servers}
    parameterServers: {{count: {parameter_servers}{copies}, buckets: 8, persistence: {{flushInterval: 200ms}}}}
  runPolicy:
    epochs: {epochs}
    epochCompletion: {epoch_completion}
    seed: {seed}
    restartBudget: {{limit: {restarts}, backoff: 100ms}}
    onDivergence: {on_divergence}
"""


def manifest(**values):
    """A small job on generated digits; `values` replace the defaults below. copies=None leaves the product's default.

    warm_start is so short that of several workers all train, and not the first nearly alone."""
    defaults = dict(
        name="tiny", layers=LAYERS, train="{digits: {seed: 1, examples: 3000}}",
        validation="{digits: {seed: 2, examples: 500}}",
        optimiser="{kind: Momentum, rate: 0.005}", workers=2, warm_start=1500, data_servers=1, parameter_servers=2, copies=None, epochs=3,
        epoch_completion=1, seed=1, restarts=10, on_divergence="{action: Recover, times: 3}")
    assert values.keys() <= defaults.keys(), values
    values = {**defaults, **values}
    values["copies"] = "" if values["copies"] is None else f", copies: {values['copies']}"
    return MANIFEST.format(**values)


def binary_folder():
    return pathlib.Path(os.environ["ADAMANT_BIN_DIR"])


def adamant(*arguments, timeout=60):
    """Runs a command to its end."""
    return subprocess.run([binary_folder() / "adamant", *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, check=False)


def in_one_line(said):
    """What a command said, of which long messages are broken into lines."""
    return said.replace(";\n  ", "; ")


def but_poor(stderr):
    """What a command said, without that the model is a poor one, as after so few examples."""
    return re.sub("^warning: the job succeeded with a poor model: .*\n(?:  .*\n)*", "", stderr, flags=re.MULTILINE)


def alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Run:
    """One `adamant train` in a folder of its own."""

    def __init__(self, folder, programs=None):
        """`programs`: the folder of others than those under test."""
        self.folder = pathlib.Path(folder)
        self.process = None
        self._programs = programs

    def start(self, *arguments):
        programs = self._programs or binary_folder()
        self.process = subprocess.Popen([programs / "adamant", "train", *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return self

    def train(self, job):
        return self.start(job, "--run-dir", self.folder)

    def resume(self):
        return self.start("--resume", self.folder)

    def wait(self, timeout=120):
        """The exit code and what was printed."""
        try:
            output, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, output

    def members(self):
        """{"worker-0": pid} of the processes that run now."""
        found = {}
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            pids = children.read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            return found
        for pid in map(int, pids):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if "--slot" in words:
                role = pathlib.Path(words[0]).name.removeprefix("adamant-")
                found[f"{role}-{words[words.index('--slot') + 1]}"] = pid
        return found

    def rows(self):
        """metrics.csv so far, as dictionaries of texts."""
        try:
            with open(self.folder / "metrics.csv", newline="") as file:
                return list(csv.DictReader(file))
        except FileNotFoundError:
            return []

    def events(self):
        try:
            return [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def await_epoch(self, epoch, timeout=60):
        """Waits until this many epochs have ended; 0: until the first is open."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.process.poll() is None:
            if len(self.rows()) >= epoch and any(
                    event["event"] == "epoch_opened" and event["epoch"] > epoch for event in self.events()):
                return
            time.sleep(0.01)
        raise AssertionError(f"epoch {epoch} did not end: {self.rows()}")

    def kill(self, name):
        """SIGKILL to one member; False when it does not run at this moment."""
        pid = self.members().get(name)
        if pid is None:
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def kill_all(self):
        """SIGKILL to the controller and all members."""
        pids = [self.process.pid, *self.members().values()]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.process.stdout.close()
        return pids

    def end(self):
        """Leaves nothing running."""
        if self.process is not None and self.process.poll() is None:
            self.kill_all()
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()


class TestCase(unittest.TestCase):
    """Gives each test a folder and ends its runs."""

    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="adamant-e2e-")
        self.addCleanup(self._temporary.cleanup)
        self.folder = pathlib.Path(self._temporary.name)

    def job(self, **values):
        path = self.folder / f"job-{len(list(self.folder.glob('job-*')))}.yaml"
        path.write_text(manifest(**values))
        return path

    def run_in(self, name="run"):
        run = Run(self.folder / name)
        self.addCleanup(run.end)
        return run

    def assert_counted_once(self, run, epochs, examples, events=None):
        """Every epoch has one row, and each of its examples was counted once; a failure shows the events."""
        rows = run.rows()
        self.assertEqual([int(row["epoch"]) for row in rows], list(range(1, epochs + 1)), events)
        for row in rows:
            self.assertEqual(int(row["examples_counted"]) + int(row["examples_left"]), examples, row)

    def assert_all_gone(self, pids, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(map(alive, pids)):
            time.sleep(0.01)
        self.assertEqual([pid for pid in pids if alive(pid)], [])

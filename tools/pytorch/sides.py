"""The two programs that are compared, as children that run a repetition on request."""

import ctypes
import json
import os
import pathlib
import select
import signal
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PR_SET_PDEATHSIG = 1
ANSWER_SECONDS = 900  # the longest: a net compiled on a busy machine

libc = ctypes.CDLL(None)


class Failure(Exception):
    """Said to the user as it is."""


def die_with_parent():
    """A child ends when this process does, however that ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """A program that answers lines with lines of JSON. Use it in a `with`: it is gone afterwards."""

    def __init__(self, command, environment=None):
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
            env={**os.environ, **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def read(self):
        """The next line; None at the end of a program that succeeded."""
        if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
            raise Failure(f"no answer within {ANSWER_SECONDS} s from {' '.join(self.command)}")
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        if self.process.wait() != 0:
            raise Failure(f"failed with {self.process.returncode}: {' '.join(self.command)}")
        return None

    def ask(self, request=""):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.read()
        if answer is None:
            raise Failure(f"ended early: {' '.join(self.command)}")
        return answer

    def lines(self):
        """What it prints until it ends."""
        while (line := self.read()) is not None:
            yield line


class Sides:
    """How to start the programs. `bench`: train_bench; `python`: an interpreter that has PyTorch."""

    def __init__(self, bench, python, folder):
        self.bench = bench
        self.python = python
        self.folder = pathlib.Path(folder)

    def describe(self, net):
        """A file with the net for PyTorch."""
        run = subprocess.run([self.bench, "describe", net], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Failure(run.stderr.strip())
        path = self.folder / f"{pathlib.Path(net).stem}.json"
        path.write_text(run.stdout)
        return path

    def ours(self, command, net, batch, threads, *more):
        return Child([self.bench, command, net, "--batch", batch, "--threads", threads, *more])

    def theirs(self, command, net, batch, threads, processes, *more):
        # Inductor would start a pool of processes to compile in.
        environment = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor")}
        return Child([self.python, HERE / "child.py", command, "--net", self.describe(net), "--batch", batch,
                      "--threads", threads, "--processes", processes, *more], environment)

    def their_versions(self):
        code = ("import torch, platform; cpu = torch.backends.cpu.get_cpu_capability(); "
                "mkl = torch.__config__.show().split('MKL-DNN v')[1].split()[0]; "
                "print(f'PyTorch {torch.__version__} ({cpu}, oneDNN {mkl}), Python {platform.python_version()}')")
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

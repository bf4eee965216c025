"""Tests as processes: what they say, with limits on time, memory and files."""

import contextlib
import dataclasses
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile

MEMORY_BYTES = 8 << 30  # of addresses
FILE_BYTES = 2 << 30
READ_BYTES = 16 << 20  # of the output
CASE = re.compile(r"^\[  FAILED  \] (\w+[\w./]*)", re.MULTILINE)
BEGUN = re.compile(r"^\[ RUN      \] (\w+[\w./]*)", re.MULTILINE)
SEED = re.compile(r"^seed (\d+)\b:? ?(.*)$", re.MULTILINE)


@dataclasses.dataclass
class Run:
    failed: bool
    hung: bool
    output: str

    def case(self) -> str:
        """The first test case that failed, or in which the program hung or ended."""
        if found := CASE.search(self.output):
            return found[1]
        begun = BEGUN.findall(self.output)
        return ("hangs" if self.hung else "ends") + (f" in {begun[-1]}" if begun else "")

    def seeds(self, first: int, count: int) -> list[tuple[int, str]]:
        """Seeds of this range that broke a promise, with the promise; each once, lowest first."""
        found: dict[int, str] = {}
        for number, text in SEED.findall(self.output):
            if first <= int(number) < first + count:
                found.setdefault(int(number), text)
        return sorted(found.items())


def stop(process: subprocess.Popen) -> None:
    """Ends it with all that it has started, if it lives."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(program: pathlib.Path, seconds: float, environment: dict[str, str] | None = None) -> Run:
    with tempfile.TemporaryDirectory(prefix="adamant-mutate-") as folder, open(f"{folder}/output", "w+b") as output:
        with subprocess.Popen([program], cwd=folder, env={**os.environ, "TMPDIR": folder, **(environment or {})},
                              stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                              start_new_session=True, preexec_fn=limit) as process:
            hung = False
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                hung = True
            finally:
                stop(process)
        output.seek(0)
        text = output.read(READ_BYTES).decode(errors="replace")
    return Run(failed=hung or process.returncode != 0, hung=hung, output=text)


def run_seeds(program: pathlib.Path, first: int, count: int, seconds: float) -> Run:
    return run(program, seconds, {"ADAMANT_SIMULATION_FIRST_SEED": str(first), "ADAMANT_SIMULATION_SEEDS": str(count)})

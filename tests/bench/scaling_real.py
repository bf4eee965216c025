"""Runs the real processes of a case of scaling.py, disturbs them, and reads what they measure."""

import contextlib
import itertools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import replicated_training
import runs
import scaling_manifest

TIMEOUT = 2 * 3600  # seconds of one run; what takes longer has failed
SCRAPE = 1  # seconds between two looks at the metrics
SCRAPES_PER_STATUS = 5  # looks between two at who there is, which takes a processor for 50 ms
REFUSED = (2, 4)  # exit codes: the manifest is wrong, this machine does not let it run
MESSAGE = 2000  # characters of what a failed job printed last


class Loop:
    """`with Loop(turn):` calls turn(ended) again and again in a thread, until the block ends."""

    def __init__(self, turn):
        self._turn = turn
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _loop(self):
        while not self._ended.is_set():
            self._turn(self._ended)


def send(pid, what):
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        pass


def stop_and_go(run, slot, runs_for, stands_for):
    """A turn in which the worker of this slot runs and then stands still."""
    def turn(ended):
        if ended.wait(runs_for):
            return
        pid = run.members().get(f"worker-{slot}")
        if pid is None:
            return
        send(pid, signal.SIGSTOP)
        ended.wait(stands_for)
        send(pid, signal.SIGCONT)
    return Loop(turn)


def straggler(run, case):
    """The last worker has a quarter of the time that the others have."""
    return stop_and_go(run, case.workers - 1, 0.025, 0.075)


def pauses(run, case):
    """The last worker stands still for 6 s every 20 s."""
    return stop_and_go(run, case.workers - 1, 14, 6)


def server_kills(run, case):
    """A random parameter server is killed every ten seconds."""
    return replicated_training.Killer(run, case.seed)


DISTURBANCES = {"straggler": straggler, "pauses": pauses, "server-kills": server_kills}


def metrics_of(address):
    """{"name{labels}": value}; empty while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=2) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return {}
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


class Scraper:
    """`with Scraper(run) as scraper:` reads the metrics of all workers, so that virtual ones can be given their times."""

    def __init__(self, run):
        self._run = run
        self._addresses = set()
        self._looks = {}  # by address: [(seconds, metrics)]
        self._turns = itertools.count()
        self._loop = Loop(self._turn)

    def __enter__(self):
        self._loop.__enter__()
        return self

    def __exit__(self, *_):
        self._loop.__exit__()

    def _turn(self, ended):
        ended.wait(SCRAPE)
        if next(self._turns) % SCRAPES_PER_STATUS == 0:
            self._addresses = self._addresses_now()
        for address in self._addresses:
            found = metrics_of(address)
            if found.get("adamant_worker_steps_total", 0) > 0:
                self._looks.setdefault(address, []).append((time.monotonic(), found))

    def _addresses_now(self):
        done = runs.adamant("status", self._run.folder, "--output", "json")
        members = json.loads(done.stdout).get("members", []) if done.returncode == 0 else []
        return {member["metrics_address"] for member in members
                if member["name"].startswith("worker") and member["metrics_address"]}

    def measured(self, threads, evaluation):
        """Means over workers (times_of); None where too little was seen."""
        workers = [times for times in (times_of(looks, threads, evaluation) for looks in self._looks.values()) if times]
        return {name: statistics.mean(each[name] for each in workers) for name in workers[0]} if workers else None


def times_of(looks, threads, evaluation):
    """Of one worker, from its metrics at several times. In seconds: `step` of a thread, `push` and `fetch` there and back of
    one server, `fetch_wait` of a thread for all of a fetch; `fetch_every` in steps of a thread; `gap` in batches of others.
    None where too little was seen. `evaluation`: seconds of the job's evaluations, in which threads wait for values too."""
    (begin, first), (end, last) = looks[0], looks[-1]

    def growth(name):
        return sum(last.get(key, 0) - first.get(key, 0) for key in last if key.startswith(name))

    steps, fetches = growth("adamant_worker_steps_total"), growth("adamant_worker_fetches_total")
    # None before others train, nor in programs that did not measure it.
    gaps = [gap for gap in (found.get("adamant_worker_staleness_batches", 0) for _, found in looks) if gap > 0]
    if steps < 100 or fetches < 10 or growth("adamant_worker_push_seconds_count") < 10 or not gaps:
        return None
    busy = threads * (end - begin) - growth("adamant_worker_wait_seconds_total")
    return {"step": busy / steps,
            "push": growth("adamant_worker_push_seconds_sum") / growth("adamant_worker_push_seconds_count"),
            "fetch": growth("adamant_worker_fetch_seconds_sum") / growth("adamant_worker_fetch_seconds_count"),
            "fetch_wait": max(0, growth('adamant_worker_wait_seconds_total{for="fetch"}') / threads - evaluation) / fetches,
            "fetch_every": steps / fetches / threads,
            "gap": statistics.mean(gaps)}


@contextlib.contextmanager
def programs_of(folder):
    """`adamant` and the processes come from this folder."""
    before = os.environ["ADAMANT_BIN_DIR"]
    os.environ["ADAMANT_BIN_DIR"] = str(folder)
    try:
        yield
    finally:
        os.environ["ADAMANT_BIN_DIR"] = before


def train(case, data, binaries):
    """Runs the job with the programs of a folder; what is remembered of it."""
    with programs_of(binaries), tempfile.TemporaryDirectory(prefix="adamant-bench-") as folder:
        job = pathlib.Path(folder) / "job.yaml"
        job.write_text(scaling_manifest.manifest(case, data))
        run = runs.Run(pathlib.Path(folder) / "run")
        begin = time.monotonic()
        run.train(job)
        try:
            code, output, scraper = watch(run, case)
        finally:
            run.end()
        if code in REFUSED:
            sys.exit(f"{case} cannot be run:\n{output}")
        rows = run.rows()
        return {**result_of(rows), "exit_code": code, "message": output[-MESSAGE:] if code else "",
                "measured": scraper.measured(case.threads, runs.total(rows, "evaluation_seconds")),
                "seconds": time.monotonic() - begin}


def watch(run, case):
    """(exit code, what was printed, Scraper)"""
    scraper = Scraper(run)
    with contextlib.ExitStack() as stack:
        stack.enter_context(scraper)
        if case.disturbance:
            with contextlib.suppress(AssertionError):  # it has ended: the exit code says why
                run.await_epoch(0)
            stack.enter_context(DISTURBANCES[case.disturbance](run, case))
        try:
            code, output = run.wait(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            code, output = -1, "it took too long"
    return code, output, scraper


def result_of(rows):
    """Of metrics.csv, in the order of its rows: epochs that were undone among them."""
    examples, seconds = runs.total(rows, "examples_counted"), runs.total(rows, "seconds")
    return {"top1": [100 * float(row["top1"] or 0) for row in rows],
            "attempts": max((int(row.get("attempt", 1)) for row in rows), default=1),
            "staleness": [float(row.get("batches_of_others_mean") or 0) for row in rows],
            "updates_lost": runs.total(rows, "updates_lost"), "training_seconds": seconds,
            "examples_per_second": examples / seconds if seconds else 0}

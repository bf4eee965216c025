#!/usr/bin/env python3
"""System calls of a real worker process for each step of training, by thread and by call, while deploy/examples/digits.yaml
trains. Counted by the kernel's tracepoints, which slow a worker little. Needs perf (Debian: linux-perf) and root.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/worker_calls.py [--seconds 10] [--runs 3]
"""

import argparse
import collections
import json
import pathlib
import re
import signal
import statistics
import subprocess
import urllib.request

import runs

WORKER = "worker-0"
THREAD = re.compile(r"^ (\S.*) \((\d+)\), \d+ events")
CALL = re.compile(r"^ +([a-z_0-9]+) +(\d+) ")


def steps_of(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return float(re.search(r"(?m)^adamant_worker_steps_total (\S+)$", answer.read().decode()).group(1))


def trace(pid, seconds, summary):
    """{call: how often} of each thread, the busiest first."""
    subprocess.run(["perf", "trace", "--summary", "--output", summary, "--pid", str(pid), "--", "sleep", str(seconds)], check=True)
    threads = []
    for line in summary.read_text().splitlines():
        if THREAD.match(line):
            threads.append(collections.Counter())
        elif match := CALL.match(line):
            threads[-1][match.group(1)] += int(match.group(2))
    return sorted(threads, key=lambda calls: -calls.total())


def measure(folder, seconds):
    """(steps a second, calls a step, {call: a step}, [calls a step of each thread])."""
    folder.mkdir()
    job = runs.example("digits", folder, {"    epochs: 5": "    epochs: 1000"})
    run = runs.Run(folder / "run").train(job)
    try:
        run.await_epoch(1, timeout=180)
        status = json.loads(runs.adamant("status", run.folder, "--output", "json").stdout)
        address = next(member["metrics_address"] for member in status["members"] if member["name"] == WORKER)
        before = steps_of(address)
        threads = trace(run.members()[WORKER], seconds, folder / "summary")
        steps = steps_of(address) - before
        run.process.send_signal(signal.SIGINT)
        run.wait()
    finally:
        run.end()
    calls = sum(threads, collections.Counter())
    return (steps / seconds, calls.total() / steps, {call: count / steps for call, count in calls.most_common(6)},
            [thread.total() / steps for thread in threads])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    runs.print_header("run", "steps/s", "calls a step", "which", "by thread")
    found = []
    with runs.temporary_folder() as folder:
        for i in range(arguments.runs):
            rate, calls, kinds, threads = measure(pathlib.Path(folder) / str(i), arguments.seconds)
            found.append(calls)
            runs.print_row(i + 1, f"{rate:.0f}", f"{calls:.1f}", ", ".join(f"{kind} {count:.1f}" for kind, count in kinds.items()),
                           " ".join(f"{count:.1f}" for count in threads if count >= 0.1))
    print(f"median {statistics.median(found):.1f}")


if __name__ == "__main__":
    main()

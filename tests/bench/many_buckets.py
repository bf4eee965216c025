#!/usr/bin/env python3
"""What buckets cost, of which most hold nothing: seconds from the start until the first epoch is open, and from Ctrl-C
to the end, memory of all processes together, and the speed of an epoch. digits.yaml, one run after another.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/many_buckets.py [--buckets 64 640 5000] [--runs 3]
"""

import argparse
import pathlib
import re
import signal
import statistics
import time

import runs


def resident(pid):
    """Megabytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def measure(folder, buckets):
    """(seconds to the first epoch, seconds from Ctrl-C to the end, MB, examples a second)."""
    folder.mkdir()
    job = runs.example("digits", folder, {"    parameterServers: {": f"    parameterServers: {{buckets: {buckets}, "})
    begin = time.monotonic()
    run = runs.Run(folder / "run").train(job)
    try:
        run.await_epoch(0)
        opened = time.monotonic() - begin
        run.await_epoch(1, timeout=180)
        memory = sum(resident(pid) for pid in [run.process.pid, *run.members().values()])
        speed = runs.total(run.rows(), "examples_counted") / runs.total(run.rows(), "seconds")
        begin = time.monotonic()
        run.process.send_signal(signal.SIGINT)
        run.wait()
        return opened, time.monotonic() - begin, memory, speed
    finally:
        run.end()


def median(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", nargs="+", type=int, default=[64, 640, 5000])
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    runs.print_header("buckets", "first epoch open, s", "Ctrl-C to the end, s", "memory, MB", "examples/s")
    with runs.temporary_folder() as folder:
        for buckets in arguments.buckets:
            found = [measure(pathlib.Path(folder) / f"{buckets}-{i}", buckets) for i in range(arguments.runs)]
            opened, ended, memory, speed = zip(*found)
            runs.print_row(buckets, median(opened, 1), median(ended, 1), median(memory, 0), median(speed, 0))


if __name__ == "__main__":
    main()

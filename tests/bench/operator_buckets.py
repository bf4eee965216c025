#!/usr/bin/env python3
"""How soon a job with many buckets runs on a real cluster of three nodes, and the most memory that an operator takes.

  ADAMANT_BIN_DIR=build/release/bin PYTHONPATH=tests/cluster tests/bench/operator_buckets.py --buckets 64 1000 5000
"""

import argparse
import pathlib
import re
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / folder) for folder in ("cluster", "e2e")]

import adamant  # noqa: E402
import runs  # noqa: E402
from operator_rig import Job, System  # noqa: E402

NODES = 3
PATIENCE = 300  # seconds


def manifest(name, buckets):
    text = adamant.manifest(name=name, parameter_servers=3, copies=3, epochs=2,
                            train="{digits: {seed: 1, examples: 20000}}")
    return text.replace("buckets: 8", f"buckets: {buckets}")


def most_memory():
    """Of any operator that runs, in MB (VmHWM)."""
    found = [0]
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().strip() == "adamant-operato":
                found.append(int(re.search(r"VmHWM:\s+(\d+)", (process / "status").read_text())[1]))
        except (OSError, TypeError):
            continue  # it has ended
    return max(found) / 1024


def measure(system, buckets):
    job = Job(system, manifest(f"buckets-{buckets}", buckets))
    begin = time.monotonic()
    job.apply()
    running = job.await_phase("Running", seconds=PATIENCE).time - begin
    job.await_phase("Succeeded", seconds=PATIENCE)
    whole = time.monotonic() - begin
    job.delete()
    return running, whole


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", nargs="+", type=int, default=[64, 1000, 5000])
    options = parser.parse_args()
    runs.print_header("buckets", "apply → Running, s", "apply → Succeeded, s", "most memory of an operator so far, MB")
    with System(NODES) as system:
        for buckets in options.buckets:
            running, whole = measure(system, buckets)
            runs.print_row(f"{buckets:,}", f"{running:.1f}", f"{whole:.1f}", f"{most_memory():.0f}")


if __name__ == "__main__":
    main()

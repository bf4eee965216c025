#!/usr/bin/env python3
"""Counts what changes in the buckets of a replicated MNIST job, with more workers than cores, to which nothing happens.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/false_failovers.py DATA_DIR [--minutes 30] [--settings default fast]

A failover here is a false one; so is a member that is dropped. Both raise the epoch of a bucket.
"""

import argparse
import os
import pathlib
import sys
import threading
import time

import runs
import watch

SETTINGS = {
    "default": "failover: {beacon: 500ms, lease: 3s, grace: 4s}",
    "fast": "failover: {beacon: 100ms, lease: 600ms, grace: 800ms}",
}
SETTLED = 5  # looks without a change, before which primaries may still be spread
FIRST = 20  # changes that are shown
HERTZ = os.sysconf("SC_CLK_TCK")


def processor_seconds(pids):
    """Of the processes so far."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / HERTZ


def idle_seconds():
    """Of all processors so far."""
    return int(pathlib.Path("/proc/stat").read_text().split()[4]) / HERTZ


def settled(looks):
    last = looks[-SETTLED:]
    return len(last) == SETTLED and last[0].whole() and all(seen.members == last[0].members for seen in last)


def differences(looks):
    """Buckets whose primary or members differ from one look to the next."""
    changed = []
    for before, seen in zip(looks, looks[1:]):
        for bucket, members in seen.members.items():
            if members != before.members[bucket]:
                changed.append(f"bucket {bucket}: {before.members[bucket]} became {members}")
    return changed


def measure(folder, data, name, minutes):
    job = runs.mnist_replicated(folder, data, {
        "epochs: 10": "epochs: 100000",
        "workers: 2": "workers: 4",
        "rate: 0.03": "rate: 0.01",  # four workers diverge with the rate for two
        "copies: 3}": f"copies: 3, {SETTINGS[name]}}}"})
    run = runs.Run(pathlib.Path(folder) / name).train(job)
    threading.Thread(target=run.process.stdout.read).start()  # a full pipe would stop it
    try:
        with watch.Watch(run) as watching:
            watching.await_that(lambda _: settled(watching.looks), "rest in the buckets")
            first, pids = len(watching.looks) - 1, [run.process.pid, *run.members().values()]
            begin, used, idle = time.monotonic(), processor_seconds(pids), idle_seconds()
            time.sleep(60 * minutes)
            seconds = time.monotonic() - begin
            used, idle = processor_seconds(pids) - used, idle_seconds() - idle
        return watching.looks[first:], seconds, used, idle
    finally:
        run.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=[*SETTINGS])
    arguments = parser.parse_args()
    runs.print_header("settings", "minutes", "false failovers", "other changes of members", "examples/s",
                      "processors busy", "of these by the job")
    with runs.temporary_folder() as folder:
        for name in arguments.settings:
            looks, seconds, used, idle = measure(folder, arguments.data, name, arguments.minutes)
            failovers = looks[-1].failovers - looks[0].failovers
            changed = differences(looks)
            print("\n".join(changed[:FIRST]), file=sys.stderr, flush=True)
            processors = os.cpu_count() * seconds
            runs.print_row(name, f"{seconds / 60:.1f}", failovers, max(0, len(changed) - failovers),
                           f"{(looks[-1].examples - looks[0].examples) / seconds:.0f}",
                           f"{1 - idle / processors:.0%}", f"{used / processors:.0%}")


if __name__ == "__main__":
    main()

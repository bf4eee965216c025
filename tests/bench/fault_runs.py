#!/usr/bin/env python3
"""SIGKILL at a random moment: a worker, a data server, a parameter server, and the whole group followed by --resume.
Each job must succeed, count every example once per epoch, leave no process, and end near the undisturbed runs.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/fault_runs.py [--runs 10] [--epochs 3] [--killed worker group]
"""

import argparse
import pathlib
import random
import statistics
import sys
import time

import runs

EXAMPLES = 60000
FLUSH_SECONDS = 1  # spec.distribution.parameterServers.persistence.flushInterval
BATCHES_PER_PUSH = 8
BATCH = 32
VICTIMS = (*runs.ROLES, "group")


def start(folder, name, seed, epochs):
    job = runs.example("digits", folder, {
        "  runPolicy:\n    epochs: 5": f"  runPolicy:\n    epochs: {epochs}\n    seed: {seed}"})
    return runs.Run(pathlib.Path(folder) / name).train(job)


def check(run, rows, pids, epochs):
    """Exits when the run breaks a promise."""
    counted = [int(row["examples_counted"]) for row in rows]
    if [int(row["epoch"]) for row in rows] != list(range(1, epochs + 1)) or counted != [EXAMPLES] * epochs:
        sys.exit(f"{run.folder}: examples were not counted once: {rows}")
    time.sleep(0.5)
    left = [pid for pid in pids if runs.alive(pid)]
    if left:
        sys.exit(f"{run.folder}: processes {left} are left")


def disturb(run, victim, delay):
    """Lets the run train for `delay` seconds, kills, and returns the pids that there were before."""
    run.await_epoch(0)
    time.sleep(delay)
    pids = [run.process.pid, *run.members().values()]
    if victim == "group":
        run.kill_all()
        run.resume()
    elif not run.kill(f"{victim}-0"):
        sys.exit(f"{run.folder}: no {victim}-0 to kill")
    return pids


def lost_seconds(rows):
    """Updates that were acknowledged and rolled back, as time at the job's rate of updates."""
    seconds = runs.total(rows, "seconds")
    updates = runs.total(rows, "examples_counted") / (BATCH * BATCHES_PER_PUSH) * runs.SHARDS
    return runs.total(rows, "updates_lost") / (updates / seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--killed", nargs="+", choices=VICTIMS, default=VICTIMS)
    arguments = parser.parse_args()
    runs.print_header("killed", "runs", "top-1, %", "from undisturbed, points", "trained again", "updates lost",
                      "that is seconds", "flush interval, s")
    with runs.temporary_folder() as folder:
        undisturbed, durations = [], []
        for seed in range(1, arguments.runs + 1):
            rows = runs.finish(start(folder, f"undisturbed-{seed}", seed, arguments.epochs))
            undisturbed.append(runs.top1(rows))
            durations.append(runs.total(rows, "seconds"))
        mean = statistics.mean(undisturbed)
        runs.print_row("nothing", arguments.runs, runs.spread(undisturbed), "", "", "", "", FLUSH_SECONDS)
        for victim in arguments.killed:
            accuracies, retrained, lost, seconds = [], [], [], []
            for seed in range(1, arguments.runs + 1):
                rng = random.Random(f"{victim}-{seed}")
                run = start(folder, f"{victim}-{seed}", seed, arguments.epochs)
                pids = disturb(run, victim, rng.uniform(0, 0.8 * min(durations)))
                rows = runs.finish(run)
                check(run, rows, pids, arguments.epochs)
                accuracies.append(runs.top1(rows))
                retrained.append(runs.total(rows, "examples_retrained"))
                lost.append(runs.total(rows, "updates_lost"))
                seconds.append(lost_seconds(rows))
            worst = max(abs(accuracy - mean) for accuracy in accuracies)
            runs.print_row(victim, arguments.runs, runs.spread(accuracies), f"at most {worst:.2f}",
                           runs.spread(retrained, 0), runs.spread(lost, 0), runs.spread(seconds), FLUSH_SECONDS)


if __name__ == "__main__":
    main()

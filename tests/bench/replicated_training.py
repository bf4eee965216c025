#!/usr/bin/env python3
"""MNIST with 4 parameter servers and 3 copies: undisturbed, and with a random server killed by SIGKILL every ten
seconds, from the tenth second of training to its end. Then how fast a job trains before such kills and after the last.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/replicated_training.py DATA_DIR [--runs 3] [--epochs 40] [--rates 3]

Fails if an example is not counted once per epoch, an update is lost, or a bucket had to come back from a disk.
"""

import argparse
import pathlib
import random
import statistics
import sys
import threading
import time

import runs
import watch

EXAMPLES = 60000
SERVERS = 4
INTERVAL = 10  # seconds between kills
KILLS = 6  # before the rate is taken again
BEFORE = 20  # seconds over which the rate is taken before the first kill
AFTER = 30  # and after the last


def start(folder, data, name, seed, epochs):
    job = runs.mnist_replicated(folder, data, {
        "    epochs: 10": f"    epochs: {epochs}\n    seed: {seed}\n    restartBudget: {{limit: 1000}}"})
    return runs.Run(pathlib.Path(folder) / name).train(job)


class Killer:
    """`with Killer(run, seed) as killer:` kills from the first opening of an epoch until the block ends."""

    def __init__(self, run, seed, limit=sys.maxsize):
        self._run = run
        self._random = random.Random(seed)
        self._limit = limit
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._kill)
        self.times = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _kill(self):
        while len(self.times) < self._limit and not self._ended.wait(INTERVAL):
            servers = sorted(name for name in self._run.members() if name.startswith("parameter-server"))
            if servers and self._run.kill(self._random.choice(servers)):
                self.times.append(time.monotonic())


def check(run, rows, epochs, looks):
    """Exits when the run breaks a promise."""
    counted = [int(row["examples_counted"]) for row in rows]
    if [int(row["epoch"]) for row in rows] != list(range(1, epochs + 1)) or counted != [EXAMPLES] * epochs:
        sys.exit(f"{run.folder}: examples were not counted once: {rows}")
    if runs.total(rows, "updates_lost") or looks[-1].rolled_back or looks[-1].restores:
        sys.exit(f"{run.folder}: updates were lost: {rows}, {looks[-1]}")


def train(folder, data, seed, epochs, kill):
    """(rows of metrics.csv, looks, times of kills)"""
    run = start(folder, data, f"{'killed' if kill else 'undisturbed'}-{seed}", seed, epochs)
    try:
        run.await_epoch(0)
        with watch.Watch(run) as watching, Killer(run, seed, sys.maxsize if kill else 0) as killer:
            rows = runs.finish(run)
        check(run, rows, epochs, watching.looks)
        return rows, watching, killer.times
    finally:
        run.end()


def compare_accuracy(folder, data, options):
    runs.print_header("servers killed", "seed", "kills", "failovers", "top-1, %", "examples counted", "updates lost",
                      "seconds", "longest pause, s")
    means = []
    for kill in (False, True):
        accuracies = []
        for seed in range(1, options.runs + 1):
            rows, watching, kills = train(folder, data, seed, options.epochs, kill)
            accuracies.append(runs.top1(rows))
            seconds = runs.total(rows, "seconds") + runs.total(rows, "evaluation_seconds")
            runs.print_row(kill, seed, len(kills), watching.looks[-1].failovers, f"{accuracies[-1]:.2f}",
                           f"{runs.total(rows, 'examples_counted'):.0f}", f"{runs.total(rows, 'updates_lost'):.0f}",
                           f"{seconds:.0f}", f"{watching.longest_pause():.0f}")
        means.append(statistics.mean(accuracies))
        furthest = max(abs(accuracy - means[0]) for accuracy in accuracies)
        runs.print_row(kill, "all", "", "", runs.spread(accuracies), f"furthest from undisturbed {furthest:.2f}", "",
                       "", "")
    print(f"difference of the means: {means[1] - means[0]:+.2f} points", flush=True)


def compare_rate(folder, data, seed):
    """Examples per second before the first kill, from the first to the last, and in the 30 s after."""
    run = start(folder, data, f"rates-{seed}", seed, 100000)
    threading.Thread(target=run.process.stdout.read).start()  # a full pipe would stop it
    try:
        with watch.Watch(run) as watching:
            watching.await_that(watch.Look.whole, "bucket that is whole")
            time.sleep(5)
            begin = time.monotonic()
            time.sleep(BEFORE)
            with Killer(run, seed, KILLS) as killer:
                watching.await_that(lambda _: len(killer.times) == KILLS, "last kill")
                first, last = killer.times[0], killer.times[-1]
                time.sleep(AFTER)
        return (watching.rate(begin, first), watching.rate(first, last), watching.rate(last, last + AFTER),
                watching.rate(last + AFTER - INTERVAL, last + AFTER))
    finally:
        run.end()


def compare_rates(folder, data, options):
    runs.print_header("seed", "examples/s before", "while killing", "30 s after the last kill", "of before",
                      "last 10 s of these", "of before")
    for seed in range(1, options.rates + 1):
        before, during, after, end = compare_rate(folder, data, seed)
        runs.print_row(seed, f"{before:.0f}", f"{during:.0f}", f"{after:.0f}", f"{after / before:.0%}", f"{end:.0f}",
                       f"{end / before:.0%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3, help="of each kind")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rates", type=int, default=3, help="runs that compare the rate")
    options = parser.parse_args()
    with runs.temporary_folder() as folder:
        if options.runs:
            compare_accuracy(folder, options.data, options)
        if options.rates:
            compare_rates(folder, options.data, options)


if __name__ == "__main__":
    main()

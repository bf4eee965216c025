#!/usr/bin/env python3
"""epochCompletion 0.75 against 1.0 when one of two workers runs at a quarter of its speed: time and examples until the
same accuracy. The slow worker is stopped for three quarters of each 40 ms.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/epoch_completion.py [--target 0.985] [--seeds 1 2 3]
"""

import argparse
import os
import pathlib
import signal
import threading
import time

import runs

PERIOD_SECONDS = 0.04
SHARE = 0.25


def slow_down(run, name, ended):
    """Gives the member `SHARE` of the time until `ended` is set."""
    while not ended.is_set():
        pid = run.members().get(name)
        if pid is None:
            time.sleep(0.01)
            continue
        try:
            os.kill(pid, signal.SIGCONT)
            time.sleep(PERIOD_SECONDS * SHARE)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PERIOD_SECONDS * (1 - SHARE))
        except ProcessLookupError:
            pass


def train(folder, completion, seed, target):
    job = runs.example("digits", folder, {
        "parameterServers: {count: 3}": "parameterServers: {count: 2, copies: 1}",
        "  runPolicy:\n    epochs: 5": f"  runPolicy:\n    epochs: 30\n    seed: {seed}\n"
                                       f"    targetAccuracy: {target}\n    epochCompletion: {completion}"})
    run = runs.Run(pathlib.Path(folder) / f"run-{completion}-{seed}").train(job)
    ended = threading.Event()
    slower = threading.Thread(target=slow_down, args=(run, "worker-1", ended))
    slower.start()
    try:
        return runs.finish(run)
    finally:
        ended.set()
        slower.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=float, default=0.985)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments = parser.parse_args()
    runs.print_header("completion", "seed", "epochs", "seconds to the target", "examples counted", "left out",
                      "top-1, %")
    with runs.temporary_folder() as folder:
        for completion in (0.75, 1):
            seconds, examples = [], []
            for seed in arguments.seeds:
                rows = train(folder, completion, seed, arguments.target)
                seconds.append(runs.total(rows, "seconds") + runs.total(rows, "evaluation_seconds"))
                examples.append(runs.total(rows, "examples_counted"))
                runs.print_row(completion, seed, len(rows), f"{seconds[-1]:.1f}", f"{examples[-1]:.0f}",
                               f"{runs.total(rows, 'examples_left'):.0f}", f"{runs.top1(rows):.2f}")
            runs.print_row(completion, "mean", "", runs.spread(seconds, 1), runs.spread(examples, 0), "", "")


if __name__ == "__main__":
    main()

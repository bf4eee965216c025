#!/usr/bin/env python3
"""Accuracy on MNIST at the last epoch: 2 workers and 2 parameter servers, beside one worker alone.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/mnist_accuracy.py DATA_DIR [--seeds 1 2 3] [--epochs 10]
"""

import argparse
import pathlib
import statistics

import runs


def train(folder, data, seed, epochs, workers, servers):
    job = runs.example("mnist", folder, {
        "data/mnist/": f"{data}/",
        "  runPolicy:\n    epochs: 10": f"  runPolicy:\n    seed: {seed}\n    epochs: {epochs}",
        "workers: 2": f"workers: {workers}",
        "parameterServers: {count: 2}": f"parameterServers: {{count: {servers}, copies: 1}}"})
    return runs.finish(runs.Run(pathlib.Path(folder) / f"run-{workers}-{seed}").train(job))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=10)
    arguments = parser.parse_args()
    runs.print_header("workers", "servers", "seed", "top-1 at the last epoch, %", "training seconds", "examples/s")
    with runs.temporary_folder() as folder:
        for workers, servers in ((2, 2), (1, 1)):
            accuracies = []
            for seed in arguments.seeds:
                rows = train(folder, arguments.data.resolve(), seed, arguments.epochs, workers, servers)
                seconds = runs.total(rows, "seconds")
                accuracies.append(runs.top1(rows))
                runs.print_row(workers, servers, seed, f"{accuracies[-1]:.2f}", f"{seconds:.0f}",
                               f"{runs.total(rows, 'examples_counted') / seconds:.0f}")
            runs.print_row(workers, servers, "mean", f"{statistics.mean(accuracies):.2f}", "", "")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""One manifest from one worker to many: trains with real processes and with virtual machines, and writes tables.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/scaling.py MNIST_FOLDER --results FILE (--all | --rows NAME...)
      [--cifar10 FOLDER] [--before BIN_DIR] [--seeds N...] [--workers N...] [--epochs N] [--most N]
      [--write docs/bench/scaling.md]

Each finished run is a line of JSON in FILE, with the commit of the programs and the date; what is there is not run again, so
that the command can be stopped and given again, also with more seeds. A run that failed is a line too, and counts. Without
--rows and --all only the tables are made. Rows (--list): those of real processes need the product, those of virtual machines
build/release/bench/train_bench (or ADAMANT_BENCH_DIR). A row whose data or programs are not there is left out, and told.

`counterpart`: one worker that takes the batches of all together, with an epoch of warm-up, at the best of up to three rates,
chosen on seeds 101 and 102.
"""

import argparse
import itertools
import math
import os
import pathlib
import sys
import textwrap
import time

import runs
import scaling_manifest
import scaling_real
import scaling_rows
import scaling_table
import scaling_virtual
from scaling_case import CHOOSING_SEEDS, Results, commit_of, failed

COLUMNS = 125  # of a page, as tools/check_docs.py has it


def groups_of(row, plan, results):
    _, function = scaling_rows.ROWS[row]
    return [group for group in function(plan, results) if group is not None]


def missing_of(groups, results):
    """Cases to run, each once: the first of every group, then the second ones, so that groups are disturbed alike."""
    lists = [group.cases for group in groups]
    ordered = [case for cases in itertools.zip_longest(*lists) for case in cases if case is not None]
    return [case for case in dict.fromkeys(ordered) if case not in results]


class Runner:
    def __init__(self, arguments):
        self._data = scaling_manifest.Data(arguments.data, arguments.cifar10)
        self._before = arguments.before
        self._left = arguments.most
        self.results = Results(arguments.results)

    def why_not(self, case):
        """What a case needs that is not there; empty if all is."""
        if not self._data.has(case.data):
            return f"the data {case.data} (--cifar10)"
        if case.build == "before" and self._before is None:
            return "the programs of another state (--before)"
        if case.virtual and not scaling_virtual.program().exists():
            return str(scaling_virtual.program())
        return ""

    def run(self, case):
        if case.virtual:
            programs = scaling_virtual.program().parent
            result = scaling_virtual.train(case, self._data)
        else:
            programs = self._before if case.build == "before" else runs.binary_folder()
            result = scaling_real.train(case, self._data, programs)
        self.results.add(case, commit_of(programs), result)
        return result

    def run_row(self, row, plan):
        """Until nothing more follows from what is there."""
        begin, done = time.monotonic(), 0
        while self._left > 0:
            missing = missing_of(groups_of(row, plan, self.results), self.results)
            if not missing:
                return
            lacks = self.why_not(missing[0])
            if lacks:
                print(f"{row}: not run, there is no {lacks}", file=sys.stderr)
                return
            minutes = (time.monotonic() - begin) / done * len(missing) / 60 if done else math.nan
            print(f"{row}: {len(missing)} runs, {minutes:.0f} min left: {missing[0]}", file=sys.stderr, flush=True)
            result = self.run(missing[0])
            outcome = "failed" if failed(result) else f"{result['top1'][-1]:.2f} %"
            print(f"  {outcome} in {result['seconds']:.0f} s", file=sys.stderr, flush=True)
            done += 1
            self._left -= 1


def tables(plan, results):
    sections = [scaling_table.section(heading, groups_of(row, plan, results), results)
                for row, (heading, _) in scaling_rows.ROWS.items()]
    states = textwrap.fill(f"Program states: {', '.join(results.commits())}.", COLUMNS)
    return "\n".join(each for each in sections if each) + f"\n{states}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, nargs="?", help="folder with MNIST's files")
    parser.add_argument("--list", action="store_true", help="print the rows")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--rows", nargs="+", choices=scaling_rows.ROWS, default=[])
    parser.add_argument("--all", action="store_true", help="all rows")
    parser.add_argument("--cifar10", type=pathlib.Path, help="folder made by scaling_cifar.py")
    parser.add_argument("--before", type=pathlib.Path, help="folder with the programs of another state, for the row speed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[], help="instead of the row's: 1 to 5, or 1 to 10")
    parser.add_argument("--workers", type=int, nargs="+", default=[], help="instead of the row's numbers")
    parser.add_argument("--epochs", type=int, default=0, help="instead of the row's")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="runs of this call")
    parser.add_argument("--write", type=pathlib.Path, help="page whose tables are made anew")
    arguments = parser.parse_args()
    if arguments.list:
        for row, (heading, _) in scaling_rows.ROWS.items():
            print(f"{row:18} {heading}")
        return
    if arguments.data is None or arguments.results is None:
        parser.error("DATA and --results are needed")
    if "ADAMANT_BIN_DIR" not in os.environ:
        parser.error("ADAMANT_BIN_DIR does not name the folder of the programs")
    if not set(arguments.seeds).isdisjoint(CHOOSING_SEEDS):
        parser.error("these seeds choose the rates of counterparts")
    plan = scaling_rows.Plan(arguments.seeds, arguments.workers, arguments.epochs)
    runner = Runner(arguments)
    for row in scaling_rows.ROWS if arguments.all else arguments.rows:
        runner.run_row(row, plan)
    text = tables(plan, runner.results)
    print(text)
    if arguments.write:
        scaling_table.write(arguments.write, text)


if __name__ == "__main__":
    main()

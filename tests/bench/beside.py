#!/usr/bin/env python3
"""Compares the benchmark programs of two builds, which run in turns, round by round.

  tests/bench/beside.py OTHER_FOLDER [--folder build/release/bench] [--rounds 9] [--seconds 0.1] [NAME...]

OTHER_FOLDER: programs of the build to compare with, such as that of an earlier commit. NAME: programs to run; by default all
of Google Benchmark. A row is a benchmark that both builds have: the speed of the build in --folder over that of the other,
as the median of the rounds' ratios, with the interval in which their true median lies in 95 % of cases (by order, without
an assumption about the distribution). Above 1 the build in --folder is faster. At the end: the geometric mean of all rows,
and the rows whose interval lies below 0.98.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

import report

SLOWER = 0.98  # a row whose whole interval lies below is slower beyond doubt


def times(folder, name, seconds):
    """Real time of an iteration, by benchmark."""
    output = report.run([folder / name, "--benchmark_format=json", f"--benchmark_min_time={seconds}"])
    return {each["name"]: each["real_time"] for each in json.loads(output)["benchmarks"]
            if each["run_type"] == "iteration" and not each.get("error_occurred")}


def ranks(count):
    """First and last of `count` sorted values whose range holds the median with 95 %; all where there are fewer than six."""
    outside, below = 0.025 * 2**count, 0
    for rank in range(count // 2):
        below += math.comb(count, rank)
        if below > outside:
            return max(rank - 1, 0), count - 1 - max(rank - 1, 0)
    return 0, count - 1


def compare(name, folders, rounds, seconds):
    """Ratios of the rounds, by benchmark."""
    ratios = {}
    for number in range(rounds):
        order = folders if number % 2 else folders[::-1]
        taken = {folder: times(folder, name, seconds) for folder in order}
        ours, theirs = (taken[folder] for folder in folders)
        for benchmark in ours.keys() & theirs.keys():
            ratios.setdefault(benchmark, []).append(theirs[benchmark] / ours[benchmark])
        print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return ratios


def rows_of(name, ratios):
    """Program, benchmark, median ratio, ends of its interval."""
    for benchmark, of_rounds in sorted(ratios.items()):
        first, last = ranks(len(of_rounds))
        of_rounds = sorted(of_rounds)
        yield name, benchmark, statistics.median(of_rounds), of_rounds[first], of_rounds[last]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=pathlib.Path, metavar="OTHER_FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(report.GOOGLE_BENCHMARKS))
    parser.add_argument("--folder", type=pathlib.Path, default=report.ROOT / "build" / "release" / "bench")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="at least, of a benchmark in a round")
    arguments = parser.parse_intermixed_args()  # names may follow options
    if unknown := set(arguments.names) - set(report.GOOGLE_BENCHMARKS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(report.GOOGLE_BENCHMARKS)}")
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    rows = [row for name in arguments.names or report.GOOGLE_BENCHMARKS
            for row in rows_of(name, compare(name, (arguments.folder, arguments.other), arguments.rounds, arguments.seconds))]
    if not rows:
        sys.exit("the two builds have no benchmark in common")
    print(report.bench_report.table(["program", "benchmark", "speed over the other's", "95 % interval"],
                                    [[program, f"`{benchmark}`", f"{median:.3f}", f"{low:.3f}–{high:.3f}"]
                                     for program, benchmark, median, low, high in rows]))
    mean = math.exp(statistics.fmean(math.log(row[2]) for row in rows))
    slower = [row[1] for row in rows if row[4] < SLOWER]
    print(f"\n{len(rows)} rows, geometric mean {mean:.3f}; slower beyond doubt: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs the benchmark programs and writes their medians and spreads as a page.

  tests/bench/report.py [--folder build/release/bench] [--repetitions 7] [--seconds 0.1] [--write docs/bench/all.md]
                        [NAME...]

NAME: programs to run, all by default. Those of Google Benchmark are run with JSON output and become tables; the others
print tables of their own, which are quoted.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import bench_report  # noqa: E402

GOOGLE_BENCHMARKS = ("engine_bench", "kernel_bench", "fully_connected_bench", "step_bench", "parameter_server_bench",
                     "rpc_bench", "worker_bench")
OTHERS = {"storage_bench": ["{repetitions}"], "replication_bench": ["--runs", "{repetitions}"]}


def run(command):
    process = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed with {process.returncode}")
    return process.stdout


def section(folder, name, repetitions, seconds):
    if name in GOOGLE_BENCHMARKS:
        command = [folder / name, "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
                   f"--benchmark_min_time={seconds}"]
        body = bench_report.table_of_benchmarks(json.loads(run(command)))
    else:
        command = [folder / name, *(part.format(repetitions=repetitions) for part in OTHERS[name])]
        body = "".join(f"    {line}\n" for line in run(command).splitlines())
    return f"\n## {name}\n\n{body}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "release" / "bench")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="at least, of a repetition of Google Benchmark (kernel_bench chooses itself)")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    arguments = parser.parse_args()
    known = [*GOOGLE_BENCHMARKS, *OTHERS]
    if unknown := set(arguments.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    page = (f"# All benchmark programs\n\n{bench_report.today()}, {bench_report.machine()}.\n{bench_report.versions()}.\n\n"
            f"Medians (smallest–largest) of {arguments.repetitions} repetitions, by `tests/bench/report.py`.\n")
    print(page, end="")
    for name in arguments.names or known:
        part = section(arguments.folder, name, arguments.repetitions, arguments.seconds)
        print(part, end="", flush=True)
        page += part
    if arguments.write:
        arguments.write.write_text(page)


if __name__ == "__main__":
    main()

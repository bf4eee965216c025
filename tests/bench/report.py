#!/usr/bin/env python3
"""Runs the benchmark programs and keeps their medians and spreads.

  tests/bench/report.py [--folder build/release/bench] [--repetitions 7] [--seconds 0.1] [--write docs/bench/all.jsonl]
                        [NAME...]
  tests/bench/report.py --page docs/bench/all.jsonl

NAME: programs to run, all by default. All figures are printed as tables. --write keeps them as data: a line that says when and
where, and a line for each benchmark; and what matters of them as a page beside it, all.md. --page makes that page of the
data that is there.
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

# What the page shows: what it is, which program and benchmark say it, and the figure of that.
HEADLINES = (
    *((f"step of adam-mnist, batch {batch}: share of the matrix product's speed", "engine_bench", f"TrainStep/one_dnn/{batch}",
       "share") for batch in (1, 8, 32, 128)),
    *((f"step with the worker's update, batch 32, {threads}: examples/s", "step_bench",
       f"Steps/handed_over/batch:32/threads:{number}/iterations:1", "examples/s")
      for number, threads in ((1, "one thread"), (2, "two threads"))),
    *((f"{layer}, batch 16, {whose}: share of the same", "kernel_bench",
       f"adam_mnist_{layer}/16/{kernel}/forward/min_time:0.100/manual_time", "share")
      for layer in ("conv1", "conv2") for kernel, whose in (("own", "own kernel"), ("one_dnn", "oneDNN's"))),
    ("weight changes applied by one core: bytes/s", "parameter_server_bench", "Apply/rule:0/real_time", "bytes_per_second"),
    ("memory alone (`w -= rate * g`): bytes/s", "parameter_server_bench", "Axpy/real_time", "bytes_per_second"),
    *((f"pushes through loopback, {copies}: bytes/s", "parameter_server_bench",
       f"LoopbackPush/copies:{number}/process_time/real_time", "bytes_per_second")
      for number, copies in ((1, "1 copy"), (3, "3 copies"))),
    ("frame stream on loopback: bytes/s", "rpc_bench", "FrameStreamPush/process_time/real_time", "bytes_per_second"),
    ("raw TCP on loopback: bytes/s", "rpc_bench", "RawTcpPush/process_time/real_time", "bytes_per_second"),
    *((f"worker of {threads}, {fed}: examples/s", "worker_bench", f"{name}/{number}/iterations:{iterations}/manual_time",
       "examples/s") for number, threads in ((1, "one thread"), (2, "two threads"))
      for name, fed, iterations in (("FedFromMemory", "fed from memory", 3), ("WithServices", "with its services", 1))),
    ("write-back: share of the disk's writing speed", "storage_bench", "write-back GB/s", "share of disk write"),
    ("the same: bytes written for each of a value", "storage_bench", "write-back amplification", "median"),
    ("recovery of a server: share of the disk's writing speed", "storage_bench", "server's recovery GB/s",
     "share of disk write"),
    ("3 copies over 1: time of an update of 1 MB", "replication_bench", "latency µs, p50", "ratio"),
    ("the same: throughput", "replication_bench", "throughput GB/s", "ratio"),
)


def run(command):
    process = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed with {process.returncode}")
    return process.stdout


def measure(folder, name, repetitions, seconds):
    """What the program says, as tables to read and as figures, one for each benchmark."""
    if name in GOOGLE_BENCHMARKS:
        command = [folder / name, "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
                   f"--benchmark_min_time={seconds}"]
        figures = bench_report.figures_of_benchmarks(json.loads(run(command)))
        return bench_report.table_of_benchmarks(figures), figures
    text = run([folder / name, *(part.format(repetitions=repetitions) for part in OTHERS[name])])
    return text, bench_report.rows_of_tables(text)


def headline(lines, program, benchmark, figure):
    """The figure as text; empty: it was not measured."""
    for line in lines:
        if line.get("program") == program and benchmark == f"{line.get('table', '')} {line['benchmark']}".strip():
            value = line.get(figure, "")
            return value if isinstance(value, str) else bench_report.figure_text(line, figure)
    return ""


def page_of(lines, data):
    about = lines[0]
    rows = [[what, text, f"`{program}`: {benchmark}"] for what, program, benchmark, figure in HEADLINES
            if (text := headline(lines, program, benchmark, figure))]
    return (f"# All benchmark programs\n\n{about['date']}, {about['machine']}.\n{about['versions'][:1].upper()}{about['versions'][1:]}.\n\n"
            f"What matters of [{data}]({data}), which has all figures: median (smallest–largest) of {about['repetitions']} "
            "repetitions.\nBoth are made by `make bench`, this page alone by "
            f"`tests/bench/report.py --page docs/bench/{data}`.\n\n"
            + bench_report.table(["what", "measured", "program and benchmark"], rows))


def write(path, lines):
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    path.with_suffix(".md").write_text(page_of(lines, path.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "release" / "bench")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="at least, of a repetition of Google Benchmark (kernel_bench chooses itself)")
    parser.add_argument("--write", type=pathlib.Path, metavar="DATA", help="keep the figures there, and a page beside them")
    parser.add_argument("--page", type=pathlib.Path, metavar="DATA", help="measure nothing: make the page of these figures")
    arguments = parser.parse_args()
    if arguments.page:
        write(arguments.page, [json.loads(line) for line in arguments.page.read_text().splitlines()])
        return
    known = [*GOOGLE_BENCHMARKS, *OTHERS]
    if unknown := set(arguments.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    lines = [{"date": bench_report.today(), "machine": bench_report.machine(), "versions": bench_report.versions(),
              "repetitions": arguments.repetitions}]
    print(", ".join(str(value) for value in lines[0].values()))
    for name in arguments.names or known:
        text, figures = measure(arguments.folder, name, arguments.repetitions, arguments.seconds)
        print(f"\n## {name}\n\n{text}", end="", flush=True)
        lines += [{"program": name, **each} for each in figures]
    if arguments.write:
        write(arguments.write, lines)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Replays traces of the replication simulation through the model: those of the protocol as it is must be accepted, those
of broken ones rejected.

usage: replay_traces.py PROGRAM [--traces N] [--first-seed S] [--jobs J]

PROGRAM writes the traces (replication_traces). Exit code 1 if the model judges a trace wrongly.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

REPLAY = pathlib.Path(__file__).resolve().parents[2] / "model" / "replay"


def judge(trace: pathlib.Path) -> tuple[bool, str]:
    """Whether the model's verdict is the right one, and the verdict."""
    build = trace.with_suffix("")
    result = subprocess.run([sys.executable, REPLAY, "--build", build, trace], check=False, capture_output=True, text=True)
    verdict = result.stdout.strip() or result.stderr.strip()
    return result.returncode == (0 if trace.name.startswith("seed-") else 1), verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--traces", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.program, folder, str(arguments.traces), str(arguments.first_seed)], check=True)
        traces = sorted(pathlib.Path(folder).glob("*.trace"))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for trace, (right, verdict) in zip(traces, pool.map(judge, traces)):
                print("right" if right else "WRONG", verdict.replace(f"{folder}/", ""), flush=True)
                if not right:
                    failed += 1
                    print(trace.read_text(encoding="utf-8"))
    print(f"Ran {len(traces)} tests, {failed} failed")
    return 1 if failed or not traces else 0


if __name__ == "__main__":
    sys.exit(main())

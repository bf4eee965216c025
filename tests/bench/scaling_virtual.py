"""Runs `train_bench stale` for scaling.py."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import runs
import scaling_manifest

ALWAYS = 0.5  # times the steps between two fetches: who waits longer than that waits at every fetch
TIMEOUT = 6 * 3600  # seconds of one run; what takes longer has failed


def program():
    given = os.environ.get("ADAMANT_BENCH_DIR")
    return pathlib.Path(given) / "train_bench" if given else runs.binary_folder().parent / "bench" / "train_bench"


def train(case, data):
    """Runs the job; what is remembered of it. Times are in steps of one machine."""
    command = [program(), "stale", *scaling_manifest.stale_options(case, data)]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, -1, "", "it took too long")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    evaluations = [line for line in lines if "top1" in line and "summary" not in line]
    summary = next((line for line in lines if line.get("summary")), {})
    if done.returncode > 0 and not any("summary" in line or "diverged" in line for line in lines):
        sys.exit(f"{case} cannot be run:\n{done.stderr}")
    return {"top1": [100 * line["top1"] for line in evaluations], "epochs": [line["epochs"] for line in evaluations],
            "attempts": 1, "staleness": [line["staleness_batches"] or 0 for line in evaluations],
            "gap": statistics.mean(line["gap_batches"] or 0 for line in evaluations[1:]) if evaluations[1:] else None,
            "examples_to_target": summary.get("examples_to_target"), "steps": summary.get("steps"),
            "steps_to_target": next((line["steps"] for line in evaluations if line["top1"] >= 0.985), None),
            "exit_code": done.returncode, "message": done.stderr if done.returncode else "",
            "seconds": time.monotonic() - begin}


def options_as(measured, cores_shared):
    """Of virtual workers, so that they exchange as the real ones of `measured` (scaling_real.times_of)."""
    step, steps = measured["step"], measured["fetch_every"] * measured["step"]
    # A thread that waits for its values at every fetch does so until the last server's are there, and applied.
    waits = measured["fetch_wait"] > ALWAYS * steps
    there_and_back = steps + measured["fetch_wait"] if waits else measured["fetch"]
    apply = max(0, measured["push"] - measured["fetch"])
    jitter = "0.5" if cores_shared else "0.1"
    return ("--latency", f"{there_and_back / 2 / step:.2f}", "--apply", f"{apply / step:.2f}", "--jitter", jitter,
            "--latency-jitter", jitter, "--servers", str(scaling_manifest.SERVERS), "--evaluations", "10")

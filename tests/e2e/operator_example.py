#!/usr/bin/env python3
"""Applies an example to a cluster of three nodes and says how it goes; the last line is the result.

usage: tests/e2e/operator_example.py [--data FOLDER] [JOB.yaml]

JOB.yaml: deploy/examples/digits.yaml if none is named. FOLDER holds the files of the claim that the job's data is on.
"""

import argparse
import pathlib
import re
import sys
import time

from operator_rig import PROJECT, Job, System, require

NODES = 3
MIN_ACCURACY = 0.99
LONGEST = 1800  # seconds


def train(system, manifest):
    """The job when it has succeeded, and how long that took."""
    job = Job(system, manifest).apply()
    print(f"{job.name}: applied to {NODES} nodes", flush=True)
    running = job.await_phase("Running").time
    print(f"{job.name}: Running after {running - job.applied:.1f} s", flush=True)
    epoch, since = 0, running
    while True:
        change = job.await_status(lambda status: status["phase"] in ("Succeeded", "Failed") or status["epoch"] > epoch,
                                  f"the end of epoch {epoch}", since, LONGEST)
        status, since = change.object["status"], change.time
        if status["phase"] in ("Succeeded", "Failed"):
            return job, since - job.applied
        if epoch > 0:
            print(f"{job.name}: epoch {epoch}: top-1 {100 * status['accuracy']:.2f}%", flush=True)
        epoch = status["epoch"]


def main():
    require()
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("job", nargs="?", type=pathlib.Path, default=PROJECT / "deploy/examples/digits.yaml")
    arguments = parser.parse_args()
    begin = time.monotonic()
    with System(NODES) as system:
        print(f"three nodes and two operators: up in {time.monotonic() - begin:.1f} s", flush=True)
        manifest = arguments.job.read_text()
        if arguments.data is not None:
            system.fill_claim(re.search(r"claim: ([a-z0-9.-]+)", manifest)[1], arguments.data)
        job, seconds = train(system, manifest)
        status = job.status()
        if status["phase"] != "Succeeded":
            sys.exit(f"{system.diagnosis(job.name)}\n{job.name}: {status['phase']}: {status.get('message')}")
        model = job.output() / "model.safetensors"
        nodes = {pod["spec"]["nodeName"] for pod in job.pods().values()}
        print(f"{job.name}: pods on {len(nodes)} nodes, model of {model.stat().st_size} bytes on the claim "
              f"{status['outputClaim']}")
        print(f"{job.name}: {status['phase']}, top-1 {100 * status['accuracy']:.2f}%, "
              f"{seconds:.0f} s from kubectl apply")
        return 0 if status["accuracy"] >= MIN_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())

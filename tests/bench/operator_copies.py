#!/usr/bin/env python3
"""How soon a job with three copies of each bucket runs on a real cluster of three nodes, and how soon it trains on when
two of its three parameter servers are killed.

  ADAMANT_BIN_DIR=build/release/bin PYTHONPATH=tests/cluster tests/bench/operator_copies.py --runs 9

Each run is a new job with the defaults of the product: buckets, copies, back-off before a restart. Its start is timed
from before `kubectl apply` to phase Running. The loss is timed from the order to kill the two until the last worker has
a push acknowledged again after both were killed, as the worker itself notes the time
(adamant_worker_resumed_timestamp_seconds): that takes two copies of each bucket, and so one of those that are made anew.
What happens in between is told, too, from the same beginning.
"""

import argparse
import concurrent.futures
import pathlib
import statistics
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / folder) for folder in ("cluster", "e2e")]

import adamant  # noqa: E402
from cluster import await_that  # noqa: E402
from operator_rig import Job, System, has_ended, is_running, slot_of  # noqa: E402
from operator_watch import Watch  # noqa: E402

NODES = 3
SERVERS = 3
COPIES = 3
MAPS = "/apis/adamant.dev/v1alpha1/namespaces/training/shardmaps"
RESTARTS = "    restartBudget: {limit: 10, backoff: 100ms}\n"
CALM = 2  # seconds of undisturbed training before the kill


def manifest(name):
    text = adamant.manifest(name=name, parameter_servers=SERVERS, epochs=100_000,
                            train="{digits: {seed: 1, examples: 60000}}")
    return text.replace(RESTARTS, "").replace(", buckets: 8", "")


class Run:
    """One job; {effect: seconds} of each fault."""

    def __init__(self, system, name):
        self._system = system
        self._job = Job(system, manifest(name))
        self._maps = Watch(system.api, MAPS)

    def __enter__(self):
        self._maps.__enter__()
        return self

    def __exit__(self, *error):
        self._job.delete("--wait=false")
        await_that(lambda: not self._job.pods(), f"the pods of {self._job.name} are gone", 60)
        self._maps.__exit__(*error)

    def start(self):
        begin = time.monotonic()
        self._job.apply()
        running = self._job.await_phase("Running").time
        slots = [slot_of(pod) for pod in self._job.pods().values()]
        run = [self._first(slot, begin, lambda change: is_running(change.object)) for slot in slots]
        return {"apply → Running": running - begin, "apply → a pod runs": min(run) - begin,
                "apply → all pods run": max(run) - begin}

    def kill_two(self, slots):
        self._await_whole()
        pods = [self._job.pod_of(slot) for slot in slots]
        order, begin = time.time(), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(pods)) as pool:
            list(pool.map(lambda pod: self._system.cluster.kill_container("training", pod), pods))
        killed = time.time()
        resumed = self._job.await_resumed(killed)
        ended = [self._first(slot, begin, lambda change: has_ended(change.object)) for slot in slots]
        made = [self._first(slot, begin, lambda change: change.kind == "ADDED") for slot in slots]
        run = [self._first(slot, since, lambda change: is_running(change.object)) for slot, since in zip(slots, made)]
        return {"two killed → updates acknowledged again": resumed - order,
                "two killed → kills done": killed - order,
                "two killed → their ends visible": max(ended) - begin,
                "two killed → replacements made": max(made) - begin,
                "two killed → a replacement runs": min(run) - begin,
                "two killed → both run": max(run) - begin}

    def _first(self, slot, since, matches):
        return self._job.await_pod(lambda change: slot_of(change.object) == slot and matches(change), slot, since).time

    def _await_whole(self):
        """Returns when every bucket has its copies, and the job has trained for a while."""
        def whole():
            maps = [found for name, found in self._maps.objects().items() if name.startswith(f"{self._job.name}-")]
            buckets = [bucket for found in maps for bucket in found["buckets"]]
            return buckets and all(len(bucket["members"]) == COPIES and "learner" not in bucket for bucket in buckets)
        await_that(whole, "all copies are there", 120)
        self._job.await_epoch(2)
        time.sleep(CALM)


def line(effect, values):
    each = " ".join(f"{value:.2f}" for value in values)
    return f"{effect}: median {statistics.median(values):.2f} s, {min(values):.2f}–{max(values):.2f}: {each}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    found = {}
    with System(NODES) as system:
        system.await_garbage_collector()
        for number in range(options.runs):
            victims = [f"parameter-server-{(number + step) % SERVERS}" for step in range(2)]
            with Run(system, f"run-{number}") as run:
                effects = {**run.start(), **run.kill_two(victims)}
            for effect, seconds in effects.items():
                found.setdefault(effect, []).append(seconds)
            print(f"{number + 1} of {options.runs}", file=sys.stderr, flush=True)
    for effect, values in found.items():
        print(line(effect, values))


if __name__ == "__main__":
    main()

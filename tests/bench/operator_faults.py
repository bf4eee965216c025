#!/usr/bin/env python3
"""Pods of a training job are killed one after the other on a real cluster: how soon the operator makes each anew, and how
soon another parameter server has taken over.

  ADAMANT_BIN_DIR=build/release/bin PYTHONPATH=tests/cluster tests/bench/operator_faults.py --kills 105

Three parameter servers hold each bucket twice. Replacements are timed from when the end of the container is visible in the
API. What the kill of a parameter server costs training is timed from the order to kill it until a worker has its first push
acknowledged again, which all servers have to answer, as the worker itself notes the time
(adamant_worker_resumed_timestamp_seconds): the later of the workers counts.
"""

import argparse
import math
import pathlib
import statistics
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / folder) for folder in ("cluster", "e2e")]

from cluster import await_that  # noqa: E402
from operator_rig import Job, System, has_ended, is_running, slot_of, tiny_job  # noqa: E402
from operator_watch import Watch  # noqa: E402

SLOTS = ("parameter-server-0", "worker-0", "parameter-server-1", "data-server-0", "parameter-server-2", "worker-1")
MAPS = "/apis/adamant.dev/v1alpha1/namespaces/training/shardmaps"
CALM = 1  # seconds of undisturbed training between two kills


def manifest():
    text = tiny_job("killed", parameter_servers=3, epochs=100_000, restarts=10_000,
                    train="{digits: {seed: 1, examples: 60000}}")
    return text.replace("buckets: 8", "buckets: 8, copies: 2").replace("backoff: 100ms", "backoff: 0s")


class Faults:

    def __init__(self, system):
        self._system = system
        self._job = Job(system, manifest()).apply()
        self._maps = Watch(system.api, MAPS)

    def __enter__(self):
        self._maps.__enter__()
        self._job.await_epoch(2)
        return self

    def __exit__(self, *error):
        self._job.delete()
        return self._maps.__exit__(*error)

    def kill(self, slot):
        """{effect: seconds}, from the visible end where nothing else is said."""
        self._await_whole()
        order = time.time()
        begin = time.monotonic()
        self._system.cluster.kill_container("training", self._job.pod_of(slot))
        ended = self._job.await_pod(lambda change: slot_of(change.object) == slot and has_ended(change.object),
                                    f"{slot} has ended", begin)
        new = self._job.await_pod(lambda change: change.kind == "ADDED" and slot_of(change.object) == slot,
                                  f"{slot} is replaced", begin)
        found = {"end visible": ended.time - begin, f"{slot.rstrip('-0123456789')} replaced": new.time - ended.time}
        if slot.startswith("parameter-server"):
            taken = self._await_take_over(int(slot.rsplit("-", 1)[1]), begin).time - ended.time
            found["other primaries"] = taken
            found["updates acknowledged again"] = self._job.await_resumed(order) - order
        return found

    def _await_whole(self):
        """Returns when every pod runs, every bucket has two copies, and the job has trained for a while."""
        def whole():
            pods = self._job.pods().values()
            buckets = [bucket for shard_map in self._maps.objects().values() for bucket in shard_map["buckets"]]
            return len([pod for pod in pods if is_running(pod)]) == len(SLOTS) and all(
                len(bucket["members"]) == 2 and "learner" not in bucket for bucket in buckets)
        await_that(whole, "all pods run and all copies are there", 120)
        time.sleep(CALM)

    def _await_take_over(self, slot, since):
        def taken_over(change):
            return slot not in {bucket["primary"].get("slot", 0) for bucket in change.object["buckets"]}
        return self._maps.first(taken_over, f"server {slot}'s buckets are taken over", since)


def line(effect, values):
    values = sorted(values)
    p99 = f"p99 {values[math.ceil(0.99 * len(values)) - 1]:.3f} s, " if len(values) >= 100 else ""
    return f"{effect}: median {statistics.median(values):.3f} s, {p99}maximum {values[-1]:.3f} s, n = {len(values)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=105, help="pods killed, of all roles in turn")
    options = parser.parse_args()
    found = {}
    with System(nodes=1) as system, Faults(system) as faults:
        for number in range(options.kills):
            slot = SLOTS[number % len(SLOTS)]
            for effect, seconds in faults.kill(slot).items():
                found.setdefault(effect, []).append(seconds)
            print(f"{number + 1} of {options.kills}: {slot}", file=sys.stderr, flush=True)
    replaced = [seconds for effect, values in found.items() if effect.endswith("replaced") for seconds in values]
    for effect, values in [*sorted(found.items()), ("any pod replaced", replaced)]:
        print(line(effect, values))


if __name__ == "__main__":
    main()

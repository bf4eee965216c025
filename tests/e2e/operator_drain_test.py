#!/usr/bin/env python3
"""A node is drained while a job trains on three: its parameter server begins anew on another, and when the node takes
pods again the servers spread over all of them. Training goes on all the while."""

import threading
import time
import unittest

from cluster import await_that
from operator_nodes import SERVERS, NodesTestCase
from operator_rig import EXAMPLES, PATIENCE, is_running, measured, require, slot_of

COPIES = 3
CORDONED = 3  # seconds
JOB = {"copies": COPIES, "epochs": 100_000, "detection": f"{{nodeCordoned: {CORDONED}s}}"}
LONGEST_PAUSE = 10  # seconds without a push that is acknowledged, on a busy machine
PUSHES = "adamant_worker_pushes_total"


class Progress:
    """Looks at what a job's workers have had acknowledged, until it is left."""

    PERIOD = 0.2  # seconds between two looks

    def __init__(self, job):
        self._job = job
        self._pushes = {}  # by pod
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.longest_pause = 0.0  # seconds for which nothing was

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self._thread.join()

    def _follow(self):
        last = time.monotonic()
        while not self._ended.wait(self.PERIOD):
            moved = [self._has_moved(worker) for worker in self._job.workers()]
            now = time.monotonic()
            self.longest_pause = max(self.longest_pause, now - last)
            if any(moved):
                last = now

    def _has_moved(self, worker):
        before = self._pushes.get(worker, 0)
        self._pushes[worker] = max(before, self._job.metric(worker, PUSHES))
        return self._pushes[worker] > before


class DrainTest(NodesTestCase):

    def buckets(self):
        """The records of all, as the ShardMaps of the only job have them now."""
        return [bucket for found in self.maps.objects().values() for bucket in found["buckets"]]

    def incarnations(self):
        """{slot: its incarnations} that are members of any bucket."""
        found = {}
        for bucket in self.buckets():
            for member in bucket["members"]:
                found.setdefault(member.get("slot", 0), set()).add(member["incarnation"])
        return found

    def has_all_copies(self, anew):
        """On three servers, that of the slot `anew` (None: of none) begun anew, and nothing moves."""
        return all("learner" not in bucket and len(bucket["members"]) == COPIES for bucket in self.buckets()) and all(
            incarnations == {2 if slot == anew else min(incarnations)}
            for slot, incarnations in self.incarnations().items())

    def await_copies(self, job, nodes, anew=None):
        """Returns when all copies are there, on servers that are on so many nodes."""
        def spread():
            return self.has_all_copies(anew) and len(set(self.nodes_of_servers(job).values())) == nodes
        try:
            await_that(spread, f"all copies are on {nodes} nodes", 120)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self.buckets()}\n{self.system.diagnosis(job.name)}") from None

    def drain(self, node):
        self.system.cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")

    def servers_created(self, job, since):
        return [name for name in job.created(since) if "-parameter-server-" in name]

    def fewest_servers(self, job, since):
        """How many parameter servers ran at the time with the fewest, from `since` on."""
        running, fewest = set(), SERVERS
        for change in self.system.pods.changes():
            if not change.name.startswith(f"{job.name}-parameter-server-"):
                continue
            runs = change.kind != "DELETED" and is_running(change.object)
            (running.add if runs else running.discard)(slot_of(change.object))
            if change.time >= since:
                fewest = min(fewest, len(running))
        return fewest

    def fewest_copies(self, since):
        """Of a bucket, at any time from `since` on."""
        return min(len(bucket["members"]) for change in self.maps.changes(since) for bucket in change.object["buckets"])

    def await_elsewhere(self, job, slot, node, since):
        """The change by which the slot's server runs on another node."""
        return job.await_pod(lambda change: slot_of(change.object) == slot and is_running(change.object)
                             and change.object["spec"]["nodeName"] != node, f"{slot} runs elsewhere", since)

    def leave(self, job, slot, node):
        """The node is drained, and its server begins anew elsewhere. Returns when all copies are there again."""
        begin = time.monotonic()
        self.drain(node)
        measured("kubectl drain, of a parameter server's node", time.monotonic() - begin)
        runs = self.await_elsewhere(job, slot, node, begin)
        measured(f"drain → its server runs elsewhere (nodeCordoned: {CORDONED} s)", runs.time - begin)
        self.await_copies(job, SERVERS - 1, anew=int(slot.rsplit("-", 1)[1]))
        measured("drain → every bucket has three copies again", time.monotonic() - begin)
        await_that(lambda: f"{job.name}-{slot}-1" not in self.claims(job), "the claim on the node is deleted", 60)
        self.assertIn(f"{job.name}-{slot}-2", self.claims(job))
        self.assertEqual({name.rsplit("-", 1)[0] for name in self.servers_created(job, begin)}, {f"{job.name}-{slot}"})
        self.assert_event(job, f"(Lost|Disrupted): {slot} leaves its volume, which is on a node that takes no pods")
        return runs.time

    def come_back(self, job, node):
        """The node takes pods again, and one server that shares another node goes there."""
        begin = time.monotonic()
        self.system.cluster.kubectl("uncordon", node)
        moved = job.await_pod(lambda change: slot_of(change.object).startswith("parameter-server")
                              and is_running(change.object) and change.object["spec"]["nodeName"] == node,
                              f"a parameter server runs on {node}", begin)
        measured("uncordon → a server moves there (looked for once a minute)", moved.time - begin)
        self.await_copies(job, SERVERS)
        measured("uncordon → copies are on three nodes", time.monotonic() - begin)
        self.assertEqual(self.servers_created(job, begin), [moved.name])
        self.assert_event(job, f"Spreading: {slot_of(moved.object)} leaves node node[0-9], which it shares with another")

    def test_copies_leave_a_drained_node_and_come_back_while_training_goes_on(self):
        job = self.start_training("drained", **JOB)
        self.await_copies(job, SERVERS)
        begin = time.monotonic()
        slot, node = self.choose_server(job)
        with Progress(job) as progress:
            away = self.leave(job, slot, node)
            first = job.await_status(lambda status: True, "its status is written", away).object["status"]["epoch"]
            self.come_back(job, node)
            last = job.await_status(lambda status: status["epoch"] > first, "epochs end", time.monotonic())
        measured("longest time without an update acknowledged", progress.longest_pause)
        self.assertLess(progress.longest_pause, LONGEST_PAUSE)
        self.assertGreaterEqual(self.fewest_servers(job, begin), SERVERS - 1)
        self.assertGreaterEqual(self.fewest_copies(begin), COPIES - 1)
        self.assertEqual(job.surplus(), [])

        job.patch(epochs=last.object["status"]["epoch"])  # ends with the open epoch
        job.await_phase("Succeeded", seconds=PATIENCE)
        self.assert_trained_on(job, job.status()["epoch"], EXAMPLES)


if __name__ == "__main__":
    require()
    unittest.main()

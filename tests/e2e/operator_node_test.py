#!/usr/bin/env python3
"""A node loses its power while a job trains on three: the job goes on, and what was on the node is made elsewhere."""

import json
import time
import unittest

from cluster import await_that
from operator_nodes import NodesTestCase
from operator_rig import EXAMPLES, is_running, measured, require, slot_of

EPOCHS = 30
JOB = {"copies": 2, "epochs": EPOCHS, "detection": "{heartbeat: 3s, nodeUnreachable: 1s, forceDelete: 1s}"}
BUDGET = "/apis/policy/v1/namespaces/training/poddisruptionbudgets/{}-parameter-server"


class LostNodeTest(NodesTestCase):

    def report_lost(self, node):
        """Says what Kubernetes would find out after 50 s."""
        condition = {"type": "Ready", "status": "Unknown",
                     "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        self.system.cluster.kubectl("taint", "node", node, "node.kubernetes.io/unreachable:NoSchedule")
        self.system.cluster.kubectl("patch", "node", node, "--subresource=status", "-p",
                                    json.dumps({"status": {"conditions": [condition]}}))

    def await_take_over(self, job, pod, since):
        """The change after which no bucket of the job has this server's pod as its primary."""
        slot, incarnation = map(int, pod.rsplit("-", 2)[1:])
        lost = {"slot": slot, "incarnation": incarnation}  # its replacement may soon be the primary of others
        def taken_over(change):
            return change.name.startswith(f"{job.name}-") and lost not in [
                bucket["primary"] for bucket in change.object["buckets"]]
        try:
            return self.maps.first(taken_over, f"the buckets of {pod} are taken over", since)
        except TimeoutError as error:
            told = "\n".join(f"{change.time - since:.2f} s: {change.name}: {change.object['buckets']}"
                             for change in self.maps.changes())
            raise AssertionError(f"{error}\n{told}\n{self.system.diagnosis(job.name)}") from None

    def test_a_parameter_servers_node_is_cut(self):
        job = self.start_training("powerless", **JOB)
        self.assertEqual(self.system.api.get(BUDGET.format(job.name))["spec"]["minAvailable"], 2)
        slot, node = self.choose_server(job)
        old = job.pod_of(slot)
        order = time.time()
        begin = time.monotonic()
        self.system.cluster.cut_node(int(node.removeprefix("node")))
        reported = time.monotonic()
        self.report_lost(node)
        new = job.await_pod(lambda change: change.kind == "ADDED" and slot_of(change.object) == slot,
                            f"{slot} is replaced", begin)
        measured("node not ready → replacement created (heartbeat: 3 s, nodeUnreachable: 1 s)", new.time - reported)
        gone = job.await_pod(lambda change: change.kind == "DELETED" and change.name == old, f"{old} is gone", begin)
        measured("node not ready → pod deleted by force (forceDelete: 1 s more)", gone.time - reported)
        self.await_take_over(job, old, begin)
        measured("node cut → updates are acknowledged again", job.await_resumed(order, but=node) - order)
        runs = job.await_pod(lambda change: change.name == new.name and is_running(change.object), f"{new.name} runs")
        self.assertNotEqual(runs.object["spec"]["nodeName"], node)
        await_that(lambda: f"{job.name}-{slot}-1" not in self.claims(job), "the claim on the lost node is deleted", 60)
        measured("node not ready → its claim is deleted, as all copies are there again", time.monotonic() - reported)
        self.assertIn(f"{job.name}-{slot}-2", self.claims(job))

        self.assert_trained_on(job, EPOCHS, EXAMPLES)
        self.assert_event(job, f"Lost: {slot} was silent for 3 s")

    def test_a_deleted_claim_gives_way_to_a_new_one(self):
        job = self.start_training("claimless", **JOB)
        slot, _ = self.choose_server(job)
        claim = f"{job.name}-{slot}-1"
        begin = time.monotonic()
        for kind, name in (("persistentvolumeclaim", claim), ("pod", job.pod_of(slot))):
            self.system.cluster.kubectl("delete", kind, "-n", "training", name, "--wait=false")
        await_that(lambda: claim not in self.claims(job) and f"{job.name}-{slot}-2" in self.claims(job),
                   "the server has another claim", 60)
        measured("claim deleted → its server begins anew on another", time.monotonic() - begin)
        self.assert_trained_on(job, EPOCHS, EXAMPLES)
        self.assert_event(job, f"{slot} begins anew on (another volume: its claim {claim} was deleted|an empty volume)")

    def test_the_leading_operators_node_is_cut(self):
        job = self.start_training("headless", **JOB)
        leader, node = self.system.leader(), self.leaders_node()
        slot = self.server_on(job, node)
        old = job.pod_of(slot)
        order = time.time()
        begin = time.monotonic()
        self.system.cluster.cut_node(int(node.removeprefix("node")))
        self.report_lost(node)
        led = self.system.await_leader_but([leader], begin)
        measured("leader's node cut → the standby leads (lease 5 s)", led.time - begin)
        self.await_take_over(job, old, begin)
        measured("leader's node cut → updates are acknowledged again", job.await_resumed(order, but=node) - order)
        self.assert_trained_on(job, EPOCHS, EXAMPLES)
        self.assert_event(job, f"Lost: {slot} is given up: its node has been away for [0-9]+ s")


if __name__ == "__main__":
    require()
    unittest.main()

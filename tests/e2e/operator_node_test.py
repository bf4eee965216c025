#!/usr/bin/env python3
"""A node loses its power while a job trains on three: the job goes on, and what was on the node is made elsewhere."""

import json
import time
import unittest

from cluster import await_that
from operator_rig import (EXAMPLES, OPERATORS, Job, System, TestCase, is_running, measured, require, slot_of, tiny_job)
from operator_watch import Watch

EPOCHS = 30
DETECTION = "  detection: {heartbeat: 3s, nodeUnreachable: 1s, forceDelete: 1s}\n"
MAPS = "/apis/adamant.dev/v1alpha1/namespaces/training/shardmaps"
CLAIMS = "/api/v1/namespaces/training/persistentvolumeclaims"
BUDGET = "/apis/policy/v1/namespaces/training/poddisruptionbudgets/{}-parameter-server"


class LostNodeTest(TestCase):

    @classmethod
    def setUpClass(cls):
        """Each test has a cluster of its own: it loses a node."""

    def setUp(self):
        super().setUp()
        self.system = self.enterContext(System(nodes=3))

    def start_training(self, name):
        """A job whose three parameter servers hold each bucket twice, each on a node of its own."""
        manifest = tiny_job(name, epochs=EPOCHS, parameter_servers=3).replace("buckets: 8", "buckets: 8, copies: 2")
        job = Job(self.system, manifest + DETECTION).apply()
        job.await_epoch(2)
        self.maps = self.enterContext(Watch(self.system.api, MAPS))
        return job

    def leaders_node(self):
        leader = self.system.api.get(f"/api/v1/namespaces/{OPERATORS}/pods/{self.system.leader()}")
        return leader["spec"]["nodeName"]

    def servers(self, job):
        """{node: the parameter server there}"""
        return {pod["spec"]["nodeName"]: slot_of(pod) for pod in job.pods().values()
                if slot_of(pod).startswith("parameter-server")}

    def choose_server(self, job):
        """A parameter server, and its node: not the leading operator's, nor the data server's."""
        spared = {pod["spec"]["nodeName"] for pod in job.pods().values() if slot_of(pod).startswith("data-server")}
        spared.add(self.leaders_node())
        for node, slot in self.servers(job).items():
            if node not in spared:
                return slot, node
        raise AssertionError(f"all parameter servers are on {spared}")

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

    def claims(self, job):
        listed = self.system.api.get(f"{CLAIMS}?labelSelector=adamant.dev/job={job.name}")["items"]
        return {claim["metadata"]["name"] for claim in listed if "deletionTimestamp" not in claim["metadata"]}

    def assert_trained_on(self, job):
        """To the end, and without losing an update or counting a restart."""
        job.await_phase("Succeeded")
        self.assert_counted_once(job, EPOCHS, EXAMPLES)
        self.assertEqual({row["updates_lost"] for row in job.rows()}, {"0"})
        self.assertEqual(job.status()["restarts"], 0, job.events())

    def test_a_parameter_servers_node_is_cut(self):
        job = self.start_training("powerless")
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

        self.assert_trained_on(job)
        self.assert_event(job, f"Lost: {slot} was silent for 3 s")

    def test_the_leading_operators_node_is_cut(self):
        job = self.start_training("headless")
        leader, node = self.system.leader(), self.leaders_node()
        slot = self.servers(job)[node]
        old = job.pod_of(slot)
        order = time.time()
        begin = time.monotonic()
        self.system.cluster.cut_node(int(node.removeprefix("node")))
        self.report_lost(node)
        led = self.system.await_leader_but([leader], begin)
        measured("leader's node cut → the standby leads (lease 5 s)", led.time - begin)
        self.await_take_over(job, old, begin)
        measured("leader's node cut → updates are acknowledged again", job.await_resumed(order, but=node) - order)
        self.assert_trained_on(job)
        self.assert_event(job, f"Lost: {slot} is given up: its node has been away for [0-9]+ s")


if __name__ == "__main__":
    require()
    unittest.main()

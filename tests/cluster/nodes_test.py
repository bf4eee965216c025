#!/usr/bin/env python3
"""Clusters with nodes run pods as README.md says: networks, names, volumes, and nodes that fail."""

import json
import os
import pathlib
import signal
import sys
import unittest

import cluster as harness
import connect
import state
from cluster import Cluster
from images import PROBE, write_image
from network_policies import TABLE
from owner import Owner
from pods import Namespace, pod


class OneNodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster.nodes(1))
        cls.namespace = Namespace(cls.cluster, "test")

    def test_restricted_pod_runs_and_its_log_is_read(self):
        self.namespace.start("server", "serve", "7000")
        self.assertEqual(self.namespace.kubectl("logs", "server"), "server serves port 7000\n")
        self.assertEqual(self.namespace.kubectl("exec", "server", "--", "/probe", "note", "/dev/null", "x"), "")

    def test_pod_with_rights_is_refused(self):
        with self.assertRaisesRegex(OSError, 'violates PodSecurity "restricted:latest"'):
            self.namespace.kubectl("run", "root", f"--image={PROBE}")

    def test_killed_container_is_seen_with_its_exit_code(self):
        self.namespace.start("victim")
        self.cluster.kill_container("test", "victim")
        code = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
        self.namespace.kubectl("wait", "pod/victim", "--for=jsonpath={.status.phase}=Failed", "--timeout=30s")
        self.assertEqual(self.namespace.kubectl("get", "pod", "victim", "-o", code), str(128 + signal.SIGKILL))

    def test_volume_keeps_what_one_pod_wrote_for_the_next_until_its_claim_is_deleted(self):
        self.namespace.claim("disk")
        self.assertEqual(self.namespace.run("first", "note", "/disk/notes", "one", claim="disk"), "one\n")
        self.assertEqual(self.namespace.run("second", "note", "/disk/notes", "two", claim="disk"), "one\ntwo\n")
        volumes = self.cluster.folder / "node1" / "volumes"
        self.assertEqual(len(list(volumes.iterdir())), 1)
        self.namespace.kubectl("delete", "pod/first", "pod/second", "persistentvolumeclaim/disk")
        state.await_that(lambda: not list(volumes.iterdir()), "the volume is removed")

    def test_pods_run_on_without_the_api_server(self):
        self.namespace.start("steady")
        self.cluster.stop_api()
        with self.assertRaises(OSError):
            self.cluster.api.get("/version")
        self.cluster.start_api()
        self.assertEqual(self.namespace.kubectl("get", "pod", "steady", "-o", "jsonpath={.status.phase}"), "Running")
        self.namespace.start("later")

    def test_image_of_a_test_is_loaded(self):
        archive = self.cluster.folder / "other.tar"
        name = "localhost/adamant-test/other:1"
        write_image(archive, [name], {"program": self.cluster.folder / "probe"}, ["/program"])
        self.cluster.load_images([archive])
        self.assertIn(name, self.cluster.node_exec(1, "ctr", "--address", self.cluster.folder / "node1/containerd.sock",
                                                   "--namespace", "k8s.io", "images", "list", "--quiet"))

    def test_kernel_settings_of_the_machine_are_not_touched(self):
        setting = pathlib.Path("/proc/sys/kernel/panic")
        wish = "10"  # the kubelet's
        self.assertEqual(self.cluster.node_exec(1, "cat", setting).strip(), wish)
        self.assertNotEqual(setting.read_text().strip(), wish)


class ThreeNodesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster.nodes(3))
        cls.namespace = Namespace(cls.cluster, "test")
        for node in (1, 2):
            cls.namespace.start(f"server{node}", "serve", "7000", node=node)
            cls.namespace.service(f"server{node}", headless=node == 1)

    def address(self, pod):
        return self.namespace.kubectl("get", "pod", pod, "-o", "jsonpath={.status.podIP}")

    def ask(self, pod, host):
        return self.namespace.kubectl("exec", pod, "--", "/probe", "ask", host, "7000")

    def reaches(self, pod, host):
        try:
            return self.ask(pod, host) != ""
        except OSError:
            return False

    def is_ready(self, node):
        condition = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return self.cluster.kubectl("get", "node", f"node{node}", "-o", condition) == "True"

    def test_pods_reach_each_other_across_nodes_by_address(self):
        self.assertEqual(self.ask("server2", self.address("server1")), "server1 answers\n")
        self.assertEqual(self.ask("server1", self.address("server2")), "server2 answers\n")

    def test_name_of_a_headless_service_is_that_of_its_pod(self):
        self.assertEqual(self.ask("server2", "server1"), "server1 answers\n")
        self.assertEqual(self.ask("server2", "server1.test.svc.cluster.local"), "server1 answers\n")

    def test_service_with_an_address_leads_to_its_pod(self):
        for pod in ("server1", "server2"):
            state.await_that(lambda pod=pod: self.reaches(pod, "server2"), "kube-proxy has heard of the service")

    def test_unknown_name_is_refused(self):
        with self.assertRaisesRegex(OSError, "ask: nowhere: "):
            self.ask("server1", "nowhere")

    def test_disconnected_node_is_out_of_reach_and_its_pods_run_on(self):
        self.cluster.disconnect_node(1)
        self.assertFalse(self.reaches("server2", self.address("server1")))
        self.cluster.reconnect_node(1)
        state.await_that(lambda: self.reaches("server2", self.address("server1")), "the node is in reach")
        self.assertEqual(self.namespace.kubectl("get", "pod", "server1", "-o", "jsonpath={.status.phase}"), "Running")

    def test_node_without_power_is_gone_at_once_though_nobody_was_told_and_returns_with_its_disk(self):
        self.namespace.start("lost", "serve", "7000", node=3)
        address = self.address("lost")
        before = set(state.processes(self.cluster.folder))
        self.cluster.cut_node(3)
        self.assertGreaterEqual(len(before - set(state.processes(self.cluster.folder))), 5)
        self.assertEqual(state.cgroups(self.cluster.name, "node3"), [])
        self.assertFalse(self.reaches("server2", address))
        self.assertTrue(self.is_ready(3))
        self.assertEqual(self.namespace.kubectl("get", "pod", "lost", "-o", "jsonpath={.status.phase}"), "Running")
        self.cluster.restore_node(3)
        self.namespace.start("new", "serve", "7000", node=3)  # its image is on the disk
        self.assertTrue(self.reaches("server2", self.address("new")))
        self.namespace.kubectl("wait", "pod/lost", "--for=jsonpath={.status.phase}=Failed", "--timeout=60s")

    def test_machine_is_as_before_when_the_cluster_is_removed(self):
        def network():
            rules = [line for line in state.run("iptables-save").splitlines() if line.startswith("-A")]
            return state.run("ip", "link"), rules

        before = network()
        with Cluster.nodes(1) as other:
            Namespace(other, "test").start("pod")
            self.assertTrue(state.cgroups(other.name))
            self.assertEqual(network(), before)
        self.assertEqual(state.processes(other.folder), [])
        self.assertEqual(state.cgroups(other.name), [])
        self.assertNotIn(other.name, pathlib.Path("/proc/mounts").read_text())
        self.assertEqual(network(), before)

    def test_next_start_removes_the_nodes_that_a_killed_owner_and_keeper_left(self):
        owner = Owner("nodes(1)")
        owner.kill()
        self.assertTrue(state.cgroups(owner.folder.name))
        with Cluster.api_only():
            self.assertEqual(state.processes(owner.folder), [])
            self.assertEqual(state.cgroups(owner.folder.name), [])
            self.assertFalse(owner.folder.exists())


class PoliciesTest(unittest.TestCase):
    """Who reaches a server that probes of its node ask: a friend on its node, a friend on another one, and strangers."""

    FRIENDS = {"friend", "far-friend"}
    STRANGERS = {"stranger", "friend-elsewhere"}
    POLICY = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "friends"},
              "spec": {"podSelector": {"matchLabels": {"app": "server"}}, "policyTypes": ["Ingress", "Egress"],
                       "ingress": [{"ports": [{"port": 7000}], "from": [{"podSelector": {"matchExpressions": [
                           {"key": "app", "operator": "In", "values": [*FRIENDS, "friend-elsewhere"]}]}}]}]}}

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster.nodes(2, enforce_policies=True))
        cls.namespace = Namespace(cls.cluster, "test")
        server = pod("server", "serve", "7000", node=1)
        server["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 7000}, "periodSeconds": 1}
        cls.namespace.kubectl("apply", "-f", "-", input=server)
        cls.namespace.service("server", headless=False)
        cls.namespace.start("friend", node=1)
        cls.namespace.start("far-friend", "serve", "7000", node=2)
        cls.namespace.start("stranger", node=2)
        Namespace(cls.cluster, "elsewhere").start("friend-elsewhere", node=1)
        cls.namespace.kubectl("wait", "pod/server", "--for=condition=Ready", "--timeout=30s")
        cls.targets = [cls.namespace.kubectl("get", f"{kind}/server", "-o", f"jsonpath={{{path}}}")
                       for kind, path in (("pod", ".status.podIP"), ("service", ".spec.clusterIP"))]

    def outcomes(self, of, targets=None):
        namespace = "elsewhere" if of == "friend-elsewhere" else "test"
        said = self.cluster.exec_in_network_of(namespace, of, sys.executable, connect.__file__, "1",
                                               *[f"{target}:7000" for target in targets or self.targets])
        return list(json.loads(said).values())

    def who_connects(self):
        return {name for name in self.FRIENDS | self.STRANGERS if self.outcomes(name) == ["open", "open"]}

    def test_policies_deny_what_they_do_not_let_through_and_probes_and_replies_pass(self):
        state.await_that(lambda: self.who_connects() == self.FRIENDS | self.STRANGERS, "all connect without a policy")
        self.namespace.kubectl("apply", "-f", "-", input=self.POLICY)
        state.await_that(lambda: self.who_connects() == self.FRIENDS, "friends connect with it")
        for stranger in self.STRANGERS:
            self.assertEqual(self.outcomes(stranger), ["silent", "silent"])
        friend = self.namespace.kubectl("get", "pod/far-friend", "-o", "jsonpath={.status.podIP}")
        self.assertEqual(self.outcomes("server", [friend]), ["silent"], "replies pass, connections of its own do not")
        self.assertEqual(self.outcomes("stranger", [friend]), ["open"])
        self.namespace.kubectl("wait", "pod/server", "--for=condition=Ready", "--timeout=0s")

        self.namespace.start("later", "serve", "7000", node=2)
        self.namespace.kubectl("label", "pod/later", "app=server", "--overwrite")
        later = self.namespace.kubectl("get", "pod/later", "-o", "jsonpath={.status.podIP}")
        state.await_that(lambda: self.outcomes("stranger", [later]) == ["silent"], "a later pod is selected")
        self.assertEqual(self.outcomes("friend", [later]), ["open"])
        self.namespace.kubectl("delete", "networkpolicy", "friends")
        state.await_that(lambda: self.who_connects() == self.FRIENDS | self.STRANGERS, "all connect again")

    def test_rules_are_the_nodes_own_and_return_with_them(self):
        """Runs last, by its name: the pods of node 2 are lost."""
        self.cluster.cut_node(2)
        self.cluster.restore_node(2)
        for node in (1, 2):
            self.assertIn(TABLE, self.cluster.node_exec(node, "nft", "list", "tables"))
        self.assertNotIn(TABLE, state.run("nft", "list", "tables"))


if __name__ == "__main__":
    harness.require("nodes")
    unittest.main()

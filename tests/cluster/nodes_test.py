#!/usr/bin/env python3
"""Clusters with nodes run pods as README.md says: networks, names, volumes, and nodes that fail."""

import os
import pathlib
import signal
import unittest

import cluster as harness
import state
from cluster import Cluster
from images import PROBE, write_image
from owner import Owner
from pods import Namespace


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


if __name__ == "__main__":
    harness.require("nodes")
    unittest.main()

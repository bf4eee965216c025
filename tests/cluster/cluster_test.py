#!/usr/bin/env python3
"""Clusters without nodes do what README.md says, and nothing of them is left behind."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import cluster as harness
import state
from cluster import Cluster
from owner import Owner
from pods import pod

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name, owner=None):
    metadata = {"name": name}
    if owner is not None:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
                                        "uid": owner["metadata"]["uid"]}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class ApiOnlyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster.api_only())
        cls.api = cls.cluster.api

    def names(self, path=CONFIG_MAPS):
        return {item["metadata"]["name"] for item in self.api.get(path)["items"]}

    def test_object_is_created_watched_and_deleted(self):
        version = self.api.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
        events = []

        def follow():
            for event in self.api.watch(f"{CONFIG_MAPS}?resourceVersion={version}"):
                events.append((event["type"], event["object"]["metadata"]["name"]))
                if event["type"] == "DELETED":
                    return

        watcher = threading.Thread(target=follow)
        watcher.start()
        self.api.create(CONFIG_MAPS, config_map("seen"))
        self.api.delete(f"{CONFIG_MAPS}/seen")
        watcher.join()
        self.assertEqual(events, [("ADDED", "seen"), ("DELETED", "seen")])

    def test_objects_outlive_the_api_server_and_etcd(self):
        self.api.create(CONFIG_MAPS, config_map("kept"))
        self.cluster.stop_api()
        with self.assertRaises(ConnectionRefusedError):
            self.api.get(CONFIG_MAPS)
        self.cluster.start_api()
        self.assertIn("kept", self.names())
        self.cluster.restart_etcd()
        state.await_that(self.api.is_ready, "etcd is back")
        self.assertIn("kept", self.names())

    def test_api_server_that_runs_is_not_started_again(self):
        with self.assertRaisesRegex(OSError, "kube-apiserver runs already"):
            self.cluster.start_api()

    def test_paused_api_server_answers_when_resumed(self):
        self.cluster.pause_api()
        answers = []
        asker = threading.Thread(target=lambda: answers.append(self.api.get("/version")["gitVersion"]))
        asker.start()
        asker.join(timeout=0.5)
        self.assertEqual(answers, [])
        self.cluster.resume_api()
        asker.join()
        self.assertRegex(answers[0], r"^v1\.")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_reset_connection_ends_a_watch_and_the_next_request_is_answered(self):
        ended = threading.Event()

        def follow():
            with contextlib.suppress(OSError):
                for _ in self.api.watch(CONFIG_MAPS):
                    watching.set()
            ended.set()

        watching = threading.Event()
        self.api.create(CONFIG_MAPS, config_map("first"))
        watcher = threading.Thread(target=follow)
        watcher.start()
        watching.wait()
        self.assertFalse(ended.is_set())
        self.cluster.reset_connections()
        watcher.join()
        self.api.get("/version")

    def test_user_with_a_certificate_may_do_what_roles_allow(self):
        name = "jsonpath={.status.userInfo.username}"
        self.assertEqual(self.cluster.kubectl("auth", "whoami", "-o", name, user="ann"), "ann")
        self.assertFalse(self.allowed("ann"))
        self.cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=configmaps")
        self.cluster.kubectl("create", "rolebinding", "ann", "--role=reader", "--user=ann")
        state.await_that(lambda: self.allowed("ann"), "the role has come into effect")

    def allowed(self, user):
        try:
            self.cluster.kubectl("get", "configmaps", user=user)
            return True
        except OSError:
            return False

    def test_service_account_has_a_token(self):
        self.cluster.kubectl("create", "serviceaccount", "robot")
        file = self.cluster.token_kubeconfig("default", "robot")
        shown = state.run(self.cluster.programs["kubectl"], "--kubeconfig", file, "auth", "whoami")
        self.assertIn("system:serviceaccount:default:robot", shown)

    def test_clusters_side_by_side_know_nothing_of_each_other(self):
        with Cluster.api_only() as other:
            other.api.create(CONFIG_MAPS, config_map("theirs"))
            self.assertNotIn("theirs", self.names())
            self.assertNotEqual(other.url, self.cluster.url)
        self.assertFalse(other.folder.exists())
        self.api.get("/version")

    def test_name_in_use_is_refused(self):
        with self.assertRaisesRegex(OSError, f"there is a cluster named {self.cluster.name}"):
            with Cluster.api_only(name=self.cluster.name):
                pass
        self.api.get("/version")

    def test_argument_of_the_api_server_that_it_refuses_is_told(self):
        with self.assertRaisesRegex(OSError, "unknown flag: --no-such-flag"):
            with Cluster.api_only(api_arguments=["--no-such-flag"]):
                pass


class ControlPlaneTest(unittest.TestCase):
    def test_pods_run_on_nodes_that_do_not_exist(self):
        with Cluster.fake_nodes(2) as cluster:
            for number in range(10):
                cluster.api.create("/api/v1/namespaces/default/pods", pod(f"pod{number}", node=1 + number % 2))
            cluster.kubectl("wait", "pods", "--all", "--for=condition=Ready", "--timeout=30s")
            cluster.kubectl("delete", "pods", "--all", "--timeout=30s")

    def test_garbage_is_collected_and_namespaces_vanish(self):
        with Cluster.control_plane() as cluster:
            owner = cluster.api.create(CONFIG_MAPS, config_map("owner"))
            cluster.api.create(CONFIG_MAPS, config_map("owned", owner))
            cluster.kubectl("delete", "configmap", "owner")
            cluster.kubectl("wait", "configmap/owned", "--for=delete", "--timeout=30s")
            cluster.kubectl("create", "namespace", "brief")
            cluster.kubectl("delete", "namespace", "brief", "--timeout=30s")


class CleanUpTest(unittest.TestCase):
    def setUp(self):
        self.owner = Owner("api_only()")
        self.folder = self.owner.folder
        self.assertGreaterEqual(len(state.processes(self.folder)), 2)

    def assert_removed(self):
        state.await_that(lambda: not self.folder.exists(), "the folder is removed")
        self.assertEqual(state.processes(self.folder), [])

    def test_nothing_is_left_when_the_owner_is_asked_to_end(self):
        self.owner.end(signal.SIGTERM)
        self.assert_removed()

    def test_nothing_is_left_when_the_owner_is_interrupted(self):
        self.owner.end(signal.SIGINT)
        self.assert_removed()

    def test_nothing_is_left_when_the_owner_is_killed(self):
        self.owner.end(signal.SIGKILL)
        self.assert_removed()

    def test_next_start_removes_what_a_killed_owner_and_keeper_left(self):
        self.owner.kill()
        self.assertTrue(self.folder.exists())
        with Cluster.api_only():
            self.assert_removed()

    def test_kept_cluster_outlives_its_owner_until_it_is_removed(self):
        owner = Owner("api_only()", ADAMANT_CLUSTER_KEEP="1")
        owner.end(signal.SIGINT)
        kept = Cluster.attach(owner.folder.name)
        kept.api.get("/version")
        kept.down()
        self.assertEqual(state.processes(owner.folder), [])
        self.owner.end(signal.SIGTERM)

    def test_another_process_can_remove_it(self):
        Cluster.attach(self.folder.name).down()
        self.assert_removed()
        self.owner.end(signal.SIGTERM)

    def test_unknown_cluster_is_refused_with_the_names_that_there_are(self):
        with self.assertRaisesRegex(OSError, f"there is no cluster nowhere; there are: .*{self.folder.name}"):
            Cluster.attach("nowhere")
        self.owner.end(signal.SIGTERM)
        self.assert_removed()


class CommandLineTest(unittest.TestCase):
    TOOL = pathlib.Path(harness.__file__)

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, self.TOOL, *arguments], capture_output=True, text=True, check=False)

    def test_command_is_run_with_a_cluster_that_it_can_stop_and_start(self):
        script = "tool=$ADAMANT_CLUSTER_TOOL; $tool stop-api && $tool start-api && $tool list; exit 3"
        done = self.run_tool("run", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stdout, r": \d+ MB, /")

    def test_cluster_without_nodes_cannot_lose_one(self):
        done = self.run_tool("run", "--", "sh", "-c", "$ADAMANT_CLUSTER_TOOL cut-node 1")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"cluster \w+ has no node 1; it has 0")


if __name__ == "__main__":
    harness.require("fake-nodes")
    unittest.main()

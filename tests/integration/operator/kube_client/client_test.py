#!/usr/bin/env python3
"""The Kubernetes client against real API servers: runs the program of $ADAMANT_KUBE_CLIENT_TEST with clusters."""

import os
import pathlib
import subprocess
import unittest

import cluster as harness
from cluster import Cluster

FORGETFUL = ["--watch-cache=false", "--etcd-compaction-interval=1s", "--feature-gates=WatchList=false"]


def run(cluster, tests):
    """Runs the tests that a GoogleTest filter names."""
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig()), "ADAMANT_CLUSTER": cluster.name,
                   "ADAMANT_CLUSTER_TOOL": str(pathlib.Path(harness.__file__).resolve())}
    command = [os.environ["ADAMANT_KUBE_CLIENT_TEST"], f"--gtest_filter={tests}"]
    return subprocess.run(command, env=environment, check=False).returncode


class ClientTest(unittest.TestCase):
    def test_client_follows_a_server_through_its_faults(self):
        with Cluster.api_only() as cluster:
            self.assertEqual(run(cluster, "-ForgetfulServerTest.*"), 0)

    def test_client_lists_again_where_versions_expire(self):
        with Cluster.api_only(api_arguments=FORGETFUL) as cluster:
            self.assertEqual(run(cluster, "ForgetfulServerTest.*:VerbsTest.*"), 0)


if __name__ == "__main__":
    harness.require("api-only")
    unittest.main(verbosity=2)

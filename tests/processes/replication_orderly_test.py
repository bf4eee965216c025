#!/usr/bin/env python3
"""Servers of a replicated job leave in good order and come back, under load: nothing is lost."""

import time
import unittest

import netns
from replicated import STEADY, ReplicatedCluster, servers


class OrderlyTest(unittest.TestCase):
    def cluster(self, settings=None, **options):
        return self.enterContext(ReplicatedCluster(settings, **options))

    def leave(self, cluster, server):
        """SIGTERM, to the process's end."""
        before = cluster.exits(server)
        cluster.note_deaths(server)
        cluster.terminate(server)
        cluster.await_that(lambda: cluster.exits(server) > before, f"the end of {server}")

    def test_server_that_is_asked_to_stop_hands_over_first(self):
        cluster = self.cluster(servers(failover=STEADY))
        server = cluster.primary()
        with cluster.fault(f"{server} asked to stop"):
            self.leave(cluster, server)
        self.assertIn('"stopped"', cluster.log(server))
        cluster.finish_and_check(self)
        self.assertEqual(cluster.failovers(), 0)

    def test_rolling_restart(self):
        cluster = self.cluster()
        for server in cluster.servers:
            with cluster.fault(f"{server} asked to stop"):
                self.leave(cluster, server)
        with cluster.fault("controller killed and started again"):
            cluster.kill_and_await("controller")
            cluster.start_controller()
        cluster.finish_and_check(self)

    def test_checkpoints_go_on_under_faults(self):
        cluster = self.cluster(servers(4, 3, 8), count=4)
        checkpoint = lambda: cluster.status()["checkpoint"]
        for _ in range(2):
            before = checkpoint()
            with cluster.fault("primary killed while checkpoints are taken"):
                time.sleep(cluster.random.uniform(0, 2))
                cluster.kill_and_await(cluster.primary())
            cluster.await_that(lambda: checkpoint() > before, "a checkpoint", 30)
        cluster.finish_and_check(self)


if __name__ == "__main__":
    netns.main()

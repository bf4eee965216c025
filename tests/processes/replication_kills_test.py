#!/usr/bin/env python3
"""Replicated servers and their controller are killed and stopped under load: nothing acknowledged is lost."""

import time
import unittest

import netns
from replicated import GRACE, STEADY, ReplicatedCluster, servers


class KillsTest(unittest.TestCase):
    def cluster(self, settings=None, **options):
        return self.enterContext(ReplicatedCluster(settings, **options))

    def test_killed_primaries_secondaries_and_controllers(self):
        cluster = self.cluster()
        for number in range(10):
            with cluster.fault(f"primary {number} killed"):
                cluster.kill_and_await(cluster.primary())
        for number in range(6):
            with cluster.fault(f"secondary {number} killed"):
                cluster.kill_and_await(cluster.secondary()[0])
        for number in range(4):
            with cluster.fault(f"controller {number} killed"):
                cluster.kill_and_await("controller")
                if number % 2 == 1:  # nobody decides who takes over until it is back
                    cluster.kill_and_await(cluster.servers[number])
                cluster.start_controller()
        cluster.finish_and_check(self)
        self.assertGreaterEqual(cluster.failovers(), 10)

    def test_two_of_three_copies_are_killed_at_once(self):
        cluster = self.cluster(servers(3, 3, 8, failover=STEADY), count=3)
        for number in range(3):
            victims = cluster.random.sample(cluster.servers, 2)
            with cluster.fault(f"pair {number} killed"):
                cluster.kill_and_await(*victims)
        report = cluster.finish_and_check(self)
        self.assertEqual(cluster.told("restored"), [])
        self.assertEqual(report.rolled_back, 0)

    def test_primary_is_killed_while_its_copy_is_made(self):
        cluster = self.cluster(servers(4, 3, 8, failover=STEADY), count=4)
        for number in range(3):
            with cluster.fault(f"primary {number} killed while another server learns"):
                secondary, primary = cluster.secondary()
                cluster.kill_and_await(secondary)
                time.sleep(cluster.random.uniform(0.05, 0.4))  # it starts, joins and learns
                cluster.kill_and_await(primary)
        cluster.finish_and_check(self)

    def test_stopped_servers(self):
        cluster = self.cluster()
        for number in range(8):
            role = "primary" if number % 4 < 2 else "secondary"
            server = cluster.primary() if role == "primary" else cluster.secondary()[0]
            seconds = GRACE / 3 if number % 2 == 0 else GRACE * 2.5
            with cluster.fault(f"{role} stopped for {seconds:.2f} s"), cluster.paused(server):
                time.sleep(seconds)
        cluster.finish_and_check(self)

    def test_job_goes_on_while_a_server_stays_away(self):
        cluster = self.cluster()
        server = cluster.primary()
        with cluster.fault("server away until its copies are made elsewhere"), cluster.kept_down(server):
            cluster.kill_and_await(server)
            cluster.await_whole("the loss of one server for good")
        cluster.finish_and_check(self)


if __name__ == "__main__":
    netns.main()

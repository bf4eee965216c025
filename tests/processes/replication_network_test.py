#!/usr/bin/env python3
"""The network of a replicated job is cut, slow and odd under load: nothing acknowledged is lost, no read is stale."""

import time
import unittest

import netns
from replicated import GRACE, ReplicatedCluster, servers


class NetworkTest(unittest.TestCase):
    def cluster(self, settings=None, **options):
        return self.enterContext(ReplicatedCluster(settings, **options))

    def test_servers_are_cut_off(self):
        cluster = self.cluster()
        for number in range(6):
            server = cluster.primary() if number % 2 == 0 else cluster.secondary()[0]
            seconds = GRACE * (0.5, 2, 3)[number % 3]
            with cluster.fault(f"{server} cut off from all for {seconds:.1f} s"):
                cluster.network.isolate(server)
                time.sleep(seconds)
                cluster.network.heal()
        cluster.finish_and_check(self)

    def test_ways_are_cut_in_one_direction(self):
        cluster = self.cluster()
        for number in range(6):
            secondary, primary = cluster.secondary()
            source, target = (primary, secondary) if number % 2 == 0 else (secondary, primary)
            with cluster.fault(f"nothing from {source} reaches {target}"):
                cluster.network.drop(source, target)
                if number >= 4:  # nor anybody else
                    for other in set(cluster.servers) - {source, target}:
                        cluster.network.drop(source, other)
                time.sleep(GRACE * 2.5)
                cluster.network.heal()
        cluster.finish_and_check(self)

    def test_ways_flap(self):
        cluster = self.cluster()
        for cut, whole in ((0.3, 0.3), (GRACE, 0.2)):
            secondary, primary = cluster.secondary()
            with cluster.fault(f"cut for {cut} s and whole for {whole} s in turns"):
                with cluster.network.flapping(primary, secondary, cut, whole):
                    time.sleep(3)
        cluster.finish_and_check(self)

    def test_controller_is_cut_off(self):
        cluster = self.cluster()
        for number in range(2):
            with cluster.fault("controller cut off from all"):
                cluster.network.isolate("controller")
                time.sleep(GRACE * 3)
                cluster.network.heal()
            primary = cluster.primary()
            with cluster.fault("controller cut off from a primary only"):
                cluster.network.cut("controller", primary)
                if number == 1:  # and it dies: those who hear of it need not wait
                    cluster.kill_and_await(primary)
                time.sleep(GRACE * 3)
                cluster.network.heal()
        cluster.finish_and_check(self)

    def test_old_primary_reads_nothing_stale_after_the_others_went_on(self):
        """Its workers still reach it, its secondaries do not: they take over, and only then does it hear of it."""
        cluster = self.cluster(servers(3, 3, 4), count=3, reads=200)
        for _ in range(2):
            primary = cluster.primary()
            with cluster.fault(f"{primary} cut off from servers and controller, not from workers"):
                for other in {"controller", *cluster.servers} - {primary}:
                    cluster.network.cut(primary, other)
                time.sleep(GRACE * 3)
                cluster.network.heal()
        report = cluster.finish_and_check(self)
        self.assertGreater(report.reads, 500)

    def test_slow_repeating_and_breaking_connections(self):
        nodes = ["parameter-server-0", "parameter-server-1", "worker-0"]
        cluster = self.cluster(proxied=nodes, retry=300)
        proxies = [cluster.network.proxy(node) for node in nodes]
        behaviours = {
            "delayed": {"delay": 20, "jitter": 30},
            "reordered between connections": {"spread": 150},
            "duplicated": {"duplicate": 1, "duplicate_delay": 50},
            "reset now and again": {"reset_after": 400},
            "all of it": {"delay": 5, "jitter": 20, "spread": 50, "duplicate": 1, "duplicate_delay": 30,
                          "reset_after": 800},
        }
        for what, behaviour in behaviours.items():
            with cluster.fault(f"connections are {what}"):
                for proxy in proxies:
                    proxy.set(**behaviour)
                    proxy.reset()
                time.sleep(2)
                for proxy in proxies:
                    proxy.set()
                    proxy.reset()
        cluster.finish_and_check(self)
        self.assertGreaterEqual(sum(proxy.stats()["resets"] for proxy in proxies), 5)


if __name__ == "__main__":
    netns.main()

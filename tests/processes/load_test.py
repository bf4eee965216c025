#!/usr/bin/env python3
"""The load finds what a server without copies loses, and only that."""

import time
import unittest

import netns
from load import LoadedCluster, assert_nothing_lost

ONE = "{count: 1, buckets: 4, persistence: {flushInterval: 1h}}"


class LoadTest(unittest.TestCase):
    def cluster(self, parameter_servers=ONE, **options):
        return self.enterContext(LoadedCluster(parameter_servers, count=1, **options))

    def test_without_faults_every_update_counts_once(self):
        cluster = self.cluster(workers=2, poison_every=10, reads=50)
        cluster.await_acknowledged(1000)
        report = cluster.finish()
        assert_nothing_lost(self, report)
        self.assertGreaterEqual(report.acknowledged, 1000)
        self.assertGreaterEqual(report.refused, 100)
        self.assertGreater(report.reads, 0)
        self.assertEqual(report.unanswered, 0)

    def test_bad_connections_neither_lose_nor_repeat_updates(self):
        cluster = self.cluster(retry=100, proxied=["worker-0"])
        proxy = cluster.network.proxy("worker-0")
        proxy.set("parameter-server-0", reset_after=300, duplicate=1, duplicate_delay=50, delay_up=5, jitter_down=20)
        cluster.await_that(lambda: proxy.stats()["resets"] >= 5, "5 resets")
        assert_nothing_lost(self, cluster.finish())
        self.assertGreaterEqual(proxy.stats()["duplicated"], 5)

    def test_rate_is_kept(self):
        cluster = self.cluster(rate=200)
        cluster.await_acknowledged()
        begin, before = time.monotonic(), cluster.acknowledged()
        time.sleep(2)
        rate = (cluster.acknowledged() - before) / (time.monotonic() - begin)
        self.assertLess(rate, 300)
        self.assertGreater(rate, 50)
        assert_nothing_lost(self, cluster.finish())

    def test_updates_that_only_memory_held_are_sent_again_after_its_loss(self):
        cluster = self.cluster()
        cluster.await_acknowledged(500)
        killed = time.monotonic()
        cluster.kill("parameter-server-0")
        cluster.await_that(lambda: cluster.exits("parameter-server-0") == 1, "its end")
        cluster.await_acknowledged(500)
        report = cluster.finish()
        self.assertEqual(report.violations, [])
        self.assertGreater(report.rolled_back, 0)
        self.assertEqual(report.lost, 0)
        self.assertGreater(max(report.interruptions(killed, killed + 1)), 0.05)

    def test_load_that_retains_nothing_reports_the_loss(self):
        cluster = self.cluster(retain=0)
        cluster.await_acknowledged(500)
        cluster.kill("parameter-server-0")
        cluster.await_that(lambda: cluster.exits("parameter-server-0") == 1, "its end")
        cluster.await_acknowledged(500)
        report = cluster.finish()
        self.assertEqual(report.violations, [])
        self.assertGreater(report.lost, 0)


if __name__ == "__main__":
    netns.main()

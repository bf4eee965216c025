#!/usr/bin/env python3
"""What is kept after all copies are lost, mode by mode, and after disks fail: each row of the table of promises."""

import shutil
import sys
import time
import unittest

import disks
import netns
from replicated import STEADY, ReplicatedCluster, servers, slowness

FLUSH = 1  # seconds: flushInterval
SLACK = 1.5  # more: to write what is due, times slowness()

SMALL = (32,) * 12  # shards of 4 KB and one of 100 KB


class StorageTest(unittest.TestCase):
    def cluster(self, settings, count=3, copies=3, **options):
        return self.enterContext(ReplicatedCluster(settings, count=count, copies=copies, hidden=SMALL, **options))

    def await_unflushed(self, cluster, seconds):
        """Until each server has changes that are not on disk since so long; the controller hears every second of it."""
        unflushed = lambda: [member["oldest_unflushed_seconds"] for member in cluster.status()["members"]
                             if member["name"] in cluster.servers]
        cluster.await_that(lambda: min(unflushed()) > seconds, "changes that are not on disk")

    def kill_all(self, cluster, number=0):
        """All servers at once, and now and then their controller too; they start again only when all are dead. Returns
        when they were."""
        names = [*cluster.servers, *(["controller"] if number % 2 else [])]
        with cluster.fault(f"all of {names} killed"), cluster.kept_down(*cluster.servers):
            cluster.kill_and_await(*names)
            loss = time.monotonic()
            if number % 2:
                cluster.start_controller()
        return loss

    def assert_rolled_back_at_most(self, seconds, report, losses):
        """Every update that was rolled back had been acknowledged that long before a loss, or less."""
        for rollback in report.rollbacks:
            # What was on its way when all died has arrived after the loss.
            ages = [loss - rollback["oldest"] for loss in losses if loss >= rollback["oldest"]]
            self.assertLess(min(ages, default=0), seconds + SLACK * slowness())

    def check_values(self, cluster, report):
        try:
            self.assertEqual(report.violations, [])
            self.assertGreater(report.acknowledged, 0)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{cluster.tails()}") from error

    def check_rolled_back(self, cluster, losses):
        """At most the flush interval, and told; workers have sent it again."""
        report = cluster.finish()
        self.check_values(cluster, report)
        self.assertGreater(report.rolled_back, 0)
        self.assertEqual(report.lost, 0)
        self.assert_rolled_back_at_most(FLUSH, report, losses)
        self.assertTrue(cluster.told("restored"))


class AllCopiesLostTest(StorageTest):
    """The rows with three copies: their processes, or their machines, die at once."""

    def test_delayed_rolls_back_at_most_the_flush_interval_and_workers_send_it_again(self):
        cluster = self.cluster(servers(3, 3, 8, flush=f"{FLUSH}s"), reads=0)
        self.check_rolled_back(cluster, [self.kill_all(cluster, number) for number in range(2)])

    def test_delayed_loses_at_most_the_flush_interval_and_tells_when_workers_are_lost_too(self):
        """They know what they pushed, so that it can be judged, and send nothing again."""
        seconds = 30
        cluster = self.cluster(servers(3, 3, 8, flush=f"{seconds}s"), reads=0, retain=0)
        self.await_unflushed(cluster, 3)
        losses = [self.kill_all(cluster)]
        report = cluster.finish()
        self.check_values(cluster, report)
        self.assertEqual(report.lost, report.rolled_back)
        self.assert_rolled_back_at_most(seconds, report, losses)
        self.assertTrue(cluster.told("restored"))
        told = sum(bucket["rolled_back"] for bucket in cluster.buckets())
        print(f"  {report.lost} lost, of which the controller tells {told}", file=sys.stderr)
        self.assertGreater(told, 0)
        self.assertLessEqual(told, report.lost)

    def test_wal_keeps_everything_when_all_processes_die(self):
        cluster = self.cluster(servers(3, 3, 8, mode="Wal"))
        for number in range(2):
            self.kill_all(cluster, number)
        cluster.finish_and_check(self)
        self.assertTrue(cluster.told("restored"))

    def test_wal_sync_keeps_everything_when_all_processes_die(self):
        cluster = self.cluster(servers(3, 3, 8, mode="WalSync"), rate=60)
        for number in range(2):
            self.kill_all(cluster, number)
        cluster.finish_and_check(self)
        self.assertTrue(cluster.told("restored"))


@unittest.skipUnless(disks.can_lose_power(), "needs root, and loop devices")
class PowerTest(StorageTest):
    """The machines lose power: what was not synced is gone."""

    def lose_power(self, cluster, *names):
        cluster.note_deaths(*names)
        with cluster.fault(f"power of {names} lost"):
            cluster.lose_power(*names)
            loss = time.monotonic()
        return loss

    def cluster(self, settings, count=3, copies=3, **options):
        sizes = {f"parameter-server-{slot}": 192 for slot in range(count)}
        return super().cluster(settings, count, copies, disks=sizes, durable_disks=True, **options)

    def test_wal_sync_keeps_everything_when_power_is_lost_everywhere(self):
        cluster = self.cluster(servers(3, 3, 8, mode="WalSync"), rate=60)
        self.lose_power(cluster, *cluster.servers)
        cluster.finish_and_check(self)
        self.assertTrue(cluster.told("restored"))

    def test_wal_rolls_back_at_most_what_was_not_synced_when_power_is_lost_everywhere(self):
        seconds = 5
        cluster = self.cluster(servers(3, 3, 8, mode="Wal", flush=f"{seconds}s"), reads=0)
        self.await_unflushed(cluster, 1)
        losses = [self.lose_power(cluster, *cluster.servers)]
        report = cluster.finish()
        # In this mode "on disk" means in the log, which the system may still have to write.
        report.violations = [each for each in report.violations if "was said to be on disk" not in each]
        self.check_values(cluster, report)
        self.assertGreater(report.rolled_back, 0)
        self.assertEqual(report.lost, 0)
        self.assert_rolled_back_at_most(seconds, report, losses)
        self.assertTrue(cluster.told("restored"))

    def test_delayed_keeps_everything_when_one_machine_keeps_its_power(self):
        cluster = self.cluster(servers(3, 3, 8, failover=STEADY))
        self.lose_power(cluster, *cluster.servers[:2])
        cluster.finish_and_check(self)

    def test_single_copy_with_synced_log_survives_a_loss_of_power(self):
        cluster = self.cluster(servers(1, 1, 4, mode="WalSync"), count=1, copies=1, rate=60)
        self.lose_power(cluster, *cluster.servers)
        cluster.finish_and_check(self)


class DisksLostTest(StorageTest):
    def test_loss_of_every_disk_that_holds_a_copy_is_told(self):
        for copies in (3, 1):
            with self.subTest(copies=copies):
                cluster = ReplicatedCluster(servers(copies, copies, 4, mode="WalSync"), count=copies, copies=copies,
                                            hidden=SMALL)
                with cluster:
                    with cluster.kept_down(*cluster.servers):
                        cluster.kill_and_await(*cluster.servers)
                        for server in cluster.servers:
                            shutil.rmtree(cluster.data(server) / "shards")
                    cluster.await_phase("Failed")
                    self.assertIn("no disk has all of it", cluster.status()["message"])


class FewerCopiesTest(StorageTest):
    """The rows with two copies, and with one."""

    def test_two_copies_keep_everything_when_servers_die_one_after_the_other(self):
        cluster = self.cluster(servers(3, 2, 8, failover=STEADY), copies=2)
        for number in range(6):
            server = cluster.servers[number % 3]
            with cluster.fault(f"{server} killed"):
                cluster.kill_and_await(server)
        cluster.finish_and_check(self)
        self.assertEqual(cluster.told("restored"), [])

    def test_two_copies_roll_back_at_most_the_flush_interval_when_both_die(self):
        cluster = self.cluster(servers(2, 2, 8, flush=f"{FLUSH}s"), count=2, copies=2, reads=0)
        self.check_rolled_back(cluster, [self.kill_all(cluster)])

    def test_single_delayed_copy_rolls_back_at_most_the_flush_interval(self):
        cluster = self.cluster(servers(1, 1, 4, flush=f"{FLUSH}s"), count=1, copies=1, reads=0)
        self.check_rolled_back(cluster, [self.kill_all(cluster)])

    def test_single_logged_copy_keeps_everything_when_its_process_dies(self):
        cluster = self.cluster(servers(1, 1, 4, mode="Wal"), count=1, copies=1)
        self.kill_all(cluster)
        cluster.finish_and_check(self)


class BadDiskTest(StorageTest):
    """One disk of several is bad: the others have it all."""

    def test_full_disk(self):
        # Of a larger disk RocksDB's log reserves 35 MB, which this load takes minutes to use up.
        cluster = self.cluster(servers(4, 3, 8), count=4, disks={"parameter-server-1": 24})
        alarm = lambda: any("parameter-server-1" in text for text in cluster.told("alarm"))
        with cluster.fault("disk full"):
            cluster.disk("parameter-server-1").fill()
            cluster.await_that(alarm, "an alarm", 60)
            cluster.disk("parameter-server-1").free()
        cluster.finish_and_check(self)

    def test_bit_flips_on_the_disk_of_a_server_that_starts_again(self):
        cluster = self.cluster(servers(3, 3, 8))
        server = cluster.primary()
        with cluster.fault(f"bits of {server}'s disk flipped"), cluster.kept_down(server):
            cluster.kill_and_await(server)
            flip_bits(cluster.data(server), cluster.random)
        cluster.finish_and_check(self)

    def test_bit_flips_on_one_disk_when_all_copies_are_lost(self):
        cluster = self.cluster(servers(3, 3, 8, mode="Wal"))
        with cluster.fault("all killed, bits of one disk flipped"), cluster.kept_down(*cluster.servers):
            cluster.kill_and_await(*cluster.servers)
            flip_bits(cluster.data("parameter-server-1"), cluster.random)
        cluster.finish_and_check(self)


class DamagedLogTest(StorageTest):
    """A bit of the log of a store is flipped, with good writes behind it."""

    def test_a_server_begins_without_its_store_and_copies_from_the_others(self):
        cluster = self.cluster(servers(3, 3, 8, mode="WalSync"), rate=60)
        server = cluster.primary()
        with cluster.fault(f"log of {server} damaged"), cluster.kept_down(server):
            cluster.kill_and_await(server)
            damage_log(cluster.data(server))
        cluster.finish_and_check(self)
        self.assertTrue((cluster.data(server) / "shards.damaged" / "records").is_dir())
        self.assertTrue(any("is damaged at byte 0" in text for text in cluster.told("alarm")))
        self.assertEqual(cluster.told("restored"), [])

    def test_with_the_only_copy_the_job_ends_and_names_the_file(self):
        cluster = ReplicatedCluster(servers(1, 1, 4, mode="WalSync"), count=1, copies=1, hidden=SMALL)
        with cluster:
            server = cluster.servers[0]
            with cluster.kept_down(server):
                cluster.kill_and_await(server)
                damage_log(cluster.data(server))
            cluster.await_phase("Failed")
            self.assertRegex(cluster.status()["message"], r"shards/records/\d+\.log: is damaged at byte 0")


def damage_log(folder):
    """A bit of the first write."""
    for path in (folder / "shards" / "records").glob("*.log"):
        content = bytearray(path.read_bytes())
        content[20] ^= 1
        path.write_bytes(content)


def flip_bits(folder, random):
    """One bit in each of the larger files."""
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size > 10_000:
            content = bytearray(path.read_bytes())
            place = random.randrange(len(content))
            content[place] ^= 1 << random.randrange(8)
            path.write_bytes(content)


if __name__ == "__main__":
    netns.main()

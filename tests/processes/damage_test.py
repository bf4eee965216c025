#!/usr/bin/env python3
"""Every kind of damage to every kind of file of servers and controllers, at rest and while they run, with three copies
and with one: nothing wrong is served; it is noticed where it can be; it is healed where a copy lives.

Some cells of the table, by ADAMANT_FAULT_SEED; all of them, which takes an hour, where ADAMANT_ALL_DAMAGE=1.
"""

import itertools
import os
import random
import shutil
import sys
import unittest

import damage
import netns
from replicated import SEED, STEADY, ReplicatedCluster, servers

ALL = os.environ.get("ADAMANT_ALL_DAMAGE") == "1"

SMALL = (32,) * 12  # shards of 4 KB and one of 100 KB

OF_A_STORE = (*damage.NEEDLESS, *damage.NEEDED)

# (kind of file, damage, when)
OF_SERVERS = list(itertools.product((*OF_A_STORE, damage.SEGMENT), damage.OF_STORES, ("stopped", "killed", "running")))
OF_CONTROLLERS = list(itertools.product(OF_A_STORE, damage.OF_STORES, ("killed", "running")))


def sample(cells, number):
    """Most of them of files that are needed."""
    if ALL:
        return cells
    needless = [cell for cell in cells if cell[0] in damage.NEEDLESS]
    needed = [cell for cell in cells if cell not in needless]
    choose = random.Random(SEED).sample
    return choose(needless, number // 6) + choose(needed, number - number // 6)


class DamageTest(unittest.TestCase):
    def new_cluster(self, copies):
        return ReplicatedCluster(servers(copies, copies, 4, mode="WalSync", failover=STEADY), count=copies, copies=copies,
                                 rate=60, reads=0 if copies == 1 else 20, hidden=SMALL)

    def hurt(self, cluster, server, cell):
        """Damages the newest file of the kind, of segments all, of a server that has just ended, or is killed at once.
        It stays down until kept_down() ends."""
        kind, how, when = cell
        folder = cluster.data(server) / "shards"
        self.assertEqual(damage.unknown_files(folder), set())
        before = cluster.exits(server)
        if when == "stopped":
            cluster.note_deaths(server)
            cluster.terminate(server)
            cluster.await_that(lambda: cluster.exits(server) > before, f"the end of {server}")
        elif when == "killed":
            cluster.kill_and_await(server)
        found = damage.files(folder, kind)
        self.assertTrue(found, f"{server} has no {kind}")
        for path in found if kind == damage.SEGMENT else found[-1:]:
            damage.apply(how, path, cluster.random)
        if when == "running":
            cluster.kill_and_await(server)

    def with_tables(self, cluster, server):
        """A start writes what the log holds into a table."""
        if not damage.files(cluster.data(server) / "shards", "*.sst"):
            with cluster.fault(f"{server} killed, so that it writes a table"):
                cluster.kill_and_await(server)

    def assert_noticed(self, cluster, server, kind):
        alarms = cluster.told("alarm")
        if kind == damage.SEGMENT:
            self.assertTrue(any(f"{server}/shards/segments/" in text for text in alarms), alarms)
        else:
            self.assertTrue((cluster.data(server) / "shards.damaged").is_dir())
            self.assertTrue(any(f"{server}/shards/records" in text for text in alarms), alarms)


class ServerTest(DamageTest):
    def test_with_three_copies_all_is_healed_and_nothing_lost(self):
        with self.new_cluster(3) as cluster:
            for cell in sample(OF_SERVERS, 14):
                with self.subTest(cell=cell):
                    server = cluster.random.choice(cluster.servers)
                    self.with_tables(cluster, server)
                    shutil.rmtree(cluster.data(server) / "shards.damaged", ignore_errors=True)
                    with cluster.fault(f"{server}: {cell}"), cluster.kept_down(server):
                        self.hurt(cluster, server, cell)
                    if not damage.may_be_unseen(*cell):
                        self.assert_noticed(cluster, server, cell[0])
            cluster.finish_and_check(self)
            self.assertEqual(cluster.told("restored"), [])

    def test_with_one_copy_the_job_ends_and_names_the_file_or_has_it_all(self):
        for cell in sample(OF_SERVERS, 7):
            with self.subTest(cell=cell), self.new_cluster(1) as cluster:
                server = cluster.servers[0]
                self.with_tables(cluster, server)
                with cluster.kept_down(server):
                    self.hurt(cluster, server, cell)
                ended = self.await_end(cluster, f"the end of the job, or of {cell}")
                print(f"  {cell}: {cluster.status()['message'] if ended else 'went on'}", file=sys.stderr)
                if ended:
                    self.assertNotIn(cell[0], damage.NEEDLESS)
                    self.assertRegex(cluster.status()["message"], rf"{server}/shards/(records|segments)")
                else:
                    self.assertTrue(damage.may_be_unseen(*cell), "nobody has noticed")
                    self.check_what_is_left(cluster, cell)

    def await_end(self, cluster, what):
        """Whether the job has ended Failed; else it goes on."""
        failed = lambda: (cluster.status() or {}).get("phase") == "Failed"
        cluster.await_that(lambda: failed() or cluster.whole(), what)
        return failed()

    def check_what_is_left(self, cluster, cell):
        """Right values; all of them, unless the log's end was cut: then what is missing is counted."""
        cluster.await_progress(cell)
        report = cluster.finish()
        cut = cell[0] == "*.log"
        self.assertEqual([text for text in report.violations if not (cut and "was said to be on disk" in text)], [])
        if not cut:
            self.assertEqual((report.rolled_back, report.lost), (0, 0))


class ControllerTest(DamageTest):
    def test_its_state_is_in_two_stores_and_one_is_enough(self):
        with self.new_cluster(1) as cluster:
            for number, cell in enumerate(sample(OF_CONTROLLERS, 10)):
                kind, how, when = cell
                folder = cluster.run_dir / ("controller", "controller.copy")[number % 2]
                with self.subTest(cell=cell, folder=folder.name):
                    self.restart_controller(cluster)  # so that there is a table
                    shutil.rmtree(f"{folder}.damaged", ignore_errors=True)
                    self.assertEqual(damage.unknown_files(folder), set())
                    epoch = cluster.status()["epoch"]
                    if when == "killed":
                        cluster.kill_and_await("controller")
                    damage.apply(how, damage.files(folder, kind)[-1], cluster.random)
                    if when == "running":
                        cluster.kill_and_await("controller")
                    with cluster.fault(f"{folder.name}: {cell}"):
                        cluster.start_controller()
                    self.assertGreaterEqual(cluster.status()["epoch"], epoch)
                    if not damage.may_be_unseen(*cell):
                        alarms = cluster.told("alarm")
                        self.assertTrue(any(f"kept as {folder}.damaged" in text for text in alarms), alarms)
                        self.assertTrue((folder.parent / f"{folder.name}.damaged").is_dir())
            cluster.finish_and_check(self)

    def restart_controller(self, cluster):
        cluster.kill_and_await("controller")
        with cluster.fault("controller killed"):
            cluster.start_controller()


if __name__ == "__main__":
    netns.main()

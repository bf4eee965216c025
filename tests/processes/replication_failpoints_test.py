#!/usr/bin/env python3
"""At each failpoint a process ends, or stands still beyond its lease, under load: nothing acknowledged is lost."""

import collections
import sys
import time
import unittest

import netns
from cluster import CONTROLLER, known_failpoints
from replicated import GRACE, STEADY, ReplicatedCluster, servers

PAUSE = GRACE * 2.5  # seconds
PAUSES = f"pause({int(PAUSE * 1000)})*1"
FAILS = "error(data_loss)"  # the disk does; a server with such a disk ends

# Each line is for one process of a server, which goes through these failpoints, and ends at the last one: by itself, or
# it is killed a while after.

# It starts, is copied to, and becomes a member.
LEARNER = [
    {"server/start": "crash"},
    {"storage/write": "crash@8"},
    {"copy/learn": "crash"},
    {"copy/take_part": "crash@3"},
    {"storage/append": "crash"},
    {"copy/install": "crash@1"},
    {"server/mark": "crash"},
    {"copy/installed": "crash@1"},
    {"replica/adopt": "crash@3"},
    {"replica/accept": "crash@20"},
    {"replica/acknowledge": "crash@20"},
    {"replica/promise": PAUSES},
    {"replica/promise": "crash@5"},
]

# It is made the primary of some buckets.
PRIMARY = [
    {"replica/inherit": "crash"},
    {"replica/propose_promotion": "crash"},
    {"replica/reconcile": "crash"},
    {"replica/serve": "crash"},
    {"replica/append": "crash@20"},
    {"replica/send_prepare": "crash@30"},
    {"replica/count_acknowledgement": "crash@30"},
    {"replica/commit": f"{PAUSES}@30"},
    {"replica/commit": "crash@30"},
    {"replica/send_beacon": "crash@10"},
    {"replica/renew_lease": f"{PAUSES}@10"},
    {"replica/renew_lease": "crash@10"},
    {"server/apply": "crash@30"},
    {"server/answer": "crash@30"},
    {"server/read": "crash@5"},
]

# It writes shards back, and copies them for checkpoints.
STORAGE = [
    {"storage/append": f"{FAILS}@2"},
    {"storage/write": f"{FAILS}*1@8"},
    {"storage/sync": f"{FAILS}*1@2"},
    {"flush/begin": "crash@1"},
    {"storage/sync": "crash@1"},
    {"storage/commit": "crash@1"},
    {"storage/free": "crash@1"},
    {"flush/raise_watermark": f"{PAUSES}@1"},
    {"flush/raise_watermark": "crash@1"},
    {"flush/end": "crash@1"},
    {"snapshot/begin": "crash@1"},
    {"snapshot/mark": "error*1"},
    {"snapshot/mark": "crash@1"},
    {"snapshot/drop": "crash"},
    {"snapshot/answer": "crash"},
]

# It has the only copy, and logs everything.
SINGLE = [
    {"record/write": "error(resource_exhausted)*1", "record/answer": "crash"},
    {"record/read": "crash"},
    {"storage/read": "crash"},
    {"server/load": "crash"},
    {"log/write": "crash@20"},
    {"log/acknowledge": "crash@20"},
    {"log/write": "error(resource_exhausted)*1", "flush/erase_log": "crash@1"},
]

# Where a primary ends when one of its secondaries has died.
LOSING = ["replica/propose_drop", "copy/begin", "copy/send_part", "replica/propose_add"]

# Where one ends that is asked to stop.
LEAVING = "replica/release"

# Where controllers end, while a server comes and goes; or comes back with what it alone had.
DECIDING = ["file/rename", "controller/start_process", "controller/send", "controller/store", "controller/stored",
            "controller/change_record", "checkpoint/pause", "checkpoint/take", "checkpoint/erase_older"]
RESTORING = ["controller/restore"]

# Where one stands still for good, while it goes on telling its controller that it lives.
HANG = 10  # seconds that it may
HANGING = [{"server/apply": "pause(600000)@30"}, {"storage/sync": "pause(600000)@1"}]

# storage/move comes after some hundred megabytes of changes, and belongs with train/step to tests of training; the others to
# start_from_failpoints_test.
ELSEWHERE = {"storage/move", "train/step", "checkpoint/copy", "start/move", "start/store"}

# Those of workers, data servers and epochs: the simulation of the cluster goes through them (tests/simulation/steps.inc).
SIMULATED = {"epoch", "fetch", "ledger", "part", "push", "recovery", "work"}


@unittest.skipUnless(known_failpoints(), "needs a build with failpoints")
class FailpointsTest(unittest.TestCase):
    def cluster(self, settings, **options):
        return ReplicatedCluster(settings, checkpoint_interval="2s", **options)

    def follow(self, cluster, server, before, processes):
        """Goes with processes of this server, the first after `before` others, that are armed like this: to the start
        of the one after them."""
        seen = collections.Counter()
        for failpoints in processes:
            for point, action in failpoints.items():
                seen[point] += 1
                cluster.await_that(lambda: cluster.log(server).count(f'"{point}"') >= seen[point],
                                   f"{point} reached by {server}")
            if not action.startswith(("crash", FAILS)):
                time.sleep(PAUSE)
                cluster.kill_and_await(server)
        last = before + len(processes)
        cluster.await_that(lambda: len(cluster.starts(server)) > last, f"the start of {server}")
        cluster.dead[server] = cluster.starts(server)[last - 1]

    def end_at(self, cluster, server, processes):
        with cluster.fault(f"{server} ends {len(processes)} times"):
            before = len(cluster.starts(server))
            cluster.arm(server, *processes)
            cluster.kill(server)
            self.follow(cluster, server, before, processes)

    def end_controller_at(self, cluster, points, server):
        """The server is killed while each of the controllers runs, so that there is something to decide."""
        with cluster.fault(f"the controller ends {len(points)} times"):
            cluster.arm(CONTROLLER, *({point: "crash"} for point in points))
            cluster.kill_and_await(CONTROLLER)
            for point in points:
                before = cluster.exits(CONTROLLER)
                cluster.start_controller()
                cluster.kill(server)
                cluster.await_that(lambda: cluster.exits(CONTROLLER) > before, f"{point} reached by the controller")
                self.assertIn(f'"{point}"', cluster.log(CONTROLLER))
            cluster.start_controller()

    def test_every_failpoint_is_gone_through(self):
        points = set().union(*LEARNER, *PRIMARY, *STORAGE, *SINGLE, LOSING, [LEAVING], DECIDING, RESTORING)
        simulated = {point for point in known_failpoints() if point.split("/")[0] in SIMULATED}
        self.assertEqual(points | ELSEWHERE | simulated, known_failpoints())
        print(f"  {len(points)} failpoints", file=sys.stderr)

    def test_servers_end(self):
        cluster = self.enterContext(self.cluster(servers(4, 3, 8), count=4))
        for server, processes in zip(cluster.servers, (LEARNER, PRIMARY, STORAGE)):
            self.end_at(cluster, server, processes)
        cluster.finish_and_check(self)

    def test_primary_ends_as_it_loses_a_secondary(self):
        cluster = self.enterContext(self.cluster(servers(4, 3, 8, failover=STEADY), count=4))
        for point, server in zip(LOSING, cluster.servers):
            with cluster.fault(f"{server} ends at {point}"):
                before = len(cluster.starts(server))
                cluster.arm(server, {point: "crash"})
                cluster.kill_and_await(server)
                lost = cluster.await_that(lambda: self.secondary_of(cluster, server), f"{server} is a primary")
                cluster.kill_and_await(lost)
                self.follow(cluster, server, before, [{point: "crash"}])
        cluster.finish_and_check(self)

    def secondary_of(self, cluster, server):
        """A secondary of a bucket whose primary is this server, if there is one, as it is once all copies are there."""
        if not cluster.whole():
            return None
        found = [secondaries[0] for primary, secondaries in cluster.holders() if primary == server and secondaries]
        return next(iter(found), None)

    def test_server_ends_as_it_hands_over(self):
        cluster = self.enterContext(self.cluster(servers(3, 2, 8), count=3, copies=2))
        server = cluster.servers[0]
        with cluster.fault(f"{server} is asked to stop, and ends at {LEAVING}"):
            before = len(cluster.starts(server))
            cluster.arm(server, {LEAVING: "crash"})
            cluster.kill_and_await(server)
            cluster.await_that(lambda: self.secondary_of(cluster, server), f"{server} is a primary")
            cluster.terminate(server)
            self.follow(cluster, server, before, [{LEAVING: "crash"}])
        cluster.finish_and_check(self)

    def test_server_that_hangs_is_replaced(self):
        cluster = self.enterContext(self.cluster(servers(4, 3, 8), count=4, hang=f"{HANG}s"))
        server = cluster.servers[1]
        for failpoints in HANGING:
            with cluster.fault(f"{server} hangs at {', '.join(failpoints)}"):
                told = len(self.hangs(cluster, server))
                before = len(cluster.starts(server))
                cluster.arm(server, failpoints)
                cluster.kill(server)
                cluster.await_that(lambda: len(self.hangs(cluster, server)) > told, f"{server} is lost as it hangs")
                cluster.await_that(lambda: len(cluster.starts(server)) > before + 1, f"the start of {server}")
                cluster.dead[server] = cluster.starts(server)[before]
        cluster.finish_and_check(self)

    @staticmethod
    def hangs(cluster, server):
        return [text for text in cluster.told("lost") if text.startswith(server) and f"no progress for {HANG} s" in text]

    def test_controller_ends(self):
        cluster = self.enterContext(self.cluster(servers(4, 3, 8), count=4))
        self.end_controller_at(cluster, DECIDING, cluster.servers[2])
        cluster.finish_and_check(self)

    def test_server_with_the_only_copy_ends(self):
        cluster = self.cluster(servers(1, 1, 4, mode="WalSync"), count=1, copies=1, rate=60)
        server = cluster.servers[0]
        cluster.arm(server, *SINGLE)
        with cluster:
            self.follow(cluster, server, 0, SINGLE)
            cluster.await_whole(f"{server} has ended {len(SINGLE)} times")
            self.end_controller_at(cluster, RESTORING, server)
            cluster.finish_and_check(self)


if __name__ == "__main__":
    netns.main()

#!/usr/bin/env python3
"""A job of real processes starts, and what is done to one process happens to that one."""

import pathlib
import time
import unittest

import netns
from cluster import Cluster, manifest


# Megabytes. Segments take up to two of 64 more than is in use: services/common/storage/segments/segment_store.h.
DISK = 256


class ClusterTest(unittest.TestCase):
    def setUp(self):
        job = manifest("{count: 2, copies: 1, buckets: 4}", workers=1)
        self.cluster = self.enterContext(Cluster(job, parameter_servers=2, disks={"parameter-server-1": DISK}))
        self.members = [*self.cluster.servers, *self.cluster.workers, "data-server-0"]

    def await_all_joined(self, times=1):
        """Waits until the log of events says of every member that it joined."""
        def joined():
            told = [event["member"] for event in self.cluster.events() if event["event"] == "joined"]
            return all(told.count(member) >= times for member in self.members)

        self.cluster.await_that(joined, "all members joined")

    def test_killed_server_is_started_again(self):
        self.await_all_joined()
        before = self.cluster.pid("parameter-server-1")
        other = self.cluster.pid("parameter-server-0")
        self.cluster.kill("parameter-server-1")
        self.cluster.await_that(lambda: self.cluster.pid("parameter-server-1") not in (None, before), "another process")
        self.assertEqual(self.cluster.exits("parameter-server-1"), 1)
        self.assertEqual(self.cluster.pid("parameter-server-0"), other)
        [lost] = [event for event in self.cluster.events() if event["event"] == "lost"]
        self.assertIn("was killed by signal 9", lost["text"])

    def test_server_stays_down_as_long_as_asked(self):
        self.await_all_joined()
        with self.cluster.kept_down("parameter-server-0"):
            self.cluster.kill("parameter-server-0")
            self.cluster.await_that(lambda: self.cluster.exits("parameter-server-0") == 1, "its end")
            time.sleep(0.5)
            self.assertIsNone(self.cluster.pid("parameter-server-0"))
        self.cluster.await_that(lambda: self.cluster.pid("parameter-server-0"), "its start")

    def test_members_outlive_their_controller_and_meet_the_next(self):
        self.await_all_joined()
        pids = {member: self.cluster.pid(member) for member in self.members}
        self.cluster.kill("controller")
        self.cluster.await_that(lambda: self.cluster.exits("controller") == 1, "its end")
        self.cluster.start_controller()
        running = lambda: (self.cluster.status() or {}).get("phase") == "Running"
        self.cluster.await_that(running, "phase Running")
        self.assertEqual({member: self.cluster.pid(member) for member in self.members}, pids)

    def test_suspended_job_leaves_no_process(self):
        self.await_all_joined()
        self.assertEqual(self.cluster.stop_job(), 0)
        self.cluster.await_that(lambda: not any(map(self.cluster.pid, self.members)), "the end of all members")

    def test_paused_process_does_nothing_until_resumed(self):
        self.await_all_joined()
        with self.cluster.paused("data-server-0"):
            status = pathlib.Path(f"/proc/{self.cluster.pid('data-server-0')}/status")
            self.cluster.await_that(lambda: "T (stopped)" in status.read_text(), "its stop", 5)
        self.cluster.await_that(lambda: "T (stopped)" not in status.read_text(), "its going on", 5)

    def test_full_disk_is_full_for_its_member_alone(self):
        self.await_all_joined()
        self.cluster.disk("parameter-server-1").fill()
        data = self.cluster.run_dir / "data"
        self.assertRaises(OSError, (data / "parameter-server-1" / "more").write_bytes, bytes(1 << 20))
        (data / "parameter-server-0" / "more").write_bytes(bytes(1 << 20))
        self.cluster.disk("parameter-server-1").free()
        (data / "parameter-server-1" / "more").write_bytes(bytes(1 << 20))

    def test_unknown_failpoints_are_refused(self):
        self.assertRaisesRegex(ValueError, "no/such", self.cluster.arm, "parameter-server-0", {"no/such": "crash"})


if __name__ == "__main__":
    netns.main()

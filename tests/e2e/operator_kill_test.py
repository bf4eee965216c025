#!/usr/bin/env python3
"""The leading operator is killed at its writes to the API, right before one and right after it took effect: a standby
takes over, jobs end as if nothing had happened, and one that trains all the while is not disturbed.

The operators reach the API through a proxy of ours, which sees each write and kills: what ships knows nothing of it.
ADAMANT_KILL_POINTS=all: at every kind of write, in about ten minutes, rather than at some.
"""

import os
import threading
import time
import unittest

from api_proxy import PORT, ApiProxy
from control_plane import ADDRESS
from operator_rig import DEPLOYMENT, OPERATORS, TestCase, measured, require

# What a leader writes in a job's life, the same for every job.
KINDS = ("POST configmaps", "PUT configmaps", "POST shardmaps", "PUT shardmaps", "POST persistentvolumeclaims",
         "POST pods", "POST poddisruptionbudgets", "PATCH trainingjobs/status", "PATCH configmaps", "PATCH leases",
         "POST events")
SOME = (("POST configmaps", True), ("PUT configmaps", False), ("POST pods", True), ("PUT shardmaps", True))
POINTS = [(kind, after) for kind in KINDS for after in (False, True)] \
    if os.environ.get("ADAMANT_KILL_POINTS") == "all" else SOME
AT_A_TIME = 4  # jobs
EPOCHS = 5  # enough to learn the digits while five jobs share the machine
WITNESSED = 300_000  # examples of an epoch of the job that trains all the while: more than a change of leaders takes


def trains(status):
    return status.get("phase") == "Running" and status.get("epoch", 0) > 1


def done(status):
    """Examples that have been counted, in all epochs."""
    return (status["epoch"] - 1) * WITNESSED + int(status["examples"])


def pace(begin, end):
    """Examples a second between two changes of the status."""
    return (done(end.object["status"]) - done(begin.object["status"])) / (end.time - begin.time)


class Killer:
    """Kills the leader, or the standby, at its next write of a kind."""

    def __init__(self, system):
        self._system = system
        self._lock = threading.Lock()
        self._point = None
        self.seen = set()
        self.victims = []
        self.killed = threading.Event()

    def arm(self, kind, after, leads=True):
        with self._lock:
            self.killed.clear()
            self._point = (kind, after, leads)

    def on_write(self, kind, pod, send):
        self.seen.add(kind)
        if not self._is_now(kind, pod):
            send()
            return True
        if self._after:
            send()
        self._system.cluster.kill_container(OPERATORS, pod)
        self.victims.append(pod)
        self.killed.set()
        self._system.cluster.kubectl("delete", "pod", pod, "-n", OPERATORS, "--force", "--grace-period=0")
        return False

    def _is_now(self, kind, pod):
        with self._lock:
            if self._point is None or self._point[0] != kind or self._point[2] != (pod == self._system.leader()):
                return False
            self._after = self._point[1]
            self._point = None
            return True


class KillTest(TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.killer = Killer(cls.system)
        cls.enterClassContext(ApiProxy(cls.system.cluster, ADDRESS, cls.killer.on_write))
        cls.system.cluster.kubectl("set", "env", "-n", OPERATORS, DEPLOYMENT, f"KUBERNETES_SERVICE_HOST={ADDRESS}",
                                   f"KUBERNETES_SERVICE_PORT={PORT}")
        cls.system.await_operators()
        begin = time.monotonic()
        while cls.system.leader() not in cls.system.operators():
            if time.monotonic() > begin + 30:
                raise AssertionError("none of the new operators leads")
            time.sleep(0.1)

    def test_no_death_at_a_write_changes_what_becomes_of_jobs(self):
        witness = self.start("witness", epochs=1000,  # it does not end by itself
                             train=f"{{digits: {{seed: 1, examples: {WITNESSED}}}}}")
        first = witness.await_status(trains, "it trains")
        then = self.await_more(witness, first)
        for number in range(0, len(POINTS), AT_A_TIME):
            self.kill_at_each(POINTS[number:number + AT_A_TIME])
        last = self.await_more(witness, then, time.monotonic())
        print(f"measured: pace of training meanwhile over that of before: {pace(then, last) / pace(first, then):.2f}",
              flush=True)
        self.assert_not_disturbed(witness, then.time)
        witness.delete()

    @staticmethod
    def await_more(witness, before, since=0.0):
        """A new leader tells of no examples until it has heard of some."""
        return witness.await_status(lambda status: trains(status) and done(status) > done(before.object["status"]),
                                    "it goes on", max(since, before.time))

    def kill_at_each(self, points):
        jobs = []
        for kind, after in points:
            with self.subTest(kind=kind, after=after):
                name = f"{kind.replace(' ', '-').replace('/', '-')}-{'after' if after else 'before'}".lower()
                jobs.append((self.kill_at(kind, after, name), kind, after))
        for job, kind, after in jobs:
            with self.subTest(kind=kind, after=after):
                self.assert_succeeds(job, EPOCHS)

    def kill_at(self, kind, after, name):
        self.killer.arm(kind, after)
        begin = time.monotonic()
        job = self.start(name, epochs=EPOCHS)
        killed = self.await_kill(kind)
        change = self.system.await_leader_but(self.killer.victims, begin)
        measured(f"killed {'after' if after else 'before'} {kind} → another leads", change.time - killed)
        return job

    def await_kill(self, kind):
        self.assertTrue(self.killer.killed.wait(60), f"{kind} does not happen; seen: {sorted(self.killer.seen)}")
        return time.monotonic()

    def test_nor_does_the_death_of_the_standby_as_it_takes_over(self):
        jobs = []
        for after in (False, True):
            self.killer.arm("POST pods", after)
            jobs.append(self.start(f"standby-{'after' if after else 'before'}", epochs=EPOCHS))
            self.await_kill("POST pods")
            self.killer.arm("PATCH leases", after, leads=False)
            killed = self.await_kill("PATCH leases")
            change = self.system.await_leader_but(self.killer.victims, killed)
            measured(f"standby killed {'after' if after else 'before'} it took the lease → another leads",
                     change.time - killed)
            self.system.await_operators()
        for job in jobs:
            self.assert_succeeds(job, EPOCHS)

    def assert_not_disturbed(self, witness, begin):
        self.assertEqual(witness.created(begin), [])
        self.assertEqual(witness.ended(begin), [])
        self.assertEqual(witness.status()["restarts"], 0, self.system.diagnosis(witness.name))
        self.assertEqual(witness.surplus(), [])


if __name__ == "__main__":
    require()
    unittest.main()

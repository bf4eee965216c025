#!/usr/bin/env python3
"""Pods and operators die while a job trains on a real cluster: it goes on, and counts what happened once."""

import time
import unittest

from operator_rig import DEPLOYMENT, OPERATORS, TestCase, has_ended, is_running, measured, require, slot_of

EPOCHS = 12


class FaultTest(TestCase):

    def lose_pods(self, slot, **values):
        """Of one job a pod is deleted, and later the process of its replacement is killed."""
        job = self.start(f"lost-{slot}", epochs=EPOCHS, **values)
        job.await_epoch(2)
        self.delete_pod(job, slot)
        self.kill_process(job, slot)
        self.assert_succeeds(job, EPOCHS, restarts=1)
        self.assert_event(job, f"Disrupted: {slot} (is gone|has ended): its pod was deleted")
        self.assert_event(job, f"Restarting: {slot} .*does not count against the restart budget")
        self.assert_event(job, f"Lost: {slot} was killed by signal 9")
        created = [name for name in job.created() if name.startswith(f"{job.name}-{slot}-")]
        self.assertEqual(created, [f"{job.name}-{slot}-{generation}" for generation in (1, 2, 3)])

    def delete_pod(self, job, slot):
        begin = time.monotonic()
        self.system.namespace.kubectl("delete", "pod", job.pod_of(slot), "--force", "--grace-period=0")
        gone = job.await_pod(lambda change: change.kind == "DELETED", f"{slot} is gone", begin)
        new = self.await_replacement(job, slot, gone.time)
        measured(f"{slot} deleted → replacement created", new.time - gone.time)

    def kill_process(self, job, slot):
        victim = job.pod_of(slot)
        job.await_pod(lambda change: change.name == victim and is_running(change.object), f"{victim} runs")
        self.assertEqual(job.status()["restarts"], 0)
        begin = time.monotonic()
        self.system.cluster.kill_container("training", victim)
        ended = job.await_pod(lambda change: slot_of(change.object) == slot and has_ended(change.object),
                              f"{slot} has ended", begin)
        new = self.await_replacement(job, slot, begin)
        measured(f"{slot} killed → replacement created", new.time - begin)
        measured(f"{slot} exit visible → replacement created", new.time - ended.time)

    @staticmethod
    def await_replacement(job, slot, since):
        return job.await_pod(lambda change: change.kind == "ADDED" and slot_of(change.object) == slot,
                             f"{slot} is replaced", since)

    def test_a_worker_is_replaced(self):
        self.lose_pods("worker-1")

    def test_the_data_server_is_replaced(self):
        self.lose_pods("data-server-0")

    def test_a_parameter_server_comes_back_with_its_shards(self):
        self.lose_pods("parameter-server-0", copies=1)

    def start_training(self, name):
        job = self.start(name, epochs=EPOCHS)
        job.await_epoch(2)
        self.assertEqual(len(job.created()), 5)
        return job

    def assert_undisturbed(self, job, since):
        """Success with the pods that there were, and no other but the one that writes the model."""
        self.assertEqual(job.ended(since), [], "while it trained")
        self.assert_succeeds(job, EPOCHS)
        self.assertEqual([name for name in job.created(since) if "-export-" not in name], [])

    def test_the_standby_takes_over_from_a_killed_leader_and_disturbs_nobody(self):
        job = self.start_training("leaderless")
        leader, begin = self.system.kill_leader()
        taken = self.system.await_leader_but([leader], begin)
        told = job.await_status(lambda status: True, "the new leader writes the status", taken.time)
        measured("leader killed → standby leads", taken.time - begin)
        measured("leader killed → status is written again", told.time - begin)
        self.assert_undisturbed(job, begin)

    def test_a_rolling_update_of_the_operators_disturbs_nobody(self):
        job = self.start_training("updated")
        begin, old = time.monotonic(), self.system.operators()
        self.system.cluster.kubectl("rollout", "restart", "-n", OPERATORS, DEPLOYMENT)
        self.system.await_operators()
        measured("rolling update of the operators → a new one leads",
                 self.system.await_leader_but(old, begin).time - begin)
        self.assert_undisturbed(job, begin)


if __name__ == "__main__":
    require()
    unittest.main()

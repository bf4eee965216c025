#!/usr/bin/env python3
"""The API server, etcd or many pods at once fail while a job trains on a real cluster: training goes on.

ADAMANT_OUTAGE_SECONDS: how long each fault lasts (6), ADAMANT_OUTAGE_EXAMPLES: in an epoch (40000), ADAMANT_OUTAGE_BEFORE:
the epochs before it, whose pace counts (6), ADAMANT_OUTAGE_OF: whose connections are cut, "operators" or everybody's.
docs/bench/operator.md has figures of longer outages.
"""

import os
import time
import unittest

from operator_rig import EXAMPLES, Job, TestCase, is_running, measured, require, slot_of, tiny_job

OUTAGE = float(os.environ.get("ADAMANT_OUTAGE_SECONDS", "6"))
OF_AN_EPOCH = int(os.environ.get("ADAMANT_OUTAGE_EXAMPLES", EXAMPLES))
WARM = 2  # epochs
EPOCHS_BEFORE = WARM + int(os.environ.get("ADAMANT_OUTAGE_BEFORE", "6"))
ONLY_OPERATORS = os.environ.get("ADAMANT_OUTAGE_OF") == "operators"
API_START = 12  # seconds for a stopped API server to serve again, and for the operator to tell what was going on
ETCD_PERIOD = 20  # seconds
MANY = {"workers": 25, "parameter_servers": 4, "data_servers": 1}
# The node has no 25 times what a worker requests by default.
NO_REQUEST = '  pods: {worker: {spec: {containers: [{name: adamant, resources: {requests: {cpu: "0"}}}]}}}\n'


def pace(begin, end):
    """Epochs a second between two changes of a job's status."""
    return (end.object["status"]["epoch"] - begin.object["status"]["epoch"]) / (end.time - begin.time)


class OutageTest(TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        trial = cls.start_job("trial", WARM + 6)
        fastest = pace(trial.await_epoch(WARM), trial.await_epoch(WARM + 6))
        trial.await_phase("Succeeded")
        cls.epochs_a_second = 1.5 * fastest

    @classmethod
    def start_job(cls, name, epochs):
        train = f"{{digits: {{seed: 1, examples: {OF_AN_EPOCH}}}}}"
        return Job(cls.system, tiny_job(name, epochs=epochs, train=train)).apply()

    def start_training(self, name, recovery=2):
        """A job that trains for longer than EPOCHS_BEFORE epochs, the outage and the recovery, in seconds; it has come as
        far as the outage."""
        self.epochs = EPOCHS_BEFORE + 4 + round(self.epochs_a_second * (OUTAGE + recovery))
        self.job = self.start_job(name, self.epochs)
        self.warm = self.job.await_epoch(WARM)
        self.before = self.job.await_epoch(EPOCHS_BEFORE)
        self.begin = time.monotonic()

    def assert_went_on(self):
        """Epochs ended during the fault, which is over, at nearly the pace of before; no pod was disturbed."""
        first = self.before.object["status"]["epoch"]
        after = self.job.await_status(lambda status: status["epoch"] >= first + 4, "it went on", time.monotonic())
        print(f"measured: {self.job.name}: pace over that of before: "
              f"{pace(self.before, after) / pace(self.warm, self.before):.2f}, "
              f"{after.object['status']['epoch'] - first} epochs", flush=True)
        self.assertLess(after.object["status"]["epoch"], self.epochs, "it has trained for too short a time")
        self.assertEqual(self.job.ended(self.begin), [], "while it trained")
        self.job.await_phase("Succeeded", seconds=120 + 6 * OUTAGE)
        self.assert_succeeds(self.job, self.epochs, examples=OF_AN_EPOCH)
        self.assertEqual([name for name in self.job.created(self.begin) if "-export-" not in name], [])

    def test_training_goes_on_without_the_api(self):
        self.start_training("alone", API_START)
        self.system.cluster.stop_api()
        time.sleep(max(OUTAGE, 5 / pace(self.warm, self.before)))  # five epochs, on a slow machine, too
        self.system.cluster.start_api()
        back = time.monotonic()
        told = self.job.await_status(lambda status: True, "the status is written again", back)
        measured("API is back → status is written again", told.time - back)
        self.assertGreaterEqual(told.object["status"]["epoch"], self.before.object["status"]["epoch"] + 3)
        self.assert_went_on()

    def test_training_goes_on_while_etcd_restarts(self):
        self.start_training("forgetful")
        self.system.cluster.restart_etcd()
        while time.monotonic() < self.begin + OUTAGE - ETCD_PERIOD:
            time.sleep(ETCD_PERIOD)
            self.system.cluster.restart_etcd()
        self.assert_went_on()

    def test_training_goes_on_while_all_watches_are_cut_every_second(self):
        self.start_training("cut")
        addresses = self.system.operator_addresses() if ONLY_OPERATORS else ()
        while time.monotonic() < self.begin + OUTAGE:
            self.system.cluster.reset_connections(addresses)
            time.sleep(1)
        self.assert_went_on()

    def test_all_pods_of_a_job_deleted_at_once_are_made_anew(self):
        # So many workers teach so small a net nothing: going back is another test's.
        manifest = tiny_job("many", epochs=6, on_divergence="{action: Continue}", copies=1, **MANY)
        job = Job(self.system, manifest + NO_REQUEST).apply()
        job.await_epoch(2)
        names, slots = set(job.pods()), set(map(slot_of, job.pods().values()))
        self.assertEqual(len(slots), sum(MANY.values()))
        begin = time.monotonic()
        self.system.namespace.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
        gone = [job.await_pod(lambda change, name=name: change.kind == "DELETED" and change.name == name, "is gone",
                              begin).time for name in names]
        made = [job.await_pod(lambda change, slot=slot: change.kind == "ADDED" and slot_of(change.object) == slot,
                              f"{slot} is made anew", begin) for slot in slots]
        measured(f"{len(slots)} pods deleted → all made anew", max(change.time for change in made) - min(gone))
        for change in made:
            job.await_pod(lambda seen, name=change.name: seen.name == name and is_running(seen.object), "it runs")
        job.await_phase("Succeeded")
        self.assert_counted_once(job, 6, EXAMPLES)
        self.assertEqual(job.status()["restarts"], 0)
        self.assertEqual(job.surplus(), [])


if __name__ == "__main__":
    require()
    unittest.main()

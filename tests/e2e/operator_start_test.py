#!/usr/bin/env python3
"""Jobs on a real cluster that cannot start, as others hold what they lack."""

import json
import time
import unittest

from cluster import await_that
from operator_rig import Job, TestCase, has_ended, is_running, measured, require, slot_of, tiny_job

SMALL = {"train": "{digits: {seed: 1, examples: 3000}}", "workers": 1, "parameter_servers": 1, "epochs": 1}
NODE = "node1"
DATA, SERVER = "data-server-0", "parameter-server-0"
# Each needs one of two things that the node has one of. The servers' pods wait for a label of the node, too.
PODS = """  pods:
    dataServer:
      spec: {{containers: [{{name: adamant, resources: {{limits: {{example.org/{data}: 1}}}}}}]}}
    parameterServer:
      spec:
        nodeSelector: {{open: "yes"}}
        containers: [{{name: adamant, resources: {{limits: {{example.org/{server}: 1}}}}}}]
"""


class StartTest(TestCase):

    def offer(self, *things):
        amounts = {f"example.org/{thing}": "1" for thing in things}
        self.system.cluster.kubectl("patch", "node", NODE, "--subresource=status", "-p",
                                    json.dumps({"status": {"capacity": amounts, "allocatable": amounts}}))

    def apply(self, name, *, data, server, policy):
        manifest = tiny_job(name, **SMALL) + f"    {policy}\n" + PODS.format(data=data, server=server)
        return Job(self.system, manifest).apply()

    @staticmethod
    def await_holds(job):
        """Returns when its data server runs, with what its parameter server's pod of another job lacks."""
        job.await_pod(lambda change: slot_of(change.object) == DATA and is_running(change.object), "it runs")

    def test_of_two_jobs_that_do_not_fit_beside_each_other_both_succeed(self):
        self.offer("red", "blue")
        policy = "startDeadline: 20s"
        jobs = [self.apply("red", data="red", server="blue", policy=policy),
                self.apply("blue", data="blue", server="red", policy=policy)]
        for job in jobs:
            self.await_holds(job)
        self.system.cluster.kubectl("label", "node", NODE, "open=yes")
        begin = time.monotonic()
        for job in jobs:
            ended = job.await_phase("Succeeded").time
            measured(f"{job.name}: both half-started → Succeeded (startDeadline: 20s)", ended - begin)
            self.assert_counted_once(job, 1, 3000)
            self.assertEqual(job.status()["restarts"], 0)
            self.assertEqual(job.surplus(), [], job.events())
        told = [event for job in jobs for event in job.events() if event.startswith("Released: ")]
        self.assertTrue(told)
        for event in told:
            self.assertIn(f"startDeadline, 20 s, the job could not start: {SERVER} did not join", event)

    def test_a_job_that_cannot_start_fails_where_its_policy_is_fail(self):
        job = self.apply("hopeless", data="none", server="none", policy="startDeadline: 2s\n    onStartDeadline: Fail")
        failed = job.await_status(lambda status: status.get("phase") == "Failed", "it has failed").object["status"]
        self.assertRegex(failed["message"], "within spec.runPolicy.startDeadline, 2 s, the job could not start: "
                                            f"{DATA} and [12] others? did not join")
        await_that(lambda: all(has_ended(pod) for pod in job.pods().values()), "no pod is left")


if __name__ == "__main__":
    require()
    unittest.main()

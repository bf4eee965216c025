#!/usr/bin/env python3
"""The life of a job on a real cluster: it succeeds, is suspended and resumed, deleted, made anew, or refused."""

import json
import time
import unittest

import adamant
from operator_rig import EXAMPLES, Job, TestCase, await_that, has_ended, measured, require, tiny_job

BAD_SHAPES = adamant.LAYERS.replace("[5, 5]", "[29, 5]")


def conditions_of(status):
    return {condition["type"]: condition for condition in status.get("conditions", [])}


class LifeTest(TestCase):

    def test_a_job_succeeds_and_leaves_its_model_on_a_volume(self):
        warmed_up = tiny_job("tiny", epochs=3).replace("rate: 0.005", "rate: 0.005, schedule: {warmUp: {epochs: 0.2}}")
        job = Job(self.system, warmed_up).apply()
        running = job.await_phase("Running")
        ended = self.assert_succeeds(job, 3)
        measured("apply → Running", running.time - job.applied)
        measured(f"apply → Succeeded (3 epochs of {EXAMPLES} examples)", ended - job.applied)
        slots = {name.removeprefix("tiny-") for name in job.created() if "-export-" not in name}
        self.assertEqual(slots, {"data-server-0-1", "parameter-server-0-1", "parameter-server-1-1", "worker-0-1",
                                 "worker-1-1"})
        conditions = conditions_of(job.status())
        self.assertEqual({name: conditions[name]["status"] for name in ("Valid", "Running", "Succeeded", "Failed")},
                         {"Valid": "True", "Running": "False", "Succeeded": "True", "Failed": "False"})
        await_that(lambda: all(has_ended(pod) for pod in job.pods().values()), "no pod is left running")

    def test_a_suspended_job_gives_up_its_pods_and_goes_on_where_it_was(self):
        job = Job(self.system, tiny_job("paused", epochs=6, suspend=True)).apply()
        job.await_phase("Suspended")
        self.assertEqual(job.created(), [])
        resumed = time.monotonic()
        job.patch(suspend=False)
        job.await_epoch(3)
        paused = time.monotonic()
        job.patch(suspend=True)
        job.await_phase("Suspended", paused)
        await_that(lambda: all(has_ended(pod) for pod in job.pods().values()), "no pod is left running")
        measured("suspend → no pod runs", time.monotonic() - paused)
        self.assertEqual(len(job.created(resumed)), 5)
        resumed = time.monotonic()
        job.patch(suspend=False)
        measured("resume → Running", job.await_phase("Running", resumed).time - resumed)
        self.assert_succeeds(job, 6)
        epochs = [change.object["status"]["epoch"] for change in self.system.jobs.changes(resumed)]
        self.assertGreaterEqual(min(epochs), 2)

    def scale(self, job, workers):
        begin = time.monotonic()
        self.system.namespace.kubectl("scale", f"tj/{job.name}", f"--replicas={workers}")
        return begin

    def await_workers(self, job, workers, since):
        """Returns when as many are ready, and no other has a pod that runs."""

        def reached(status):
            worker = status["roles"]["worker"]
            return (worker["desired"], worker["ready"], worker["pods"]) == (workers, workers, workers)

        return job.await_status(lambda status: "roles" in status and reached(status), f"{workers} workers", since)

    def test_workers_come_and_go_while_a_job_runs(self):
        examples = 20000  # too few for batches of 900 workers
        job = self.start("elastic", epochs=50, train=f"{{digits: {{seed: 1, examples: {examples}}}}}",
                         optimiser="{kind: Momentum, rate: 0.005, momentum: 0.5}")  # 0.9 can diverge with 4 workers
        job.await_epoch(2)
        begin = self.scale(job, 4)
        measured("2 → 4 workers, ready", self.await_workers(job, 4, begin).time - begin)
        begin = self.scale(job, 900)
        invalid = job.await_status(lambda status: conditions_of(status)["Valid"]["status"] == "False", "it is refused",
                                   begin)
        self.assertIn("spec.distribution.workers: 900 workers", conditions_of(invalid.object["status"])["Valid"]["message"])
        self.assertEqual(invalid.object["status"]["roles"]["worker"]["desired"], 4)
        begin = self.scale(job, 1)
        measured("4 → 1 workers, the others gone", self.await_workers(job, 1, begin).time - begin)
        self.assertIn(job.status()["phase"], ("Running", "Evaluating"))
        self.assert_succeeds(job, 50, examples=examples)
        self.assertEqual([name for name in job.created() if "-worker-" in name],
                         [f"elastic-worker-{slot}-1" for slot in range(4)])
        self.assert_event(job, "Scaled: the job has 1 worker now, 4 before")

    def test_a_job_that_diverges_goes_back_and_on_with_half_the_rate(self):
        job = self.start("steep", epochs=3, optimiser="{kind: Sgd, rate: 8}",
                         validation="{digits: {seed: 2, examples: 1000}}",
                         on_divergence="{action: Recover, times: 20}")
        back = job.await_status(lambda status: status.get("attempt", 1) > 1, "it goes back").time
        running = job.await_phase("Running", back).time
        measured("going back → Running", running - back)
        job.await_phase("Succeeded")
        status = job.status()
        self.assertLess(status["rateFactor"], 1)
        diverged = conditions_of(status)["Diverged"]
        self.assertEqual((diverged["status"], diverged["reason"]), ("True", "WentBack"))
        self.assertIn("training diverged in epoch", diverged["message"])
        last = {row["epoch"]: row for row in job.rows()}  # of later attempts those that count
        self.assertEqual(sorted(last), ["1", "2", "3"])
        for row in last.values():
            self.assertEqual(int(row["examples_counted"]) + int(row["examples_left"]), EXAMPLES, row)
        self.assertEqual(int(job.rows()[-1]["attempt"]), status["attempt"])
        self.assert_event(job, "the job goes back to")
        self.assertEqual(status["restarts"], 0)
        self.assertEqual(job.surplus(), [], job.events())

    def test_a_job_whose_loss_is_no_number_fails_and_says_so(self):
        job = self.start("hopeless", epochs=5, optimiser="{kind: Momentum, rate: 50}", on_divergence="{action: Fail}")
        self.system.cluster.kubectl("wait", "--namespace", "training", "--for=condition=Failed", "--timeout=60s",
                                    "trainingjob/hopeless")
        job.await_phase("Failed")
        status = job.status()
        self.assertIn("diverged", status["message"])
        self.assertIn("completionTime", status)
        self.assertNotIn("NaN", json.dumps(status))
        self.assertEqual(job.surplus(), [], job.events())

    def test_a_failure_rule_ends_a_job_at_an_exit_code_and_is_named(self):
        rule = "{cause: Exit, exitCodes: [137], roles: [Worker], action: FailJob}"
        other = rule.replace("137", "3")
        job = Job(self.system, tiny_job("ruled", epochs=1000) + f"    failureRules: [{other}, {rule}]\n").apply()
        job.await_epoch(2)
        self.system.cluster.kill_container("training", job.pod_of("worker-0"))
        failed = job.await_status(lambda status: status.get("phase") == "Failed", "it has failed").object["status"]
        self.assertEqual(failed["message"],
                         "worker-0 was killed by signal 9: spec.runPolicy.failureRules[1] fails the job")
        self.assertEqual(failed["restarts"], 0)

    def test_all_of_a_deleted_job_is_gone(self):
        self.system.await_garbage_collector()
        job = self.start("deleted", epochs=1000)
        job.await_epoch(2)
        begin = time.monotonic()
        job.delete("--wait=false")
        await_that(lambda: not job.belongings(), "nothing is left", 40)
        measured("deleted while Running → all gone", time.monotonic() - begin)

    def test_another_job_may_have_the_name_of_a_deleted_one(self):
        self.system.await_garbage_collector()
        old = self.start("phoenix", epochs=1000)
        old.await_epoch(2)
        old.delete("--wait=false")
        new = self.start("phoenix", epochs=3)
        self.assertNotEqual(old.uid, new.uid)
        running = new.await_phase("Running")
        measured("deleted and applied anew → Running", running.time - new.applied)
        self.assert_succeeds(new, 3)
        self.assertEqual(old.pods(), {})

    def test_what_only_the_validator_can_see_is_told_with_its_field_and_nothing_is_made(self):
        job = self.start("shapeless", layers=BAD_SHAPES)
        status = job.await_status(lambda status: "conditions" in status, "it is refused").object["status"]
        (valid,) = [condition for condition in status["conditions"] if condition["type"] == "Valid"]
        self.assertEqual((valid["status"], valid["reason"], valid["observedGeneration"]), ("False", "InvalidSpec", 1))
        self.assertRegex(valid["message"], r"spec\.model\.network\.layers\[0\]\.kernel: ")
        self.assertEqual(status["phase"], "Failed")
        before = self.system.operators_cpu()
        time.sleep(3)
        self.assertLess(self.system.operators_cpu() - before, 0.6, "the operators are busy with nothing")
        self.assertEqual(job.belongings(), ["shapeless"])


if __name__ == "__main__":
    require()
    unittest.main()

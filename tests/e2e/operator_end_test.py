#!/usr/bin/env python3
"""How jobs end on a real cluster, and what is left of them: by their policies, by a deadline, by deletion."""

import json
import os
import pathlib
import tempfile
import time
import unittest

from operator_rig import Job, TestCase, await_that, has_ended, measured, require, slot_of, tiny_job

SMALL = {"train": "{digits: {seed: 1, examples: 3000}}", "workers": 1, "parameter_servers": 1}
UNPLACEABLE = "  pods: {worker: {spec: {nodeSelector: {kind: none}}}}\n"
DEADLINE = "the job ran longer than spec.runPolicy.activeDeadline, 1 s"
QUEUED = "  pods: {scheduling: {kueueQueue: research}}\n"
HELD = {"metadata": {"finalizers": ["kueue.x-k8s.io/managed"]}}  # as Kueue's webhook writes it
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"
GRACE = 40  # seconds: Kubernetes gives a pod 30 of them
CLAIMS = "/api/v1/namespaces/training/persistentvolumeclaims?labelSelector=adamant.dev/job={}"
SERVER, DATA, WORKER = "parameter-server-0", "data-server-0", "worker-0"


def wall_time(change):
    """When a change was told, in seconds since 1970."""
    return time.time() - (time.monotonic() - change.time)


def completion_time(status):
    text, _, fraction = status["completionTime"].rstrip("Z").partition(".")
    return time.mktime(time.strptime(text + "UTC", "%Y-%m-%dT%H:%M:%S%Z")) - time.timezone + float(f"0.{fraction}")


class EndTest(TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.system.await_garbage_collector()

    def apply(self, name, *, policy="", pods="", **values):
        """A small job of one process of each role; `policy`: lines of runPolicy, `pods`: of the spec."""
        manifest = tiny_job(name, **{**SMALL, "epochs": 1, **values})
        return Job(self.system, manifest + "".join(f"    {line}\n" for line in policy.splitlines()) + pods).apply()

    def await_deleted(self, job):
        """The change that told of its end; nothing is left of it."""
        deleted = self.system.jobs.first(
            lambda change: change.kind == "DELETED" and change.object["metadata"]["uid"] == job.uid,
            f"{job.name} is deleted", seconds=90)
        self.await_nothing_left(job)
        return deleted

    def await_nothing_left(self, job):
        await_that(lambda: not job.belongings(), f"nothing is left of {job.name}", GRACE)

    @staticmethod
    def await_joined(job, *roles):
        """Returns when all processes of these roles ("worker", "dataServer", "parameterServer") have joined."""
        job.await_status(lambda status: all(
            status.get("roles", {}).get(role, {}).get("ready", 0) > 0 for role in roles), f"{roles} have joined")

    def fail_by_deadline(self, job):
        """Lets it run into its deadline, which is moved to the past."""
        begin = time.monotonic()
        job.patch(activeDeadline="1s")
        failed = job.await_status(lambda status: status.get("phase") == "Failed", "it has failed", begin)
        self.assertEqual(failed.object["status"]["message"], DEADLINE)

    def claims(self, job):
        listed = self.system.api.get(CLAIMS.format(job.name))["items"]
        return {claim["metadata"]["name"].removeprefix(f"{job.name}-") for claim in listed
                if "deletionTimestamp" not in claim["metadata"]}

    def assert_left(self, job, ended, live=(), claims=()):
        """Pods by whether they have ended, and claims, once nothing changes any more."""
        def left():
            pods = {slot_of(pod).partition("export")[1] or slot_of(pod): has_ended(pod) for pod in job.pods().values()}
            return pods, self.claims(job)

        expected = {**dict.fromkeys(ended, True), **dict.fromkeys(live, False)}, set(claims)
        try:
            await_that(lambda: left() == expected, f"of {job.name} there is left what should be")
        except TimeoutError:
            self.assertEqual(left(), expected, self.system.diagnosis(job.name))

    def test_a_job_is_deleted_when_its_time_after_the_end_is_over_and_not_before(self):
        kept = self.apply("kept")
        later = self.apply("later", policy="ttlAfterFinished: 4s")
        at_once = self.apply("at-once", policy="ttlAfterFinished: 0s")
        failing = self.apply("failing", policy="ttlAfterFinished: 0s\nactiveDeadline: 1s", pods=UNPLACEABLE)
        self.assertEqual(self.await_deleted(failing).object["status"]["message"], DEADLINE)
        self.assertEqual(self.await_deleted(at_once).object["status"]["phase"], "Succeeded")
        deleted = self.await_deleted(later)
        lived = wall_time(deleted) - completion_time(deleted.object["status"])
        measured("completionTime → deleted (ttlAfterFinished: 4s)", lived)
        self.assertGreaterEqual(lived, 4)
        self.assertEqual(deleted.object["status"]["phase"], "Succeeded")
        kept.await_phase("Succeeded")
        self.assertEqual(kept.object()["metadata"]["uid"], kept.uid)
        kept.patch(ttlAfterFinished="0s")
        self.await_deleted(kept)

    def test_what_is_left_of_a_job_is_what_its_policy_says(self):
        everything = self.apply("done-all", policy="cleanUpPolicy: {pods: All, claims: Delete}")
        default = self.apply("done-default")
        nothing = self.apply("done-none", policy="cleanUpPolicy: {pods: None}")
        policies = {"All": "cleanUpPolicy: {pods: All, claims: Delete}", "Running": "",
                    "None": "cleanUpPolicy: {pods: None}"}
        failed = {pods: self.apply(f"failed-{pods.lower()}", policy=policy, pods=UNPLACEABLE)
                  for pods, policy in policies.items()}
        for job in failed.values():
            self.await_joined(job, "dataServer", "parameterServer")
            job.await_pod(lambda change: slot_of(change.object) == WORKER, "its worker's pod is there")
            self.fail_by_deadline(job)
        for job in (everything, default, nothing):
            job.await_phase("Succeeded")
        all_roles = (SERVER, DATA, WORKER, "export")
        self.assert_left(everything, ended=(), claims=["output"])
        self.assert_left(default, ended=all_roles, claims=["output", f"{SERVER}-1"])
        self.assert_left(nothing, ended=all_roles, claims=["output", f"{SERVER}-1"])
        self.assert_left(failed["All"], ended=(), claims=["output"])
        self.assert_left(failed["Running"], ended=(SERVER, DATA), claims=["output", f"{SERVER}-1"])
        self.assert_left(failed["None"], ended=(SERVER, DATA), live=(WORKER,), claims=["output", f"{SERVER}-1"])
        for job in (everything, default, nothing, *failed.values()):
            job.delete("--wait=false")
        for job in (everything, default, nothing, *failed.values()):
            self.await_nothing_left(job)

    def serve_nothing(self):
        """The URL of a file that a server opens and never sends."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        os.mkfifo(folder / "endless")
        return f"{self.system.cluster.serve_files(folder)}/endless"

    def test_all_of_a_job_that_is_deleted_in_any_phase_is_gone(self):
        file = f"{{url: '{self.serve_nothing()}', sha256: '{'0' * 64}'}}"
        pending = self.apply("pending", pods=UNPLACEABLE)
        loading = self.apply("loading", train=f"{{download: {{images: {file}, labels: {file}}}}}")
        running = self.apply("running", epochs=100_000)
        namespace = self.system.namespace
        namespace.claim("nowhere")
        exporting = self.apply("exporting", pods="  output: {claim: nowhere}\n")
        homeless = self.apply("homeless", pods="  output: {claim: missing}\n")
        self.await_joined(exporting, "dataServer")
        namespace.kubectl("delete", "persistentvolumeclaim", "nowhere")  # so that its export has nowhere to go
        suspended = self.apply("suspended", epochs=100_000)
        suspended.await_epoch(2)
        suspended.patch(suspend=True)
        self.await_joined(loading, "dataServer")
        pending.await_pod(lambda change: slot_of(change.object) == WORKER, "its worker's pod is there")
        exporting.await_phase("Evaluating")  # where it stays, as its export's pod cannot start
        running.await_epoch(2)
        suspended.await_phase("Suspended")
        told = ("cannot mount claim missing: there is no claim missing in namespace training; the job begins once "
                "there is")
        homeless.await_status(lambda status: status.get("message") == told, "it waits for its claim")
        begin = time.monotonic()
        jobs = {homeless: ("Starting",), pending: ("Starting",), loading: ("Starting",),
                running: ("Running", "Evaluating"),
                exporting: ("Evaluating",), suspended: ("Suspended",)}
        for job, phases in jobs.items():
            self.assertIn(job.status()["phase"], phases, job.name)
        for job in jobs:
            job.delete("--wait=false")
        for job in jobs:
            self.await_nothing_left(job)
            measured(f"deleted while {job.name} → all gone", time.monotonic() - begin)

    def test_kueue_is_told_that_the_group_of_a_deleted_job_ends(self):
        job = self.apply("grouped", pods=QUEUED, epochs=100_000)
        self.await_joined(job, "worker", "dataServer", "parameterServer")
        pods, kubectl = job.pods(), self.system.namespace.kubectl
        for name in pods:
            kubectl("patch", "pod", name, "--type=merge", "-p", json.dumps(HELD))
        job.delete()
        told = job.await_pod(lambda change: change.object["metadata"].get("annotations", {}).get(RETRIABLE) == "false",
                             "Kueue is told").object
        self.assertIn("deletionTimestamp", told["metadata"])
        await_that(lambda: all(pod["status"]["phase"] == "Failed" for pod in job.pods().values()),
                   "none counts as done", GRACE)
        self.assertEqual(job.pods().keys(), pods.keys(), "Kueue lets them go, not the operator")
        for name in pods:
            kubectl("patch", "pod", name, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
        self.await_nothing_left(job)


if __name__ == "__main__":
    require()
    unittest.main()

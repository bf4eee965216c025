#!/usr/bin/env python3
"""Objects beside pods on a real cluster: the PodGroup of the coscheduling plugin, and what jobs leave behind."""

import contextlib
import signal
import unittest

from api import ApiError
from cluster import await_that
from operator_rig import Job, TestCase, require, tiny_job

GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/training/podgroups"
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
SWEEP = 200  # seconds: it looks a minute after it begins to lead, and again a minute after it has found something
# As much of the plugin's as the operator has to do with.
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.x-k8s.io"},
    "spec": {
        "group": "scheduling.x-k8s.io", "scope": "Namespaced",
        "names": {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"},
        "versions": [{"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "minMember": {"type": "integer", "format": "int32", "minimum": 1},
                "scheduleTimeoutSeconds": {"type": "integer", "format": "int32"}}}}}}}]}}


class ObjectsTest(TestCase):

    def group(self):
        """None where there is none."""
        with contextlib.suppress(ApiError):
            return self.system.api.get(f"{GROUPS}/together")
        return None

    def await_group(self, matches, what):
        """The PodGroup that matches."""
        return await_that(lambda: (group := self.group()) and matches(group) and group, what, 30)

    def test_a_pod_group_is_made_and_kept_as_it_should_be(self):
        kubectl = self.system.namespace.kubectl
        kubectl("apply", "-f", "-", input=DEFINITION)
        kubectl("wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io")
        grouped = tiny_job("grouped", epochs=100_000) + "  pods: {scheduling: {podGroup: together}}\n"
        job = Job(self.system, grouped).apply()
        job.await_phase("Running")
        made = self.await_group(lambda group: True, "it is made")
        self.assertEqual(made["spec"], {"minMember": 5})
        self.assertEqual([owner["uid"] for owner in made["metadata"]["ownerReferences"]], [job.uid])
        self.assertEqual({pod["metadata"]["labels"][GROUP_LABEL] for pod in job.pods().values()}, {"together"})
        kubectl("delete", "podgroup", "together")
        anew = self.await_group(lambda group: group["metadata"]["uid"] != made["metadata"]["uid"], "it is made anew")
        self.assertEqual(anew["spec"], made["spec"])
        self.assertEqual(anew["metadata"]["ownerReferences"], made["metadata"]["ownerReferences"])
        kubectl("patch", "podgroup", "together", "--type=merge", "-p", '{"spec": {"minMember": 2}}')
        self.await_group(lambda group: group["spec"]["minMember"] == 5, "it is put right")
        self.assertIn(job.status()["phase"], ("Running", "Evaluating"))
        self.system.await_garbage_collector()
        job.delete()
        await_that(lambda: self.group() is None, "it goes with its job", 90)

    # --- What jobs leave behind

    def make(self, kind, name, job, uid, owned=True):
        """An object with the labels that the operator's have."""
        labels = {"app.kubernetes.io/managed-by": "adamant-operator", "adamant.dev/job": job,
                  "adamant.dev/job-uid": uid}
        owner = {"apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob", "name": job, "uid": uid}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
        self.system.namespace.kubectl("create", "-f", "-", input={
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "labels": labels, **({"ownerReferences": [owner]} if owned else {})},
            **({"spec": claim} if kind == "PersistentVolumeClaim" else {})})

    def stays(self, kind, name):
        text = self.system.namespace.kubectl("get", kind, name, "--ignore-not-found", "-o",
                                             "jsonpath={.metadata.name} {.metadata.deletionTimestamp}")
        return text.split() == [name]

    def test_what_a_job_that_is_gone_has_left_is_deleted_and_nothing_else(self):
        there = Job(self.system, tiny_job("there", suspend=True)).apply()
        daemons = self.system.cluster.daemons
        daemons.signal("kube-controller-manager", signal.SIGSTOP)  # it collects garbage, too
        try:
            for kind in ("ConfigMap", "PersistentVolumeClaim"):
                self.make(kind, "left", "gone", "6a1f3a0e-0000-4000-8000-000000000001")
                self.make(kind, "of-an-earlier-one", "there", "6a1f3a0e-0000-4000-8000-000000000002")
                self.make(kind, "of-one-that-exists", "there", there.uid)
                self.make(kind, "kept", "gone", "6a1f3a0e-0000-4000-8000-000000000001", owned=False)
            for kind in ("ConfigMap", "PersistentVolumeClaim"):
                for name in ("left", "of-an-earlier-one"):
                    await_that(lambda: not self.stays(kind, name), f"{kind} {name} is deleted", SWEEP)
                for name in ("of-one-that-exists", "kept"):
                    self.assertTrue(self.stays(kind, name), f"{kind} {name}")
            log = self.system.cluster.kubectl("logs", "-n", "adamant-system", self.system.leader())
            self.assertIn("deletes what a job has left behind that does not exist any more", log)
        finally:
            daemons.signal("kube-controller-manager", signal.SIGCONT)


if __name__ == "__main__":
    require()
    unittest.main()

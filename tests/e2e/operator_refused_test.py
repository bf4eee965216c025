#!/usr/bin/env python3
"""What a real API server refuses the operator reaches the user: its words are in the job's status, in an event and in
what `kubectl adamant explain` says, each within seconds."""

import contextlib
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import api_proxy
from cluster import await_that
from operator_rig import JOBS, TestCase, measured, require, tiny_job
from pods import Namespace, pod

WITHIN = 10  # seconds from `kubectl apply`
HANGS_WITHIN = 30  # seconds, of which each request without an answer takes some
NAME = "refused"
SMALL = {"train": "{digits: {seed: 1, examples: 3000}}", "workers": 1, "epochs": 100_000}
TAKEN = "exists and is of no TrainingJob"
RULED = "adamant.dev/ruled"  # label of namespaces


def quota(**hard):
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
            "spec": {"hard": {name.replace("_", "."): value for name, value in hard.items()}}}


def limits(**limit):
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "narrow"}, "spec": {"limits": [limit]}}


def claim(name):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}


def budget(name):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "another"}}}}


def worker(spec):
    """The end of a manifest."""
    return f"  pods: {{worker: {{spec: {spec}}}}}\n"


def container(fields):
    return worker(f"{{containers: [{{name: adamant, {fields}}}]}}")


class Case:
    """A job in a namespace with something that is in its way, and what the user should read."""

    def __init__(self, name, words, there=None, manifest="", ruled=None):
        self.name = name
        self.words = words
        self.there = there
        self.manifest = manifest
        self.ruled = ruled  # value of the namespace's label that a rule of the cluster goes by


CASES = (
    Case("compute-quota", "failed quota: small: must specify limits.cpu", quota(limits_cpu="4")),
    Case("pods-quota", r"exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1", quota(pods="1")),
    Case("claims-quota", "exceeded quota: small, requested: persistentvolumeclaims=1",
         quota(persistentvolumeclaims="0")),
    Case("storage-quota", "exceeded quota: small, requested: requests.storage=", quota(requests_storage="1Mi")),
    Case("configmaps-quota", "exceeded quota: small, requested: count/configmaps=1",
         quota(**{"count/configmaps": "0"})),
    Case("largest-pod", "maximum memory usage per Pod is 16Mi", limits(type="Pod", max={"memory": "16Mi"})),
    Case("largest-claim", "maximum storage usage per PersistentVolumeClaim is 1Mi",
         limits(type="PersistentVolumeClaim", max={"storage": "1Mi"})),
    Case("no-priority", "no PriorityClass with name urgent was found", manifest=worker("{priorityClassName: urgent}")),
    Case("no-account", 'serviceaccount "nobody" not found', manifest=worker("{serviceAccountName: nobody}")),
    Case("pod-security", 'violates PodSecurity "restricted:latest": host namespaces',
         manifest=worker("{hostNetwork: true}")),
    Case("taken-pod", f"Pod .*/{NAME}-worker-0-1 {TAKEN}", pod(f"{NAME}-worker-0-1")),
    Case("taken-claim", f"PersistentVolumeClaim .*/{NAME}-parameter-server-0-1 {TAKEN}",
         claim(f"{NAME}-parameter-server-0-1")),
    Case("taken-output", f"PersistentVolumeClaim .*/{NAME}-output {TAKEN}", claim(f"{NAME}-output")),
    Case("taken-state", f"ConfigMap .*/{NAME}-state {TAKEN}",
         {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{NAME}-state"}}),
    Case("taken-map", f"ShardMap .*/{NAME}-0 {TAKEN}",
         {"apiVersion": "adamant.dev/v1alpha1", "kind": "ShardMap", "metadata": {"name": f"{NAME}-0"},
          "job": "another", "jobUid": "none", "term": 1, "first": 0, "count": 0, "buckets": []}),
    Case("taken-budget", f"PodDisruptionBudget .*/{NAME}-parameter-server {TAKEN}", budget(f"{NAME}-parameter-server")),
    Case("no-output", "there is no claim nowhere", manifest="  output: {claim: nowhere}\n"),
    Case("policy", "denied request: no workers here", ruled="policy"),
    Case("webhook", 'failed calling webhook "absent.adamant.dev"', ruled="webhook"),
    Case("misspelt", r'spec.pods.worker: .*unknown field "spec.containers\[0\].resorces"',
         manifest=container("resorces: {limits: {cpu: 1}}")),
    Case("not-valid", "spec.pods.worker: .*must be less than or equal to memory limit",
         manifest=container("resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}")),
)

PODS_CREATED = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}


def ruled(value):
    return {"matchLabels": {RULED: value}}


POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "no-workers"},
    "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [PODS_CREATED]}, "validations": [
        {"expression": "object.metadata.labels['adamant.dev/role'] != 'worker'", "message": "no workers here",
         "reason": "Forbidden"}]}}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "no-workers"},
    "spec": {"policyName": "no-workers", "validationActions": ["Deny"],
             "matchResources": {"namespaceSelector": ruled("policy")}}}


def webhook(name, port, value):
    """On the pods of namespaces that this rules; the API server waits for it as long as it may."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"name": f"{name}.adamant.dev", "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
                      "rules": [PODS_CREATED], "failurePolicy": "Fail", "timeoutSeconds": 30, "sideEffects": "None",
                      "admissionReviewVersions": ["v1"], "namespaceSelector": ruled(value)}]}


WEBHOOK = webhook("absent", 1, "webhook")
HANGING = webhook("hanging", api_proxy.PORT, "hanging")


class RefusedTest(TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for rule in (POLICY, BINDING, WEBHOOK):
            cls.system.cluster.kubectl("apply", "-f", "-", input=rule)

    def prepare(self, case):
        namespace = Namespace(self.system.cluster, case.name)
        if case.there is not None:
            namespace.kubectl("apply", "-f", "-", input=case.there)
        if case.ruled is not None:
            self.system.cluster.kubectl("label", "namespace", case.name, f"{RULED}={case.ruled}")
        return namespace

    def status(self, case):
        status = self.system.api.get(f"{JOBS.format(case.name)}/{NAME}").get("status", {})
        failures = [found["message"] for found in status.get("conditions", [])
                    if found["type"] in ("WriteFailure", "Failed") and found["status"] == "True"]
        return "\n".join([status.get("message", ""), *failures])

    def events(self, case):
        found = self.system.api.get(f"/api/v1/namespaces/{case.name}/events?fieldSelector=involvedObject.name={NAME}")
        return "\n".join(event["message"] for event in found["items"] if event["type"] == "Warning")

    def explanation(self, case):
        command, environment = self.system.plugin("explain", NAME, namespace=case.name)
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60).stdout

    def await_words(self, case, begin, words=None, within=WITHIN):
        """Seconds from `begin` until each of the three has them; None: the case's."""
        words = words or case.words
        for read in (self.status, self.events, self.explanation):
            try:
                await_that(lambda read=read: re.search(words, read(case)), read.__name__,
                           within - (time.monotonic() - begin))
            except TimeoutError:
                self.assertRegex(read(case), words, f"{read.__name__}\n{self.told(case)}")
        return time.monotonic() - begin

    def told(self, case):
        return "\n".join(f"--- {read.__name__}\n{read(case)}" for read in (self.status, self.events, self.explanation))

    def test_each_refusal_is_in_status_event_and_explanation(self):
        longest = 0.0
        for case in CASES:
            with self.subTest(case.name):
                namespace = self.prepare(case)
                begin = time.monotonic()
                namespace.kubectl("apply", "-f", "-", input=tiny_job(NAME, **SMALL) + case.manifest)
                longest = max(longest, self.await_words(case, begin))
            self.system.cluster.kubectl("delete", "namespace", case.name, "--wait=false")
        measured(f"apply → status, event and explanation tell of a refusal, longest of {len(CASES)}", longest)

    def test_an_output_that_cannot_be_written_to_is_told_before_anything_is_trained(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "taken").write_text("no folder")
            self.system.fill_claim("models", folder)
        case = Case("training", r"cannot write to claim models: its pod refused-export-check exited with code 1: .*"
                                r"cannot create /data/taken/run: ", manifest="  output: {claim: models, path: taken/run}\n")
        namespace = self.system.namespace
        begin = time.monotonic()
        namespace.kubectl("apply", "-f", "-", input=tiny_job(NAME, **SMALL) + case.manifest)
        measured("apply → an output claim that cannot be written to is told", self.await_words(case, begin))
        pods = namespace.kubectl("get", "pods", "-l", f"adamant.dev/job={NAME}", "-o", "name").split()
        self.assertEqual(pods, ["pod/refused-export-check"])
        (self.system.volume("models") / "taken").unlink()
        await_that(lambda: self.job_status().get("phase") == "Running", "it runs", 60)
        conditions = {each["type"]: each for each in self.job_status()["conditions"]}
        self.assertRegex(conditions["OutputWritable"]["message"], "a pod has written to claim models")
        self.assertNotIn("WriteFailure", conditions)
        namespace.kubectl("delete", "trainingjob", NAME)

    @contextlib.contextmanager
    def hanging_webhook(self):
        """It takes connections, and answers nothing."""
        kubectl = self.system.cluster.kubectl
        with api_proxy.listen(self.system.cluster, "127.0.0.1"):
            kubectl("apply", "-f", "-", input=HANGING)
            try:
                yield
            finally:
                kubectl("delete", "validatingwebhookconfiguration", "hanging")

    def await_running(self, case, what):
        """Returns when the job runs with all its pods and nothing is told of failures."""
        def runs():
            status = self.system.api.get(f"{JOBS.format(case.name)}/{NAME}").get("status", {})
            told = [each["type"] for each in status.get("conditions", []) if each["type"] == "WriteFailure"]
            return status.get("phase") == "Running" and status["roles"]["worker"]["ready"] == 1 and not told
        try:
            await_that(runs, what, 90)
        except TimeoutError as error:
            self.fail(f"{error}\n{self.told(case)}")

    def test_a_webhook_that_hangs_is_told(self):
        case = Case("hanging", r"cannot check spec\.pods\.\w+ in a dry run: no answer from the API server since .*: an "
                               r"admission webhook may hang", ruled="hanging")
        namespace = self.prepare(case)
        with self.hanging_webhook():
            begin = time.monotonic()
            namespace.kubectl("apply", "-f", "-", input=tiny_job(NAME, **SMALL))
            told = self.await_words(case, begin, within=HANGS_WITHIN)
            measured("apply → a webhook that hangs on pods is told", told)
            self.assertIn("kubectl get validatingwebhookconfigurations", self.explanation(case))
        self.await_running(case, "the job runs once the webhook is gone")
        with self.hanging_webhook():
            begin = time.monotonic()
            namespace.kubectl("delete", "pod", "-l", "adamant.dev/role=worker", "--wait=false")
            words = "cannot create pod worker-0: no answer from the API server since"
            measured("a pod is deleted → a webhook that hangs on its successor is told",
                     self.await_words(case, begin, words, HANGS_WITHIN + 30))  # a worker ends in up to 30 s
        self.await_running(case, "the worker is back")
        self.system.cluster.kubectl("delete", "namespace", case.name, "--wait=false")

    def job_status(self):
        return self.system.api.get(f"{JOBS.format('training')}/{NAME}").get("status", {})


if __name__ == "__main__":
    require()
    unittest.main()

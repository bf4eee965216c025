#!/usr/bin/env python3
"""`kubectl apply -k deploy` at a real API server: it installs without a warning, grants what the operator needs and no
more, and what is removed leaves the jobs alone."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import cluster as harness

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "deploy"
NAMESPACE = "adamant-system"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:adamant-operator"
APPLY = ("apply", "--server-side", "--warnings-as-errors")

# group/resource[/subresource]: verbs, in any namespace, that the operator has; it has no others of these resources.
GRANTED = {
    "adamant.dev/trainingjobs": "get list watch delete",
    "adamant.dev/trainingjobs/status": "patch",
    "adamant.dev/trainingjobs/finalizers": "update",
    "adamant.dev/shardmaps": "get list watch create update delete",
    "/pods": "get list watch create patch delete",
    "/pods/status": "patch",
    "/pods/log": "",
    "/pods/exec": "",
    "/persistentvolumeclaims": "get list watch create delete",
    "policy/poddisruptionbudgets": "get list watch create patch delete",
    "scheduling.x-k8s.io/podgroups": "get list create patch delete",
    "/configmaps": "get list create update patch delete",
    "/nodes": "get list watch",
    "/events": "create patch",
    "storage.k8s.io/storageclasses": "get",
    "/persistentvolumes": "get",
    "/secrets": "",
    "/serviceaccounts": "",
    "coordination.k8s.io/leases": "",
    "rbac.authorization.k8s.io/clusterroles": "",
}
VERBS = "get list watch create update patch delete deletecollection".split()
JOB = {"apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "kept"},
       "spec": {"model": {"reference": "adam-mnist"},
                "data": {name: {"digits": {"seed": seed, "examples": 100}}
                         for seed, name in enumerate(("train", "validation"), start=1)}}}


class InstallTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(harness.Cluster.control_plane())
        cls.cluster.kubectl(*APPLY, "-k", DEPLOY)

    def get(self, *arguments):
        return json.loads(self.cluster.kubectl("get", "-n", NAMESPACE, "-o", "json", *arguments))

    def allowed(self, user, verb, resource, namespace="default", groups=(), name=""):
        group, resource, *subresource = resource.split("/")
        review = self.cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": list(groups), "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": "".join(subresource),
                "namespace": namespace, "name": name}}})
        return review["status"]["allowed"]

    def test_applying_again_changes_nothing(self):
        before = self.get("deployment/adamant-operator")["metadata"]["generation"]
        self.cluster.kubectl(*APPLY, "-k", DEPLOY)
        self.assertEqual(self.get("deployment/adamant-operator")["metadata"]["generation"], before)

    def test_two_pods_pass_the_restricted_level_and_others_do_not(self):
        deployment = self.get("deployment/adamant-operator")
        self.cluster.kubectl("wait", "-n", NAMESPACE, "--for=jsonpath={.status.replicas}=2", "--timeout=30s",
                             "deployment/adamant-operator")
        pods = self.get("pods", "-l", "app.kubernetes.io/name=adamant-operator")["items"]
        self.assertEqual(len(pods), 2)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "as-root", "namespace": NAMESPACE},
               "spec": deployment["spec"]["template"]["spec"]}
        pod["spec"]["securityContext"] = {}
        with self.assertRaisesRegex(OSError, "violates PodSecurity \"restricted"):
            self.cluster.kubectl("create", "--dry-run=server", "-f", "-", input=pod)

    def test_the_operator_may_do_what_it_needs_and_nothing_else(self):
        for resource, verbs in GRANTED.items():
            has = [verb for verb in VERBS if self.allowed(OPERATOR, verb, resource)]
            self.assertEqual(sorted(has), sorted(verbs.split()), resource)

    def test_the_operator_may_use_its_lease_and_no_other(self):
        lease = "coordination.k8s.io/leases"
        for verb in ("get", "patch"):
            self.assertTrue(self.allowed(OPERATOR, verb, lease, NAMESPACE, name="adamant-operator"), verb)
            self.assertFalse(self.allowed(OPERATOR, verb, lease, NAMESPACE, name="another"), verb)
            self.assertFalse(self.allowed(OPERATOR, verb, lease, "kube-system", name="adamant-operator"), verb)
        self.assertTrue(self.allowed(OPERATOR, "create", lease, NAMESPACE))

    def test_who_may_edit_a_namespace_trains_there_and_who_may_view_looks_on(self):
        for role in ("edit", "view"):
            self.cluster.kubectl("create", "rolebinding", role, "-n", "default", f"--clusterrole={role}",
                                 f"--user={role}or")
        jobs, maps = "adamant.dev/trainingjobs", "adamant.dev/shardmaps"
        harness.await_that(lambda: self.allowed("editor", "create", jobs) and self.allowed("viewor", "list", maps),
                           "the roles are added to the cluster's own")
        self.assertTrue(self.allowed("editor", "patch", "adamant.dev/trainingjobs/scale"))
        self.assertTrue(self.allowed("editor", "get", maps))
        self.assertFalse(self.allowed("editor", "patch", maps))
        self.assertFalse(self.allowed("editor", "create", jobs, "kube-system"))
        self.assertFalse(self.allowed("viewor", "create", jobs))

    def test_who_is_logged_in_may_see_whether_an_operator_leads(self):
        lease, anybody = "coordination.k8s.io/leases", ["system:authenticated"]
        self.assertTrue(self.allowed("ann", "get", lease, NAMESPACE, anybody, "adamant-operator"))
        self.assertFalse(self.allowed("ann", "patch", lease, NAMESPACE, anybody, "adamant-operator"))
        self.assertFalse(self.allowed("ann", "get", lease, NAMESPACE, anybody, "another"))
        self.assertFalse(self.allowed("", "get", lease, NAMESPACE, ["system:unauthenticated"], "adamant-operator"))

    def test_removing_the_operator_keeps_the_jobs(self):
        self.cluster.kubectl("apply", "-n", "default", "-f", "-", input=JOB)
        self.cluster.kubectl("delete", "--wait=false", "-k", DEPLOY / "operator")
        self.cluster.kubectl("get", "-n", "default", "trainingjob/kept")
        self.cluster.kubectl("wait", "--for=delete", "--timeout=60s", f"namespace/{NAMESPACE}")
        self.cluster.kubectl(*APPLY, "-k", DEPLOY)
        self.cluster.kubectl("get", "-n", NAMESPACE, "deployment/adamant-operator")


class ImageTest(unittest.TestCase):

    @staticmethod
    def images(deploy):
        """Where the operator's image comes from, and the one that it gives to the jobs' pods."""
        kubectl = harness.build_binaries.find(["kubectl"])["kubectl"]
        text = subprocess.run([kubectl, "kustomize", deploy], capture_output=True, text=True, check=True).stdout
        given = re.search(r"name: ADAMANT_IMAGE\n +value: (.*)", text)[1]
        return re.findall(r"^ +image: (.*)", text, re.MULTILINE), given

    def test_it_is_the_one_of_this_version(self):
        version = re.search(r"^project\(adamant VERSION ([0-9.]+)", (PROJECT / "CMakeLists.txt").read_text(),
                            re.MULTILINE)[1]
        self.assertEqual(self.images(DEPLOY), ([f"localhost/adamant:{version}"], f"localhost/adamant:{version}"))

    def test_it_is_named_in_one_place_for_the_operator_and_the_pods_of_jobs(self):
        with tempfile.TemporaryDirectory() as folder:
            deploy = pathlib.Path(shutil.copytree(DEPLOY, pathlib.Path(folder) / "deploy"))
            file = deploy / "kustomization.yaml"
            text = file.read_text()
            file.write_text(text.replace("newName: localhost/adamant", "newName: registry.example:5000/ml/adamant"))
            images, given = self.images(deploy)
            self.assertEqual(images, [given])
            self.assertTrue(given.startswith("registry.example:5000/ml/adamant:"), given)


if __name__ == "__main__":
    harness.require("control-plane")
    unittest.main()

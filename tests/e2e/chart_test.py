#!/usr/bin/env python3
"""The chart at a real API server, by helm 3 and helm 4: each value makes objects that the API takes, wrong ones are refused
by their path, a release comes, changes, goes back and goes, and nothing that users have goes with it."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import build_binaries
import chart_values
import cluster as harness
from chart_values import CHART, PROJECT

RELEASE = "adamant"
NAMESPACE = "adamant-system"
DEPLOYMENT = "deployment/adamant-operator"
CRDS = ("crd/trainingjobs.adamant.dev", "crd/shardmaps.adamant.dev")
HELMS = ("helm3", "helm4")
KUBERNETES = "1.34.0"  # where helm asks no cluster
MONITORING = "example/prometheus-operator-crd/monitoring.coreos.com_{}.yaml"
CLUSTER_KINDS = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
JOB = {"apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "kept"},
       "spec": {"model": {"reference": "adam-mnist"},
                "data": {name: {"digits": {"seed": seed, "examples": 100}}
                         for seed, name in enumerate(("train", "validation"), start=1)}}}


class Helm:
    """One of the two, with folders of its own. Where it fails OSError says why."""

    def __init__(self, name, kubeconfig="/nowhere"):
        self.name = name
        self.program = build_binaries.path(name)
        self._folder = tempfile.TemporaryDirectory()
        # Taking fields that kubectl has set needs a word with helm 4, which applies on the server's side.
        self.force = () if name == "helm3" else ("--force-conflicts",)
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig),
                             **{f"HELM_{kind}_HOME": self._folder.name for kind in ("CACHE", "CONFIG", "DATA")}}

    def close(self):
        self._folder.cleanup()

    def run(self, *arguments, values=None):
        from_input = () if values is None else ("--values", "-")
        done = subprocess.run([self.program, *map(str, arguments), "--namespace", NAMESPACE, *from_input],
                              input=None if values is None else json.dumps(values), env=self._environment,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr.strip())
        return done.stdout

    def template(self, values=None, *arguments):
        """What it makes of the values, without a cluster."""
        return self.run("template", RELEASE, CHART, "--kube-version", KUBERNETES, *arguments, values=values or {})


def kinds(output):
    return [line.removeprefix("kind: ") for line in output.splitlines() if line.startswith("kind: ")]


class ValuesTest(unittest.TestCase):
    """Needs no cluster."""

    @classmethod
    def setUpClass(cls):
        cls.helms = [Helm(name) for name in HELMS]
        for helm in cls.helms:
            cls.addClassCleanup(helm.close)

    def test_each_value_is_changed_in_one_of_the_sets(self):
        schema = chart_values.schema()
        changed = set().union(*(chart_values.paths_of(values, schema) for values in chart_values.SETS.values()))
        self.assertEqual(chart_values.all_paths(schema) - changed, set())
        self.assertGreaterEqual(len(chart_values.SETS), 12)

    def test_wrong_values_are_refused_by_their_path(self):
        self.assertGreaterEqual(len(chart_values.WRONG), 30)
        for helm in self.helms:
            for path, value in chart_values.WRONG:
                with self.subTest(helm=helm.name, path=path, value=value):
                    with self.assertRaises(OSError) as caught:
                        helm.template(chart_values.values_of(path, value))
                    self.assert_names(path, str(caught.exception))

    def assert_names(self, path, message):
        """A value by its path; a name that is not known, not allowed or missing by that of its object, and itself. Of a name
        that cannot be one helm 4 says the path of another object."""
        above, _, last = path.rpartition("/")
        name = last.replace("~1", "/")
        self.assertTrue(f"at '{path}'" in message or (f"at '{above}'" in message and f"'{name}'" in message)
                        or f"invalid propertyName '{name}'" in message, message)

    def test_an_account_that_is_not_made_must_be_named(self):
        for helm in self.helms:
            with self.assertRaisesRegex(OSError, "at '/serviceAccount/name'"):
                helm.template({"serviceAccount": {"create": False}})

    def test_a_budget_that_no_drain_gets_past_is_refused(self):
        for helm in self.helms:
            with self.assertRaisesRegex(OSError, "podDisruptionBudget.minAvailable: 3 of 3 replicas"):
                helm.template({"replicas": 3, "podDisruptionBudget": {"minAvailable": 3}})

    def test_both_helms_make_the_same_of_each_set(self):
        def lines(output):
            return [line for line in output.splitlines() if line]  # helm 4 sets objects off by blank ones

        for name, values in {"nothing changed": {}, **chart_values.SETS}.items():
            with self.subTest(name):
                first, second = (lines(helm.template(values)) for helm in self.helms)
                self.assertEqual(first, second)

    def test_deploy_is_what_the_chart_makes(self):
        for helm in self.helms:
            done = subprocess.run([sys.executable, PROJECT / "tools/write_deploy.py", "--check", "--helm", helm.program],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_both_helms_find_no_fault_with_the_chart(self):
        for helm in self.helms:
            helm.run("lint", "--strict", CHART)

    def test_what_a_cluster_does_not_know_is_made_only_on_demand(self):
        helm = self.helms[0]
        monitors = ("--api-versions", "monitoring.coreos.com/v1/PodMonitor")
        self.assertNotIn("PodMonitor", kinds(helm.template()))
        self.assertEqual(kinds(helm.template({}, *monitors)).count("PodMonitor"), 2)
        self.assertEqual(kinds(helm.template({"podMonitor": {"create": "Always"}})).count("PodMonitor"), 2)
        self.assertNotIn("PodMonitor", kinds(helm.template({"podMonitor": {"create": "Never"}}, *monitors)))

    def test_an_issuer_signs_where_there_is_one(self):
        issuer = {"name": "ml-ca", "kind": "ClusterIssuer"}
        without = ({}, {"tls": {"enabled": True}}, {"tls": {"issuerRef": issuer}})
        for values in without:
            output = self.helms[0].template(values)
            self.assertNotIn("Certificate", kinds(output))
            self.assertNotIn("adamant-issuer", output)
        output = self.helms[0].template({"tls": {"enabled": True, "issuerRef": issuer}})
        self.assertEqual(kinds(output).count("Certificate"), 1)
        self.assertIn("- --issuer-secret=adamant-issuer", output)
        self.assertRegex(output, r"resourceNames: \[adamant-issuer\]\n +verbs: \[get, watch\]")

    def test_each_alert_says_where_its_page_is_read(self):
        for prefix in ("", "https://git.example/adamant/"):
            output = self.helms[0].template({"prometheusRule": {"create": "Always", "runbookPrefix": prefix}})
            pages = re.findall(r"runbook_url: (\S+)", output)
            self.assertEqual(len(pages), 16)
            for page in pages:
                self.assertTrue((PROJECT / page.removeprefix(prefix)).is_file() and page.startswith(prefix), page)

    def test_series_are_labelled_as_queries_ask(self):
        """docs/design/0016-observability.md: a pair of namespace and job selects all that there is of a job."""
        output = self.helms[0].template({"podMonitor": {"create": "Always"}})
        self.assertEqual(re.findall(r"jobLabel: (\S+)", output), ["app.kubernetes.io/name", "adamant.dev/job"])
        self.assertEqual(re.findall(r"honorLabels: (\S+)", output), ["true", "false"])
        self.assertEqual(re.findall(r"targetLabel: (\w+)", output), ["role", "slot"])

    def test_alerts_and_dashboards_are_in_the_chart(self):
        output = self.helms[0].template({"prometheusRule": {"create": "Always"}, "dashboards": {"create": "Always"}})
        self.assertIn("PrometheusRule", kinds(output))
        self.assertEqual(output.count("name: adamant-dashboard-"), len(list(CHART.glob("files/dashboards/*.json"))))

    def test_operators_of_some_namespaces_have_no_right_of_the_cluster(self):
        found = kinds(self.helms[0].template(chart_values.SETS["no right of the cluster"]))
        self.assertEqual(CLUSTER_KINDS & set(found), set())
        self.assertEqual((found.count("Role"), found.count("RoleBinding")), (3, 3))  # the jobs', the lease's, the test's

    def test_the_operators_are_told_what_they_need_to_know_of_the_values(self):
        def flags(values):
            return re.findall(r"- (--[a-z-]+=\S+)", self.helms[0].template(values))

        self.assertNotIn("--image-pull-secrets", "".join(flags({})))
        self.assertNotIn("--watch-namespaces", "".join(flags({})))
        told = flags({"image": {"pullPolicy": "Always"}, "namespaces": ["team-a", "team-b"],
                      "jobs": {"imagePullSecrets": [{"name": "registry"}, {"name": "mirror.b"}]}})
        for flag in ("--image-pull-policy=Always", "--image-pull-secrets=registry,mirror.b", "--watch-namespaces=team-a,team-b"):
            self.assertIn(flag, told)

    def test_the_labels_that_select_the_operators_are_not_for_users(self):
        label = chart_values.values_of("/podLabels/app.kubernetes.io~1part-of", "mine")
        with self.assertRaisesRegex(OSError, "part-of"):
            self.helms[0].template(label)


class DryRunTest(unittest.TestCase):
    """What is made of each set, in a server-side dry run: the API knows every field and warns of nothing."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(harness.Cluster.control_plane())
        cls.helm = Helm(HELMS[0])
        cls.addClassCleanup(cls.helm.close)
        for name in (NAMESPACE, *chart_values.NAMESPACES):
            cls.cluster.kubectl("create", "namespace", name)
        # A pod is only taken where its account is, which a dry run does not make.
        cls.cluster.kubectl("create", "serviceaccount", "-n", NAMESPACE, "adamant-check")
        levels = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn")]
        cls.cluster.kubectl("label", "namespace", NAMESPACE, *levels)
        install_monitoring(cls.cluster)
        install_certificates(cls.cluster)

    def dry_run(self, objects):
        return self.cluster.kubectl("apply", "--server-side", "--dry-run=server", "--warnings-as-errors", "-f", "-",
                                    input=objects)

    def test_the_api_takes_what_is_made_of_each_set(self):
        for name, values in {"nothing changed": {}, **chart_values.SETS}.items():
            with self.subTest(name):
                objects = self.helm.template(values)
                answer = self.dry_run(objects)
                self.assertEqual(len(answer.splitlines()), len(kinds(objects)), answer)

    def test_pods_that_do_not_pass_the_restricted_level_would_be_warned_of(self):
        objects = self.helm.template()
        self.assertIn("runAsNonRoot: true", objects)
        with self.assertRaisesRegex(OSError, "would violate PodSecurity"):
            self.dry_run(objects.replace("runAsNonRoot: true", "runAsNonRoot: false"))


def install_monitoring(cluster):
    """The custom resources of Prometheus' operator that the chart makes objects of."""
    folder = build_binaries.source("prometheus-operator")
    for plural in ("podmonitors", "prometheusrules"):
        cluster.kubectl("apply", "--server-side", "-f", folder / MONITORING.format(plural))
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{plural}.monitoring.coreos.com")


def install_certificates(cluster):
    """Of cert-manager's Certificate what the chart makes use of; other fields are not known, and would be warned of."""
    text = {"type": "string"}

    def of(**fields):
        return {"type": "object", "properties": fields}

    spec = of(isCA={"type": "boolean"}, commonName=text, secretName=text, duration=text, renewBefore=text,
              usages={"type": "array", "items": text}, issuerRef=of(name=text, kind=text, group=text),
              privateKey=of(algorithm=text, size={"type": "integer"}, encoding=text, rotationPolicy=text))
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": of(spec=spec)}}
    names = {"plural": "certificates", "singular": "certificate", "kind": "Certificate", "listKind": "CertificateList"}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": "certificates.cert-manager.io"},
           "spec": {"group": "cert-manager.io", "scope": "Namespaced", "names": names, "versions": [version]}}
    cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(crd))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/certificates.cert-manager.io")


class LifeOfRelease:
    """By one of the helms, in a cluster for each test. It has no nodes, so operators stay Pending."""

    name = ""  # of the helm

    def setUp(self):
        self.cluster = self.enterContext(harness.Cluster.control_plane())
        self.helm = Helm(self.name, self.cluster.kubeconfig())
        self.addCleanup(self.helm.close)

    def install(self, *arguments, values=None):
        self.helm.run("install", RELEASE, CHART, "--create-namespace", *arguments, values=values)

    def upgrade(self, *arguments, values=None):
        self.helm.run("upgrade", RELEASE, CHART, *arguments, values=values)

    def get(self, name, namespace=NAMESPACE):
        return json.loads(self.cluster.kubectl("get", "-n", namespace, "-o", "json", name))

    def exists(self, name, namespace=NAMESPACE):
        return self.cluster.kubectl("get", "-n", namespace, "--ignore-not-found", "-o", "name", name).strip() != ""

    def make_job(self):
        self.cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *CRDS)
        self.cluster.kubectl("apply", "-n", "default", "-f", "-", input=JOB)
        return self.uid_of_job()

    def uid_of_job(self):
        return self.get("trainingjob/kept", "default")["metadata"]["uid"]

    def await_gone(self, name, namespace=NAMESPACE):
        harness.await_that(lambda: not self.exists(name, namespace), f"{name} is gone")

    def test_a_release_comes_changes_goes_back_and_goes_and_leaves_what_users_have(self):
        self.install()
        job = self.make_job()
        self.assertEqual(self.get(DEPLOYMENT)["spec"]["replicas"], 2)
        before = self.get(DEPLOYMENT)["metadata"]["generation"]
        self.upgrade()
        self.assertEqual(self.get(DEPLOYMENT)["metadata"]["generation"], before)  # nothing has changed

        self.upgrade(values={"replicas": 3, "podLabels": {"tier": "control"}})
        spec = self.get(DEPLOYMENT)["spec"]
        self.assertEqual((spec["replicas"], spec["template"]["metadata"]["labels"]["tier"]), (3, "control"))

        self.helm.run("rollback", RELEASE, 1)
        spec = self.get(DEPLOYMENT)["spec"]
        self.assertEqual(spec["replicas"], 2)
        self.assertNotIn("tier", spec["template"]["metadata"]["labels"])

        self.helm.run("uninstall", RELEASE)
        for gone in (DEPLOYMENT, "service/adamant-operator", "serviceaccount/adamant-operator"):
            self.await_gone(gone)
        for gone in ("clusterrole/adamant-operator", "clusterrolebinding/adamant-operator", "clusterrole/adamant-edit"):
            self.await_gone(gone)
        for kept in CRDS:
            self.assertNotIn("deletionTimestamp", self.get(kept)["metadata"])
        self.assertEqual(self.uid_of_job(), job)

        self.install()  # takes the custom resources that it has left behind, and asks for no permission
        self.assertTrue(self.exists(DEPLOYMENT))
        self.assertEqual(self.uid_of_job(), job)

    def test_custom_resources_stay_when_they_are_no_more_of_the_release(self):
        self.install()
        job = self.make_job()
        self.upgrade(values={"crds": {"enabled": False}})
        self.assertEqual(self.uid_of_job(), job)
        self.helm.run("uninstall", RELEASE)
        self.assertEqual(self.uid_of_job(), job)

    def test_custom_resources_go_where_one_has_asked_for_that(self):
        self.install(values={"crds": {"keep": False}})
        self.make_job()
        self.helm.run("uninstall", RELEASE)
        for gone in CRDS:
            self.await_gone(gone)

    def test_a_plain_installation_is_taken_over(self):
        self.cluster.kubectl("apply", "--server-side", "-k", PROJECT / "deploy")
        job = self.make_job()
        before = self.get(DEPLOYMENT)
        with self.assertRaisesRegex(OSError, "cannot be imported"):
            self.install()
        self.assertNotIn("meta.helm.sh/release-name", self.get(DEPLOYMENT)["metadata"].get("annotations", {}))

        self.install("--take-ownership")
        deployment = self.get(DEPLOYMENT)
        after = deployment["metadata"]
        self.assertEqual(after["uid"], before["metadata"]["uid"])
        self.assertEqual(deployment["spec"], before["spec"])  # no pod is made anew; annotations alone raise the generation
        self.assertEqual(after["annotations"]["meta.helm.sh/release-name"], RELEASE)
        self.assertEqual(after["labels"]["app.kubernetes.io/managed-by"], "Helm")
        self.assert_all_taken()

        self.upgrade(*self.helm.force, values={"replicas": 3})
        self.assertEqual(self.get(DEPLOYMENT)["spec"]["replicas"], 3)
        self.helm.run("uninstall", RELEASE)
        self.await_gone(DEPLOYMENT)
        self.assertEqual(self.uid_of_job(), job)
        self.assertTrue(self.exists(f"namespace/{NAMESPACE}"))

    def assert_all_taken(self):
        """Nothing of what deploy/ made is left to nobody, but the namespace."""
        kinds_of_namespace = "deployments,services,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies"
        found = json.loads(self.cluster.kubectl(
            "get", f"{kinds_of_namespace},clusterroles,clusterrolebindings,customresourcedefinitions", "-n", NAMESPACE,
            "-l", "app.kubernetes.io/part-of=adamant", "-o", "json"))["items"]
        self.assertEqual(len(found), 15)
        left = [f"{each['kind']}/{each['metadata']['name']}" for each in found
                if each["metadata"].get("annotations", {}).get("meta.helm.sh/release-name") != RELEASE]
        self.assertEqual(left, [])

    def test_what_prometheus_operator_knows_is_made_where_it_is(self):
        install_monitoring(self.cluster)
        self.install()
        for name in ("adamant-operator", "adamant-jobs"):
            self.assertTrue(self.exists(f"podmonitor/{name}"))
        self.assertTrue(self.exists("prometheusrule/adamant"))
        dashboards = json.loads(self.cluster.kubectl("get", "configmaps", "-n", NAMESPACE, "-l", "grafana_dashboard=1",
                                                     "-o", "json"))["items"]
        self.assertEqual(len(dashboards), len(list(CHART.glob("files/dashboards/*.json"))))

    def test_operators_of_some_namespaces_may_act_there_and_nowhere_else(self):
        for name in ("team-a", "team-b"):
            self.cluster.kubectl("create", "namespace", name)
        self.install(values={"namespaces": ["team-a", "team-b"]})
        user = f"system:serviceaccount:{NAMESPACE}:adamant-operator"

        def may(verb, resource, namespace):
            try:
                self.cluster.kubectl("auth", "can-i", verb, resource, "-n", namespace, "--as", user)
                return True
            except OSError:
                return False

        for namespace in ("team-a", "team-b"):
            self.assertTrue(may("create", "pods", namespace))
            self.assertTrue(may("watch", "trainingjobs.adamant.dev", namespace))
        for resource in ("pods", "trainingjobs.adamant.dev", "configmaps"):
            self.assertFalse(may("list", resource, "default"), resource)
        for resource in ("nodes", "persistentvolumes", "storageclasses.storage.k8s.io"):
            self.assertFalse(may("get", resource, "default"), resource)


class Helm3Test(LifeOfRelease, unittest.TestCase):
    name = "helm3"


class Helm4Test(LifeOfRelease, unittest.TestCase):
    name = "helm4"


if __name__ == "__main__":
    harness.require("control-plane", HELMS, ["prometheus-operator"])
    unittest.main()

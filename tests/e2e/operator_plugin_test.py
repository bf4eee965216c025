#!/usr/bin/env python3
"""`kubectl adamant` as its users run it, with the rights of the cluster's roles; and the operators' metrics."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from operator_rig import OPERATORS, PROGRAMS, TestCase, measured, require, tiny_job

EPOCHS = 12
UNPLACEABLE = "  pods: {worker: {spec: {nodeSelector: {kind: none}}}}\n"


class PluginTest(TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for user, role in (("ann", "edit"), ("vic", "view")):
            cls.system.namespace.kubectl("create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}")

    def kubectl(self, *arguments, user="ann", timeout=60, cwd=None):
        """Runs the real kubectl, which finds the plugin in PATH."""
        cluster = self.system.cluster
        environment = {**cluster.kubectl_environment(), "KUBECONFIG": str(cluster.kubeconfig(user)),
                       "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
        return subprocess.run([cluster.programs["kubectl"], "adamant", *arguments, "--namespace", "training"],
                              capture_output=True, text=True, timeout=timeout, check=False, env=environment, cwd=cwd)

    def said(self, *arguments, **options):
        """What it printed; it must succeed."""
        result = self.kubectl(*arguments, **options)
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stderr}")
        return result.stdout

    def test_a_job_is_watched_checkpointed_and_exported(self):
        job = self.start("plugged", epochs=EPOCHS)
        job.await_epoch(2)
        status = self.said("status", "plugged", user="vic")
        self.assertRegex(status, r"^plugged: (Running|Evaluating)\n")
        for word in ("worker-0", "parameter-server-1", "node1", "Running", "Bound", "buckets      8:"):
            self.assertIn(word, status)
        found = json.loads(self.said("status", "plugged", "-o", "json", user="vic"))
        self.assertEqual((found["job"], found["shards"]["buckets"]), ("plugged", 8))

        checkpoint = int(re.fullmatch(r"checkpoint (\d+) of epoch \d+\n", self.said("checkpoint", "plugged"))[1])
        self.assertGreaterEqual(job.status()["checkpoint"]["snapshot"], checkpoint)
        self.assertIn("epoch", self.said("explain", "plugged", user="vic"))
        self.assertEqual(self.kubectl("export", "plugged").returncode, 2, "it still runs")

        self.assertIn("plugged: Succeeded", self.said("status", "plugged", "--watch", timeout=120))
        self.assertIn("joined", self.said("events", "plugged", user="vic"))
        logs = self.said("logs", "plugged", "worker-0", "--tail", "3", user="vic")
        self.assertTrue(0 < logs.count("\n") <= 3, logs)
        self.assert_exported(job)
        refused = self.kubectl("export", "plugged", user="vic")
        self.assertEqual(refused.returncode, 4)
        self.assertIn("by edit", refused.stderr)

    def assert_exported(self, job):
        with tempfile.TemporaryDirectory() as folder:
            printed = self.said("export", "plugged", "--format", "onnx", "--out", "here", cwd=folder, timeout=120)
            here = pathlib.Path(folder) / "here"
            self.assertEqual(printed.split(), ["here/metrics.csv", "here/learning-curve.svg", "here/model.onnx"])
            for path in here.iterdir():
                self.assertEqual(path.read_bytes(), (job.output() / path.name).read_bytes(), path.name)
        left = [name for name in self.system.pods.objects() if "-fetch-" in name]
        self.assertEqual(left, [])

    def test_explain_leads_to_the_cause_and_mistakes_are_answered(self):
        manifest = tiny_job("unplaceable") + UNPLACEABLE
        self.system.namespace.kubectl("apply", "-f", "-", input=manifest)
        self.system.pods.first(lambda change: _is_unschedulable(change.object), "a worker cannot be scheduled")
        text = self.said("explain", "unplaceable", user="vic")
        self.assertIn("because worker-0 (pod unplaceable-worker-0-1) cannot be scheduled\n    because 0/1 nodes", text)
        self.assertIn("nodeSelector", text)
        wrong = self.kubectl("status", "unplacable")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean unplaceable?", wrong.stderr)
        self.system.namespace.kubectl("delete", "trainingjob", "unplaceable", "--wait=false")

    def test_the_operators_tell_what_they_do(self):
        self.start("metered", epochs=1).await_phase("Succeeded")
        leader = self.system.leader()
        text = self.system.api.get(f"/api/v1/namespaces/{OPERATORS}/pods/{leader}:8080/proxy/metrics")
        values = {name: float(value) for name, value in re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.M)}
        self.assertEqual(values['leader_election_master_status{name="adamant-operator"}'], 1)
        self.assertGreaterEqual(values['adamant_operator_jobs{phase="Succeeded"}'], 1)
        self.assertGreaterEqual(values["adamant_operator_pods_created_total"], 6)
        self.assertGreater(values['workqueue_adds_total{name="trainingjob"}'], 0)
        self.assertGreater(values['rest_client_requests_total{code="201",method="POST"}'], 0)
        count = values['controller_runtime_reconcile_time_seconds_count{controller="trainingjob"}']
        seconds = values['controller_runtime_reconcile_time_seconds_sum{controller="trainingjob"}']
        measured(f"mean of {count:.0f} reconciles", seconds / count)


def _is_unschedulable(pod):
    return any(condition.get("reason") == "Unschedulable" for condition in pod["status"].get("conditions", []))


if __name__ == "__main__":
    require()
    unittest.main()

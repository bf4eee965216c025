#!/usr/bin/env python3
"""`kubectl adamant` as its users run it, with the rights of the cluster's roles; and the operators' metrics."""

import json
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from operator_rig import OPERATORS, PATIENCE, Job, TestCase, await_that, measured, require, tiny_job

EPOCHS = 12
UNPLACEABLE = "  pods: {worker: {spec: {nodeSelector: {kind: none}}}}\n"
GATED = "  pods: {worker: {spec: {schedulingGates: [{name: example.org/quota}]}}}\n"
UNGATE = '[{"op": "remove", "path": "/spec/schedulingGates"}]'


class Following:
    """A command that goes on until its job is over. What it prints goes to files, as that of a script."""

    def __init__(self, folder, command, environment):
        self._printed, self._complained = folder / "printed", folder / "complained"
        with self._printed.open("w") as printed, self._complained.open("w") as complained:
            self.process = subprocess.Popen(command, env=environment, stdout=printed, stderr=complained)

    def await_word(self, word):
        await_that(lambda: word in self.printed(), f"{self.process.args} prints {word}", PATIENCE)

    def printed(self):
        return self._printed.read_text()

    def end(self):
        """How it ended by itself: its exit code, and what it complained of."""
        return self.process.wait(PATIENCE), self._complained.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()


class PluginTest(TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for user, role in (("ann", "edit"), ("vic", "view")):
            cls.system.namespace.kubectl("create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}")

    def kubectl(self, *arguments, user="ann", timeout=60, cwd=None):
        command, environment = self.system.plugin(*arguments, user=user)
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment,
                              cwd=cwd)

    def follow(self, job):
        """{name: command} of those that follow a job, each of which has printed something."""
        found = {}
        for name, flag in (("status", "--watch"), ("logs", "--follow"), ("events", "--watch")):
            folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
            found[name] = Following(folder, *self.system.plugin(name, job, flag, user="vic"))
            self.addCleanup(found[name].kill)
        for following in found.values():
            following.await_word("\n")
        return found

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

    def test_what_follows_a_job_outlives_the_api_and_ends_with_the_job(self):
        job = self.start("followed", epochs=100_000)
        job.await_epoch(2)
        stopped, following = self.follow("followed"), self.follow("followed")
        for command in stopped.values():
            command.process.send_signal(signal.SIGINT)
        self.assertEqual({name: command.end() for name, command in stopped.items()},
                         dict.fromkeys(stopped, (3, "")))

        self.system.cluster.reset_connections()
        self.system.cluster.kill_container("training", job.pod_of("worker-1"))
        following["events"].await_word("Lost: worker-1 was killed by signal 9")
        following["logs"].await_word("[worker-1.2] ")
        self.system.cluster.stop_api()
        self.system.cluster.start_api()
        job.patch(activeDeadline="1s")
        self.assertEqual({name: command.end() for name, command in following.items()},
                         {"status": (1, ""), "logs": (0, ""), "events": (0, "")})
        self.assertIn("followed: Failed\n", following["status"].printed())
        self.assertEqual([text for text in following.values() if "\033" in text.printed()], [])
        events = following["events"].printed().splitlines()
        of_the_job = [line for line in events if "  followed  " in line]  # Kubernetes says what it likes of claims
        self.assertRegex(of_the_job[-1], "  Phase: Failed$")
        self.assertEqual(len(events), len(set(events)), "each is told once")
        lines = [line.removeprefix("[worker-0.1] ") for line in following["logs"].printed().splitlines()
                 if line.startswith("[worker-0.1] ")]
        self.assertEqual(lines, self.said("logs", "followed", "worker-0").splitlines())

    def test_a_queue_admits_a_job_and_then_its_pods(self):
        manifest = tiny_job("queued", suspend=True) + GATED
        label = "{name: queued, labels: {kueue.x-k8s.io/queue-name: research}}"
        job = Job(self.system, manifest.replace("{name: queued}", label)).apply()
        status = job.await_phase("Suspended").object["status"]
        (suspended,) = [condition for condition in status["conditions"] if condition["type"] == "Suspended"]
        self.assertEqual((suspended["status"], suspended["reason"]), ("True", "SuspendRequested"))
        self.assertEqual(job.created(), [])
        self.assertIn("because the queue research has not admitted it", self.said("explain", "queued", user="vic"))

        job.patch(suspend=False)
        gated = [f"queued-worker-{slot}-1" for slot in (0, 1)]
        for name in gated:
            job.await_pod(lambda change, name=name: change.name == name and _is_gated(change.object), "it is gated")
        text = self.said("explain", "queued", user="vic")
        self.assertIn("queued waits in phase Starting", text)
        self.assertIn("because worker-0 (pod queued-worker-0-1) may not be scheduled yet\n", text)
        self.assertEqual(self.said("status", "queued", user="vic").count("SchedulingGated"), 2)

        for name in gated:
            self.system.namespace.kubectl("patch", "pod", name, "--type=json", "-p", UNGATE)
        self.assert_succeeds(job, 3)
        self.assertEqual([name for name in job.created() if "-worker-" in name], gated)

    def test_the_operators_tell_what_they_do(self):
        self.start("metered", epochs=1).await_phase("Succeeded")
        leader = self.system.leader()

        def read():
            text = self.system.api.get(f"/api/v1/namespaces/{OPERATORS}/pods/{leader}:8080/proxy/metrics")
            return {name: float(value) for name, value in re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.M)}

        await_that(lambda: read().get('adamant_operator_jobs{phase="Succeeded"}', 0) >= 1, "the job is counted")
        values = read()
        self.assertEqual(values['leader_election_master_status{name="adamant-operator"}'], 1)
        self.assertGreaterEqual(values["adamant_operator_pods_created_total"], 6)
        self.assertGreater(values['workqueue_adds_total{name="trainingjob"}'], 0)
        self.assertGreater(values['rest_client_requests_total{code="201",method="POST"}'], 0)
        count = values['controller_runtime_reconcile_time_seconds_count{controller="trainingjob"}']
        seconds = values['controller_runtime_reconcile_time_seconds_sum{controller="trainingjob"}']
        measured(f"mean of {count:.0f} reconciles", seconds / count)


def _has_reason(pod, reason):
    return any(condition.get("reason") == reason for condition in pod["status"].get("conditions", []))


def _is_unschedulable(pod):
    return _has_reason(pod, "Unschedulable")


def _is_gated(pod):
    return _has_reason(pod, "SchedulingGated")


if __name__ == "__main__":
    require()
    unittest.main()

#!/usr/bin/env python3
"""Jobs where the cluster's network enforces policies: they train, lose processes and write their models as elsewhere, and
between their pods, the operators and strangers those connections come to be that docs/install.md names, and no others."""

import collections
import concurrent.futures
import json
import re
import sys
import time
import unittest

import connect
import operator_tls_test
from control_plane import ADDRESS
from operator_rig import OPERATORS, Job, TestCase, await_that, is_running, measured, require, slot_of, tiny_job
from pods import Namespace, pod

NEVER = 100000  # epochs: more than a job gets through here
SECONDS = 2  # within which a connection comes to be, or is refused
PORTS = (7070, 7071, 7072, 8080, 8081)
JOB = ("worker", "data-server", "parameter-server", "exporter")
FREE = ("metrics", "stranger", "false worker")  # none of our policies is theirs
DNS, API = 53, 6443

# Who may connect to whom, at which ports, beside what free pods do among themselves and outside. The operators' own policy
# lets jobs' pods in at 7071 and 7072 where there is TLS.
LET_THROUGH = {
    ("worker", "parameter-server"): {7071}, ("data-server", "parameter-server"): {7071},
    ("exporter", "parameter-server"): {7071},
    ("parameter-server", "parameter-server"): {7072},
    ("worker", "data-server"): {7071},
    ("operator", "outside"): {DNS, API}, ("metrics", "operator"): {8080},
    **{(role, "operator"): {7070} for role in JOB},
    **{(role, "outside"): {DNS} for role in JOB},
    **{("metrics", role): {7070} for role in JOB},
}

# `pod`: None outside.
End = collections.namedtuple("End", "kind namespace pod address")


def passes(source, target, port, secured):
    if source.kind in FREE and target.kind in (*FREE, "outside"):
        return True
    allowed = LET_THROUGH.get((source.kind, target.kind), set())
    if secured and source.kind in JOB and target.kind == "operator":
        allowed = allowed | {7071, 7072}
    return port in allowed


class PoliciesTest(TestCase):

    @classmethod
    def setUpClass(cls):
        cls.system = cls.enterClassContext(operator_tls_test.HelmSystem(nodes=2, enforce_policies=True))
        cls.addClassCleanup(cls.system.helm.close)
        Namespace(cls.system.cluster, "monitoring").start("prometheus", "serve", "7070")
        cls.system.namespace.start("stranger", "serve", "7070")
        cls.elsewhere = Namespace(cls.system.cluster, "elsewhere")

    def start_with_labels(self, namespace, name, labels):
        """A pod that serves 7071, by its labels one of a job; it ends with the test."""
        manifest = pod(name, "serve", "7071")
        manifest["metadata"]["labels"] = labels
        namespace.kubectl("apply", "-f", "-", input=manifest)
        self.addCleanup(namespace.kubectl, "delete", "pod", name)
        namespace.kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=60s")

    def ends(self, job):
        """All who try: those of the job, of which the exporter stands in for one that is gone too soon, the operators, and
        strangers. The false worker has a worker's labels, in another namespace."""
        self.start_with_labels(self.system.namespace, f"{job.name}-exporter", {
            "app.kubernetes.io/managed-by": "adamant-operator", "adamant.dev/job-uid": job.uid,
            "adamant.dev/export": "0"})  # of no snapshot: operators pass it over
        self.start_with_labels(self.elsewhere, f"{job.name}-worker",
                               {"adamant.dev/job-uid": job.uid, "adamant.dev/role": "worker"})
        kinds = [("operator", OPERATORS, name) for name in self.system.operators()]
        kinds += [(slot_of(each).rpartition("-")[0].replace("export", "exporter"), "training", name)
                  for name, each in job.pods().items() if is_running(each)]
        kinds += [("metrics", "monitoring", "prometheus"), ("stranger", "training", "stranger"),
                  ("false worker", "elsewhere", f"{job.name}-worker")]
        path = "/api/v1/namespaces/{}/pods/{}"
        return [End(kind, namespace, name, self.system.api.get(path.format(namespace, name))["status"]["podIP"])
                for kind, namespace, name in kinds]

    def outcomes(self, source, targets):
        """{"address:port": what came of it}, tried from the pod's network."""
        return json.loads(self.system.cluster.exec_in_network_of(
            source.namespace, source.pod, sys.executable, connect.__file__, str(SECONDS), *targets))

    def assert_policies(self, job, *, secured):
        ends = self.ends(job)
        self.assertEqual(collections.Counter(end.kind for end in ends if end.kind not in FREE),
                         {"operator": 2, "worker": 2, "parameter-server": 2, "data-server": 1, "exporter": 1})
        prometheus = next(end for end in ends if end.kind == "metrics")
        at_metrics = [f"{end.address}:7070" for end in ends if end.kind in JOB]
        await_that(lambda: "silent" not in self.outcomes(prometheus, at_metrics).values(), "the nodes know all pods")
        hub = End("outside", None, None, ADDRESS)
        ways = [(source, target, port) for source in ends for target in [*ends, hub] if target is not source
                for port in ((DNS, API) if target is hub else PORTS)]
        with concurrent.futures.ThreadPoolExecutor(len(ends)) as pool:
            found = {source: pool.submit(self.outcomes, source, [f"{target.address}:{port}" for each, target, port in ways
                                                                 if each is source]) for source in ends}
        said = {way: found[way[0]].result()[f"{way[1].address}:{way[2]}"] for way in ways}
        wrong = [f"{source.kind} → {target.kind}:{port} ({source.pod} → {target.pod}): {said[source, target, port]}"
                 for source, target, port in ways
                 if (said[source, target, port] != "silent") != passes(source, target, port, secured)]
        self.assertEqual(wrong, [], f"{len(wrong)} of {len(ways)}")

    def pushes(self, job):
        """{worker: how many were acknowledged}, as Prometheus reads it; 0 of one that does not answer."""
        counts = {}
        for name in job.workers():
            url = f"http://{job.pods()[name]['status']['podIP']}:7070/metrics"
            said = self.system.cluster.exec_in_network_of("monitoring", "prometheus", "sh", "-c", f"curl -sm 2 {url}; true")
            found = re.search(r"^adamant_worker_pushes_total (\S+)", said, re.MULTILINE)
            counts[name] = float(found[1]) if found else 0.0
        return counts

    def all_push(self, job, before):
        """Whether two workers have pushed since these counts were read."""
        counts = self.pushes(job)
        return len(counts) == 2 and all(count > before.get(name, 0) for name, count in counts.items())

    def assert_replaced(self, job, slot):
        """Its container is killed, another pod of it joins, and all workers train on."""
        lost = job.pod_of(slot)
        begin = job.await_pod(lambda change: change.name == lost, "it is there").time
        killed = time.monotonic()
        self.system.cluster.kill_container("training", lost)
        job.await_pod(lambda change: slot_of(change.object) == slot and change.name != lost and is_running(change.object),
                      f"another pod of {slot}", begin)
        role = {"worker-0": "worker", "data-server-0": "dataServer", "parameter-server-0": "parameterServer"}[slot]
        count = 1 if role == "dataServer" else 2
        await_that(lambda: job.status()["roles"][role]["ready"] == count and job.status()["phase"] == "Running",
                   f"{slot} has joined", 120)
        before = self.pushes(job)
        await_that(lambda: self.all_push(job, before), f"workers push without the {slot} that was killed", 60)
        measured(f"{slot} killed → replaced, and all workers push", time.monotonic() - killed)

    def end(self, job, restarts):
        epochs = job.status()["epoch"] + 10
        job.patch(epochs=epochs)
        self.assert_succeeds(job, epochs, restarts)

    def test_a_job_trains_and_is_repaired_and_only_what_it_needs_passes(self):
        """Runs first, by its name: TLS is off until then."""
        job = Job(self.system, tiny_job("guarded", epochs=NEVER)).apply()
        running = job.await_phase("Running")
        measured("apply → Running, policies enforced", running.time - job.applied)
        self.assert_policies(job, secured=False)
        for slot in ("worker-0", "data-server-0", "parameter-server-0"):
            self.assert_replaced(job, slot)
        job.await_epoch(job.status()["epoch"] + 2)
        self.end(job, restarts=3)

    def test_the_same_with_tls(self):
        self.system.upgrade({"tls": {"enabled": True}})
        job = Job(self.system, tiny_job("secured", epochs=NEVER)).apply()
        job.await_phase("Running")
        self.assertEqual(job.status()["security"]["mode"], "TLS")
        self.assert_policies(job, secured=True)
        self.assert_replaced(job, "worker-0")
        self.end(job, restarts=1)


if __name__ == "__main__":
    require()
    unittest.main()

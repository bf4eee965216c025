#!/usr/bin/env python3
"""TLS between the processes of jobs, in a cluster: switched on while a job runs, certificates renewed while another does,
strangers at its ports."""

import time
import unittest

import chart_test
from operator_rig import OPERATORS, Job, System, TestCase, await_that, measured, require, tiny_job

LIFE = 60  # seconds, of certificates: the shortest
NEVER = 100000  # epochs: more than a job gets through here
SERVER_PORTS = {"parameter-server-0": (7071, 7072), "data-server-0": (7071,)}


class HelmSystem(System):
    """With the chart's release in place of deploy/."""

    def install(self):
        self.helm = chart_test.Helm("helm4", self.cluster.kubeconfig())
        self.helm.run("install", chart_test.RELEASE, chart_test.CHART, "--create-namespace")

    def upgrade(self, values):
        self.helm.run("upgrade", chart_test.RELEASE, chart_test.CHART, values=values)
        self.await_operators()


class TlsTest(TestCase):

    @classmethod
    def setUpClass(cls):
        cls.system = cls.enterClassContext(HelmSystem(nodes=1))
        cls.addClassCleanup(cls.system.helm.close)

    def mode(self, job):
        return job.status().get("security", {}).get("mode")

    def secured(self, job):
        """Status and reason of its condition."""
        (condition,) = [each for each in job.status()["conditions"] if each["type"] == "Secured"]
        return condition["status"], condition["reason"]

    def end(self, job):
        """Lets it end after a few epochs more: what its status says may be old by some."""
        epochs = job.status()["epoch"] + 20
        job.patch(epochs=epochs)
        self.assert_succeeds(job, epochs)

    def handshake(self, address, port, *options):
        """What openssl says of one without a certificate."""
        client = f"openssl s_client -connect {address}:{port} -alpn h2 {' '.join(options)}"
        return self.system.cluster.node_exec(1, "sh", "-c", f"(sleep 1; echo) | timeout 10 {client} 2>&1; true")

    def assert_refuses_strangers(self, job):
        for slot, ports in SERVER_PORTS.items():
            address = job.pods()[job.pod_of(slot)]["status"]["podIP"]
            for port in ports:
                with self.subTest(slot=slot, port=port):
                    self.assertRegex(self.handshake(address, port), "alert|certificate required|unexpected eof")
                    self.assertIn("no peer certificate available", self.handshake(address, port, "-tls1_2"))

    def certificates_issued(self):
        """By all operators, since each was started."""
        path = f"/api/v1/namespaces/{OPERATORS}/pods/{{}}:8080/proxy/metrics"
        texts = [self.system.api.get(path.format(pod)) for pod in self.system.operators()]
        lines = [line for text in texts for line in text.splitlines()
                 if line.startswith("adamant_certificates_issued_total")]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def test_a_job_keeps_the_mode_it_began_with_and_certificates_are_renewed(self):
        """Runs first, by its name: TLS is off until then."""
        plain = Job(self.system, tiny_job("plain", epochs=NEVER)).apply()
        plain.await_phase("Running")
        self.assertEqual(self.mode(plain), "Plain")
        self.assertEqual(self.secured(plain), ("False", "TLSDisabled"))
        pods = set(plain.pods())

        self.system.upgrade({"tls": {"enabled": True, "certificateLife": f"{LIFE}s"}})
        secured = Job(self.system, tiny_job("secured", epochs=NEVER)).apply()
        running = secured.await_phase("Running")
        measured("apply → Running, with TLS", running.time - secured.applied)
        self.assertEqual(self.mode(secured), "TLS")
        self.assertEqual(self.secured(secured), ("True", "TLS"))
        self.assertEqual(self.mode(plain), "Plain")
        self.assert_refuses_strangers(secured)

        begin, issued = time.monotonic(), self.certificates_issued()
        self.assertGreaterEqual(issued, 5)
        await_that(lambda: time.monotonic() - begin > 2 * LIFE, "all certificates have been renewed twice", 3 * LIFE)
        self.assertGreaterEqual(self.certificates_issued(), issued + 10, "of five processes")
        self.end(secured)
        self.end(plain)
        self.assertEqual({name for name in plain.created() if "-export-" not in name}, pods, "no process was lost")

    def test_a_process_that_is_lost_gets_another_certificate(self):
        self.system.upgrade({"tls": {"enabled": True, "certificateLife": f"{LIFE}s"}})
        job = Job(self.system, tiny_job("lossy", epochs=NEVER)).apply()
        job.await_phase("Running")
        for slot in ("worker-0", "parameter-server-1", "data-server-0"):
            begin, lost = time.monotonic(), job.pod_of(slot)
            self.system.namespace.kubectl("delete", "pod", lost, "--wait=false")
            job.await_pod(lambda change, begun=f"lossy-{slot}-", lost=lost: change.name.startswith(begun) and change.name != lost,
                          f"another pod of {slot}", begin)
        job.await_epoch(job.status()["epoch"] + 2)
        job.patch(epochs=job.status()["epoch"] + 20)
        job.await_phase("Succeeded")
        self.assertEqual(self.mode(job), "TLS")


if __name__ == "__main__":
    require()
    unittest.main()

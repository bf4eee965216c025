#!/usr/bin/env python3
"""Jobs on a real cluster whose data is on a volume or on a web server, and what becomes of those whose data is wrong."""

import gzip
import hashlib
import pathlib
import tempfile
import unittest

import adamant
from operator_rig import DEPLOYMENT, OPERATORS, Job, TestCase, measured, require, tiny_job
from pods import RESTRICTED

TRAINING, VALIDATION = 5000, 1000
FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
         "t10k-labels-idx1-ubyte.gz")
EPOCHS = 4  # after two the classes are only half told apart
SCHEDULE = "schedule: {kind: Linear, warmUp: {epochs: 0.5}}"  # in epochs: it must learn how long one is
DRAW = ("data", "digits", "--train", str(TRAINING), "--validation", str(VALIDATION))


def on_claim(claim, images, labels):
    return f"{{idx: {{claim: {claim}, images: {images}, labels: {labels}}}}}"


class DataTest(TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        adamant.adamant(*DRAW, "--out", cls.data).check_returncode()
        cls.url = cls.system.cluster.serve_files(cls.data)

    @classmethod
    def fill(cls, claim):
        """Makes a claim and draws the same files into its folder "digits", by a pod as a user would start it."""
        namespace = cls.system.namespace
        namespace.claim(claim)
        image = cls.system.cluster.kubectl("get", DEPLOYMENT, "-n", OPERATORS, "-o",
                                           "jsonpath={.spec.template.spec.containers[0].image}")
        container = {"name": "fill", "image": image, "imagePullPolicy": "IfNotPresent", "securityContext": RESTRICTED,
                     "command": ["adamant"], "args": [*DRAW, "--out", "/volume/digits"],
                     "volumeMounts": [{"name": "volume", "mountPath": "/volume"}]}
        namespace.kubectl("apply", "-f", "-", input={
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"fill-{claim}", "labels": {"app": "fill"}},
            "spec": {"containers": [container], "restartPolicy": "Never",
                     "volumes": [{"name": "volume", "persistentVolumeClaim": {"claimName": claim}}]}})
        namespace.kubectl("wait", f"pod/fill-{claim}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")

    def access(self, claim):
        """Who may do what with all that is on a claim."""
        top = self.system.volume(claim)
        return {path: (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode) for path in [top, *top.rglob("*")]}

    def download(self, file, **changes):
        content = (self.data / file).read_bytes()
        fields = {"url": f"{self.url}/{file}", "sha256": hashlib.sha256(content).hexdigest(), **changes}
        return f"{{url: '{fields['url']}', sha256: '{fields['sha256']}'}}"

    def downloads(self, images, labels):
        return f"{{download: {{images: {images}, labels: {labels}}}}}"

    def assert_trains(self, name, **values):
        """A job with these values of tiny_job learns from all examples of its epochs, without a restart."""
        manifest = tiny_job(name, epochs=EPOCHS, **values).replace("rate: 0.005", f"rate: 0.005, {SCHEDULE}")
        job = Job(self.system, manifest).apply()
        ended = job.await_phase("Succeeded").time
        self.assert_counted_once(job, EPOCHS, TRAINING)
        status = job.status()
        self.assertEqual(status["restarts"], 0)
        self.assertGreater(status["accuracy"], 0.5)
        measured(f"{job.name}: apply → Succeeded ({EPOCHS} epochs of {TRAINING} digits, top-1 {status['accuracy']})",
                 ended - job.applied)

    def assert_invalid(self, job, message):
        """It failed with this message, which its condition Valid has too, and nothing but its data server was started."""
        job.await_phase("Failed")
        conditions = {condition["type"]: condition for condition in job.status()["conditions"]}
        self.assertEqual((conditions["Valid"]["status"], conditions["Valid"]["reason"]), ("False", "InvalidData"))
        self.assertEqual(conditions["Valid"]["message"], message)
        self.assertEqual(conditions["Failed"]["message"], message)
        self.assertEqual(job.created(), [f"{job.name}-data-server-0-1"])
        self.assertEqual(job.status()["restarts"], 0)

    def test_a_job_learns_from_files_on_a_claim(self):
        self.fill("digits")
        access = self.access("digits")
        files = [f"digits/{file}" for file in FILES]
        self.assert_trains("on-claim", train=on_claim("digits", *files[:2]), validation=on_claim("digits", *files[2:]))
        self.assert_invalid(
            self.start("nowhere", train=on_claim("digits", files[0], "nothing"),
                       validation=on_claim("digits", *files[2:])),
            "spec.data.train.idx.labels: there is no file nothing of the claim digits")
        self.assertEqual(self.access("digits"), access)

    def test_a_job_does_not_go_on_with_files_that_were_replaced(self):
        self.fill("replaced")
        files = [f"digits/{file}" for file in FILES]
        job = self.start("replaced", epochs=100_000, train=on_claim("replaced", *files[:2]), validation=on_claim("replaced", *files[2:]))
        job.await_epoch(2)
        labels = self.system.volume("replaced") / files[1]
        whole = gzip.decompress(labels.read_bytes())
        other = whole[:-1] + bytes([(whole[-1] + 1) % 10])
        labels.write_bytes(gzip.compress(other))
        self.system.namespace.kubectl("delete", "pod", job.pod_of("data-server-0"), "--wait=false")
        job.await_phase("Failed")
        (valid,) = [condition for condition in job.status()["conditions"] if condition["type"] == "Valid"]
        self.assertEqual((valid["status"], valid["reason"]), ("False", "InvalidData"))
        self.assertEqual(valid["message"], f"spec.data.train.idx.labels: {files[1]} of the claim replaced is not the file that the job "
                                           "began with: its content differs; only with that file can the job go on")

    def test_a_job_learns_from_files_that_its_data_servers_fetch(self):
        files = [self.download(file) for file in FILES]
        self.assert_trains("fetched", data_servers=2, train=self.downloads(*files[:2]),
                           validation=self.downloads(*files[2:]))

    def test_data_that_does_not_fit_makes_a_job_invalid(self):
        files = [self.download(file) for file in FILES]
        train, validation = self.downloads(*files[:2]), self.downloads(*files[2:])
        wide = tiny_job("wide", train=train, validation=validation).replace("[1, 28, 28]", "[1, 28, 32]")
        self.assert_invalid(
            Job(self.system, wide).apply(),
            f"spec.data.train.download.images: {self.url}/{FILES[0]} has images of 1x28x28, but the net's input is 1x28x32")
        missing = self.download(FILES[0], url=f"{self.url}/nothing")
        self.assert_invalid(
            self.start("missing", train=self.downloads(missing, files[1]), validation=validation),
            f"spec.data.train.download.images.url: {self.url}/nothing: the server answers with HTTP status 404")


if __name__ == "__main__":
    require()
    unittest.main()

"""The operator on a real cluster, for the tests of this folder: jobs, what becomes of them and their pods, faults."""

import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import adamant
import build_binaries
import cluster as harness
from api import ApiError
from cluster import Cluster, await_that
from operator_watch import Watch
from pods import Namespace

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = PROJECT / "build/release/bin"
ARCHIVE = PROJECT / "build/images/adamant.tar"
OPERATORS = "adamant-system"
DEPLOYMENT = "deployment/adamant-operator"
JOBS = "/apis/adamant.dev/v1alpha1/namespaces/{}/trainingjobs"
EXAMPLES = 40000  # of an epoch of tiny_job: a third of a second or more
METRICS = 7070  # port of jobs' pods
METRICS_TIMEOUT = 2  # seconds: a pod that goes may answer nothing, and hold up who asks others after it
RESUMED = "adamant_worker_resumed_timestamp_seconds"
PATIENCE = 240  # seconds for what a job does, on a busy machine


def require():
    """Ends the calling test program as skipped where it cannot have nodes, or the image; with CI=true as failed."""
    harness.require("nodes")
    if not (PROGRAMS / "adamant-operator").exists():
        build_binaries.skip("needs the programs in build/release: tools/build release product")
    if _image_is_old() and shutil.which("buildah") is None and shutil.which("docker") is None:
        build_binaries.skip("needs buildah or docker: tools/setup images")


def _image_is_old():
    newest = max(program.stat().st_mtime for program in PROGRAMS.glob("adamant*"))
    return not ARCHIVE.exists() or ARCHIVE.stat().st_mtime < newest


def image():
    """The archive with the programs as they are now."""
    if _image_is_old():
        subprocess.run([PROJECT / "tools/images", "built"], check=True, stdout=subprocess.DEVNULL)
    return ARCHIVE


def tiny_job(name, *, suspend=False, **values):
    """A manifest; `values` as those of adamant.manifest."""
    manifest = adamant.manifest(name=name, **{"train": f"{{digits: {{seed: 1, examples: {EXAMPLES}}}}}", **values})
    return manifest + ("    suspend: true\n" if suspend else "")


def measured(what, seconds):
    print(f"measured: {what}: {seconds:.2f} s", flush=True)


class System:
    """A cluster with two operators, and a namespace for jobs that takes restricted pods only."""

    def __init__(self, nodes, **options):
        """`options`: as those of Cluster.nodes."""
        self.cluster = Cluster.nodes(nodes, **options)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.cluster)
            self.cluster.load_images([image()])
            self.install()
            self.await_operators()
            self.namespace = Namespace(self.cluster, "training")
            self.api = self.cluster.api
            self.pods = stack.enter_context(Watch(self.api, "/api/v1/namespaces/training/pods"))
            self.jobs = stack.enter_context(Watch(self.api, JOBS.format("training")))
            self.leases = stack.enter_context(
                Watch(self.api, f"/apis/coordination.k8s.io/v1/namespaces/{OPERATORS}/leases"))
            self.await_leader_but([])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def install(self):
        """Has the operators started."""
        self.cluster.kubectl("apply", "--server-side", "-k", PROJECT / "deploy")

    def plugin(self, *arguments, user="admin", namespace="training"):
        """`kubectl adamant` as a user calls it, by the real kubectl, which finds it in PATH: command and environment."""
        environment = {**self.cluster.kubectl_environment(), "KUBECONFIG": str(self.cluster.kubeconfig(user)),
                       "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
        return [self.cluster.programs["kubectl"], "adamant", *arguments, "--namespace", namespace], environment

    def await_operators(self):
        """Returns when as many as there should be, of the deployment as it is now, are ready."""
        self.cluster.kubectl("rollout", "status", "-n", OPERATORS, DEPLOYMENT, "--timeout=120s")

    def operators(self):
        """The names of their pods."""
        return [pod["metadata"]["name"] for pod in self._operator_pods()]

    def operator_addresses(self):
        return [pod["status"]["podIP"] for pod in self._operator_pods()]

    def _operator_pods(self):
        return self.api.get(f"/api/v1/namespaces/{OPERATORS}/pods")["items"]

    def leader(self):
        """The name of the leading one's pod."""
        return _holder(self.leases.objects()["adamant-operator"])

    def await_leader_but(self, others, since=0.0):
        """The first change of the lease, told at `since` or later, to an operator that is none of these."""
        return self.leases.first(lambda change: _holder(change.object) not in ("", *others), "another operator leads",
                                 since)

    def operators_cpu(self):
        """Processor time that they have used, in seconds."""
        ticks = 0
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.cluster.name in (process / "cgroup").read_text():
                    name, numbers = (process / "stat").read_text().rsplit(")", 1)
                    if name.endswith("(adamant-operato"):
                        ticks += sum(map(int, numbers.split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill_leader(self):
        """As when its node fails: killed without warning, not started again. Returns its pod's name and the time."""
        leader = self.leader()
        begin = time.monotonic()
        self.cluster.kill_container(OPERATORS, leader)
        self.cluster.kubectl("delete", "pod", leader, "-n", OPERATORS, "--force", "--grace-period=0")
        return leader, begin

    def await_garbage_collector(self):
        """Returns when Kubernetes deletes what belongs to deleted jobs: it learns of new kinds every 30 s only."""
        kubectl = self.namespace.kubectl
        job = Job(self, tiny_job("owner", suspend=True)).apply()
        owner = {"apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob", "name": job.name, "uid": job.uid}
        kubectl("apply", "-f", "-", input={"apiVersion": "v1", "kind": "ConfigMap",
                                           "metadata": {"name": "owned", "ownerReferences": [owner]}})
        job.delete()
        kubectl("wait", "--for=delete", "configmap/owned", "--timeout=90s")

    def fill_claim(self, claim, folder):
        """Makes a claim that has the files of a folder."""
        self.namespace.claim(claim)
        self.namespace.start(f"fill-{claim}", claim=claim)
        shutil.copytree(folder, self.volume(claim), dirs_exist_ok=True)
        self.namespace.kubectl("delete", "pod", f"fill-{claim}")

    def volume(self, claim):
        """The folder that a claim of the jobs' namespace is on."""
        volume = self.api.get(f"/api/v1/namespaces/training/persistentvolumeclaims/{claim}")["spec"]["volumeName"]
        return pathlib.Path(self.api.get(f"/api/v1/persistentvolumes/{volume}")["spec"]["local"]["path"])

    def diagnosis(self, job):
        """What one needs to know of a job that did not do what it should."""
        columns = "TIME:.lastTimestamp,OF:.involvedObject.name,WHY:.reason,WHAT:.message"
        parts = [("status", ("get", "trainingjob", job, "-o", "jsonpath={.status}")),
                 ("pods", ("get", "pods", "-o", "wide")),
                 ("events", ("get", "events", "--sort-by=.lastTimestamp", "-o", f"custom-columns={columns}"))]
        text = [f"--- {title}\n{self._said(self.namespace.kubectl, command)}" for title, command in parts]
        for pod in self.operators():
            log = self._said(self.cluster.kubectl, ("logs", "-n", OPERATORS, pod, "--tail=30"))
            text.append(f"--- {pod}\n{log}")
        return "\n".join(text)

    @staticmethod
    def _said(kubectl, command):
        try:
            return kubectl(*command)
        except OSError as error:
            return str(error)


def _holder(lease):
    return lease["spec"].get("holderIdentity", "")


class Job:
    """One TrainingJob. What it waits for ends in an AssertionError with a diagnosis where it does not come."""

    def __init__(self, system, manifest):
        self.name = re.search(r"name: ([a-z0-9-]+)", manifest)[1]
        self._system = system
        self._manifest = manifest
        self.applied = 0.0

    def apply(self):
        self.applied = time.monotonic()
        self._system.namespace.kubectl("apply", "-f", "-", input=self._manifest)
        self.uid = self.object()["metadata"]["uid"]
        return self

    def object(self):
        return self._system.api.get(f"{JOBS.format('training')}/{self.name}")

    def status(self):
        return self.object().get("status", {})

    def patch(self, **run_policy):
        self._system.namespace.kubectl("patch", "trainingjob", self.name, "--type=merge", "-p",
                                       json.dumps({"spec": {"runPolicy": run_policy}}))

    def delete(self, *options):
        self._system.namespace.kubectl("delete", "trainingjob", self.name, *options)

    # --- Waiting

    def await_status(self, matches, what, since=0.0, seconds=PATIENCE):
        """The first change of the job whose status matches."""

        def matching(change):
            return self._is_mine(change) and matches(change.object.get("status", {}))

        with self._diagnosed():
            return self._system.jobs.first(matching, f"{self.name}: {what}", since, seconds)

    def await_phase(self, phase, since=0.0, seconds=PATIENCE):
        change = self.await_status(lambda status: status.get("phase") in (phase, "Failed"), phase, since, seconds)
        if change.object["status"]["phase"] != phase:
            raise AssertionError(f"{self.name} failed\n{self._system.diagnosis(self.name)}")
        return change

    def await_epoch(self, epoch):
        """Returns when it is open."""
        return self.await_status(lambda status: status.get("epoch", 0) >= epoch, f"epoch {epoch}")

    def await_pod(self, matches, what, since=0.0, seconds=PATIENCE):
        """The first change of one of the job's pods that matches."""
        with self._diagnosed():
            return self._system.pods.first(lambda change: self._owns(change) and matches(change),
                                           f"{self.name}: {what}", since, seconds)

    def _is_mine(self, change):
        return change.object["metadata"]["uid"] == self.uid

    def _owns(self, change):
        return change.object["metadata"]["labels"].get("adamant.dev/job-uid") == self.uid

    @contextlib.contextmanager
    def _diagnosed(self):
        try:
            yield
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self._system.diagnosis(self.name)}") from None

    # --- What there is of it

    def pods(self):
        """{name: pod} of those that exist."""
        return {name: pod for name, pod in self._system.pods.objects().items()
                if pod["metadata"]["labels"].get("adamant.dev/job-uid") == self.uid}

    def pod_of(self, slot):
        """The name of the pod of "worker-0" that has not ended."""
        (name,) = [name for name, pod in self.pods().items() if slot_of(pod) == slot and not has_ended(pod)]
        return name

    def await_resumed(self, since, but=None):
        """When every worker that runs has had a push acknowledged again after a fault of parameter servers later than `since`
        (both of time.time()), as the last of them tells; `but`: a node that is lost, with its workers."""
        def resumed():
            times = [self.metric(name, RESUMED) for name in self.workers(but)]
            return max(times) if times and min(times) > since else None
        return await_that(resumed, f"{self.name}: updates are acknowledged again")

    def workers(self, but=None):
        """The names of the pods of those that run, except on the node `but`."""
        return [name for name, pod in self.pods().items()
                if slot_of(pod).startswith("worker") and is_running(pod) and pod["spec"].get("nodeName") != but]

    def metric(self, pod, name):
        """What a pod exports under this name, without labels; 0 of one that does not answer soon, as it is gone or its
        node is lost."""
        path = f"/api/v1/namespaces/training/pods/{pod}:{METRICS}/proxy/metrics"
        with contextlib.suppress(OSError):
            text = self._system.api.get(path, timeout=METRICS_TIMEOUT)
            (found,) = re.findall(rf"^{name} (\S+)", text, re.MULTILINE)
            return float(found)
        return 0.0

    def created(self, since=0.0):
        """The names of the pods that were created, in their order."""
        return [change.name for change in self._system.pods.changes(since)
                if change.kind == "ADDED" and self._owns(change)]

    def ended(self, since):
        """The names of the pods that ended, in their order."""
        return [change.name for change in self._system.pods.changes(since)
                if has_ended(change.object) and self._owns(change)]

    def surplus(self):
        """Moments at which a slot had more than one pod that had not ended."""
        running, found = {}, []
        for change in filter(self._owns, self._system.pods.changes()):
            pods = running.setdefault(slot_of(change.object), set())
            if change.kind == "DELETED" or has_ended(change.object):
                pods.discard(change.name)
            else:
                pods.add(change.name)
            if len(pods) > 1:
                found.append(sorted(pods))
        return found

    def events(self):
        """["lost: worker-0 was killed by signal 9"], those that happened repeatedly once."""
        found = self._system.api.get(f"/api/v1/namespaces/training/events?fieldSelector=involvedObject.uid={self.uid}")
        return [f"{event['reason']}: {event['message']}" for event in found["items"]]

    def belongings(self):
        """What exists of the job, and of earlier ones of its name, in the cluster."""
        kinds = "shardmaps,pods,configmaps,persistentvolumeclaims,poddisruptionbudgets,networkpolicies"
        label = f"adamant.dev/job={self.name}"
        listed = self._system.namespace.kubectl("get", kinds, "-l", label, "-o", "name").split()
        try:
            return [*listed, self.object()["metadata"]["name"]]
        except ApiError:
            return listed

    def output(self):
        """The folder of its output volume."""
        return self._system.volume(self.status()["outputClaim"])

    def rows(self):
        """metrics.csv, as dictionaries of texts."""
        with open(self.output() / "metrics.csv", newline="") as file:
            return list(csv.DictReader(file))


def slot_of(pod):
    """"worker-0", or "export-7" for the pod that writes the model."""
    labels = pod["metadata"]["labels"]
    if "adamant.dev/export" in labels:
        return f"export-{labels['adamant.dev/export']}"
    return f"{labels['adamant.dev/role']}-{labels['adamant.dev/slot']}"


def is_running(pod):
    return pod["status"].get("phase") == "Running" and not has_ended(pod)


def has_ended(pod):
    states = [container["state"] for container in pod["status"].get("containerStatuses", [])]
    return pod["status"].get("phase") in ("Succeeded", "Failed") or any("terminated" in state for state in states)


class TestCase(adamant.TestCase):
    """Gives each class a cluster of one node with the operator."""

    @classmethod
    def setUpClass(cls):
        cls.system = cls.enterClassContext(System(nodes=1))

    def start(self, name, **values):
        return Job(self.system, tiny_job(name, **values)).apply()

    def assert_succeeds(self, job, epochs, restarts=0, examples=EXAMPLES):
        """Every example was counted once in each epoch, the model is there, and no slot ever had two pods."""
        ended = job.await_phase("Succeeded").time
        status = job.status()
        self.assert_counted_once(job, epochs, examples, job.events())
        self.assertGreater(float(job.rows()[-1]["top1"]), 0.8)
        self.assertGreater(status["accuracy"], 0.8)
        for name in ("model.safetensors", "model.onnx", "learning-curve.svg"):
            self.assertGreater((job.output() / name).stat().st_size, 0, name)
        self.assertEqual(status["restarts"], restarts, job.events())
        self.assertEqual(job.surplus(), [], job.events())
        return ended

    def assert_event(self, job, pattern):
        try:
            await_that(lambda: re.search(pattern, "\n".join(job.events())), "the event is told")
        except TimeoutError:
            self.assertRegex("\n".join(job.events()), pattern)

#!/usr/bin/env python3
"""Many jobs under one operator: a data server, a parameter server and a worker each, on nodes that run nothing (kwok), or
without nodes, where pods wait for ever.

  tests/bench/operator_scale.py --jobs 1000 --streams     # with 3,000 control streams that load the operator
  tests/bench/operator_scale.py --jobs 10000 --nodes 0    # without
  tests/bench/operator_scale.py --jobs 300 --churn 600    # jobs are deleted and made for ten minutes: does memory grow?

Prints the pods made a second, the operator's memory and processor time, the operator's own metrics, how long a scrape of
them takes and what it holds up, and what a stream costs. One program on each of two cores leads to lower figures than a
cluster has that is a cluster.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / folder) for folder in ("cluster", "e2e")]

import adamant  # noqa: E402
import cluster as harness  # noqa: E402
from cluster import Cluster  # noqa: E402
from operator_watch import Watch  # noqa: E402

PODS_OF_A_NODE = 110
NAMESPACES = 10
SETTLE = 10  # seconds
MOST_SERIES = 60  # of a job: docs/design/0016-observability.md
MOST_SECONDS = 1  # that a scrape may take: likewise
JOBS = "/apis/adamant.dev/v1alpha1/namespaces/{}/trainingjobs"


def manifest(name):
    text = adamant.manifest(name=name, workers=1, parameter_servers=1, epochs=1000,
                            train="{digits: {seed: 1, examples: 1000000}}")  # as control_streams says
    return text.replace("buckets: 8", "buckets: 4")


def namespace_of(index):
    return f"training-{index % NAMESPACES}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Operator:
    """One adamant-operator on this machine, outside the cluster."""

    def __init__(self, cluster):
        self.control, self._metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self._process = subprocess.Popen(
            [adamant.binary_folder() / "adamant-operator", "--kubeconfig", cluster.kubeconfig(), "--namespace", "default",
             "--control-listen", self.control, "--control-service", self.control, "--metrics-listen", self._metrics,
             "--image", "none"], stderr=open(cluster.folder / "operator.log", "w"))

    def stop(self):
        begin = time.monotonic()
        self._process.terminate()
        self._process.wait(60)
        print(f"stopped in {time.monotonic() - begin:.1f} s", flush=True)

    def status(self, name):
        """A number of /proc: VmRSS in kB, VmHWM in kB, Threads."""
        return int(re.search(rf"{name}:\s+(\d+)", pathlib.Path(f"/proc/{self._process.pid}/status").read_text())[1])

    def cpu(self):
        """Processor time used, in seconds."""
        numbers = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, numbers[11:13])) / os.sysconf("SC_CLK_TCK")

    def metrics(self):
        with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=60) as answer:
            return answer.read().decode()

    def describe(self, what):
        print(f"{what}: {self.status('VmRSS') / 1024:.0f} MB (at most {self.status('VmHWM') / 1024:.0f}), "
              f"{self.status('Threads')} threads, {self.cpu():.1f} s of processor time", flush=True)


class Durations:
    """How long reconciles took, and keys waited in the work queue, from one phase to the next."""

    NAMES = ("controller_runtime_reconcile_time_seconds", "workqueue_queue_duration_seconds")

    def __init__(self, operator):
        self._operator = operator
        self._last = self._read()

    def describe(self, what):
        """Since the last call."""
        now = self._read()
        for name in self.NAMES:
            buckets = now[name] - self._last[name]
            print(f"{what}: {name}: n {buckets[float('inf')]:.0f}, p50 ≤ {quantile(buckets, 0.5):g} s, "
                  f"p99 ≤ {quantile(buckets, 0.99):g} s", flush=True)
        self._last = now

    def _read(self):
        text = self._operator.metrics()
        return {name: histogram(text, name) for name in self.NAMES}


def histogram(text, name):
    """The buckets of a Prometheus histogram, all its label sets together: how many values are at most each bound."""
    buckets = collections.Counter()
    for bound, count in re.findall(rf'^{name}_bucket\{{.*?le="([^"]+)".*?\}} (\S+)$', text, re.MULTILINE):
        buckets[float(bound)] += float(count)
    return buckets


def quantile(buckets, share):
    """The upper bound of the bucket that it falls into."""
    enough = share * buckets[float("inf")]
    return min((bound for bound, count in buckets.items() if count >= enough), default=float("nan"))


def series_of_jobs(text):
    """How many series each job has, by namespace and name."""
    labels = re.compile(r'^adamant_job_\w+\{(?:.*,)?job="([^"]+)",namespace="([^"]+)"', re.MULTILINE)
    return collections.Counter((namespace, name) for name, namespace in labels.findall(text))


def measure_scrapes(operator, durations, what):
    """How long one takes, and what comes of scrapes without a pause: what waits for the registry's lock meanwhile, as a
    job's first report does, makes reconciles longer than in a time of that length before."""
    durations.describe(what)
    time.sleep(SETTLE)
    durations.describe(f"{what}, no scrapes")
    times, text, used, end = [], "", operator.cpu(), time.monotonic() + SETTLE
    while time.monotonic() < end:
        begin = time.monotonic()
        text = operator.metrics()
        times.append(time.monotonic() - begin)
    used = (operator.cpu() - used) / len(times)
    jobs = series_of_jobs(text)
    lines = sum(not line.startswith("#") for line in text.splitlines())
    print(f"{what}: a scrape takes {statistics.median(times):.3f} s (at most {max(times):.3f}), {len(text) / 1e6:.1f} MB, "
          f"{lines} lines; {len(jobs)} jobs have {sum(jobs.values())} series, none more than "
          f"{max(jobs.values(), default=0)}; {used:.3f} s of processor time for each, heartbeats included", flush=True)
    durations.describe(f"{what}, {len(times)} scrapes")
    if max(jobs.values(), default=0) > MOST_SERIES:
        print(f"{what}: a job has more than {MOST_SERIES} series", flush=True)
    if statistics.median(times) > MOST_SECONDS:
        print(f"{what}: a scrape takes more than {MOST_SECONDS} s", flush=True)


class Streams:
    """The load generator: a stream for each pod that the watch tells of."""

    def __init__(self, operator, watch):
        program = REPOSITORY / "build/release/bench/control_streams"
        self._process = subprocess.Popen([program, "--controller", operator.control], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        self._watch = watch
        self._opened = 0
        self.counts = {}
        threading.Thread(target=self._read, daemon=True).start()

    def open_new(self):
        """For the pods that were made since the last call."""
        made = additions(self._watch)[self._opened:]
        self._opened += len(made)
        for change in made:
            labels = change.object["metadata"]["labels"]
            print(labels["adamant.dev/job-uid"], labels["adamant.dev/role"], labels["adamant.dev/slot"],
                  file=self._process.stdin)
        self._process.stdin.flush()

    def await_count(self, name, count, seconds):
        deadline = time.monotonic() + seconds
        while self.counts.get(name, 0) < count and time.monotonic() < deadline:
            time.sleep(0.2)
        print(f"streams: {self.counts}", flush=True)

    def messages(self):
        return self.counts["sent"] + self.counts["received"]

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)

    def _read(self):
        for line in self._process.stdout:
            self.counts = json.loads(line)


class Jobs:
    """Those of one cluster, by number."""

    def __init__(self, cluster):
        self._api = cluster.api
        for index in range(NAMESPACES):
            self._api.create("/api/v1/namespaces", {"metadata": {"name": namespace_of(index)}})
        said = cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-",
                               input=manifest("template"))
        self._template = json.loads(said)

    def make(self, indices):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self._make, indices))

    def _make(self, index):
        self._api.create(JOBS.format(namespace_of(index)), {**self._template, "metadata": {"name": f"job-{index}"}})

    def delete(self, indices):
        for index in indices:
            self._api.delete(f"{JOBS.format(namespace_of(index))}/job-{index}")


def additions(watch):
    return [change for change in watch.changes() if change.kind == "ADDED"]


def make_jobs(arguments, operator, jobs, watch):
    begin = time.monotonic()
    jobs.make(range(arguments.jobs))
    applied = time.monotonic()
    while len(additions(watch)) < 3 * arguments.jobs and time.monotonic() < applied + arguments.patience:
        time.sleep(2)
    made = additions(watch)
    seconds = made[-1].time - begin
    print(f"{arguments.jobs} jobs applied in {applied - begin:.1f} s; {len(made)} pods in {seconds:.1f} s: "
          f"{len(made) / seconds:.0f} pods/s", flush=True)
    operator.describe("all pods made")


def open_streams(arguments, operator, streams, durations):
    memory, threads = operator.status("VmRSS"), operator.status("Threads")
    count = 3 * arguments.jobs
    streams.open_new()
    streams.await_count("welcomed", count, arguments.patience)
    streams.await_count("training", arguments.jobs, arguments.patience)
    durations.describe("all streams opened")
    time.sleep(SETTLE)
    used, messages = operator.cpu(), streams.messages()
    time.sleep(SETTLE)
    print(f"messages a second: {(streams.messages() - messages) / SETTLE:.0f}")
    print(f"heartbeats of {count} streams: {(operator.cpu() - used) / SETTLE:.2f} cores; "
          f"{(operator.status('VmRSS') - memory) / count:.0f} kB a stream, "
          f"{operator.status('Threads') - threads} more threads", flush=True)
    operator.describe("all streams open")
    durations.describe("heartbeats alone")


def churn(arguments, operator, jobs, streams, durations):
    """Evenly in time the oldest job is deleted and a new one made, whose pods open their streams. Says each minute how the
    operator stands."""
    begin = time.monotonic()
    for oldest in range(arguments.churn * arguments.churn_jobs // 60):
        time.sleep(max(0, begin + oldest * 60 / arguments.churn_jobs - time.monotonic()))
        jobs.delete([oldest])
        jobs.make([arguments.jobs + oldest])
        if streams:
            streams.open_new()
        if (oldest + 1) % arguments.churn_jobs == 0:
            minute = (oldest + 1) // arguments.churn_jobs
            operator.describe(f"churn, minute {minute}")
            durations.describe(f"churn, minute {minute}")
            if streams:
                print(f"streams: {streams.counts}", flush=True)


def run(arguments):
    nodes = -(-3 * arguments.jobs // PODS_OF_A_NODE) + 1 if arguments.nodes is None else arguments.nodes
    with (Cluster.fake_nodes(nodes) if nodes else Cluster.control_plane()) as cluster, contextlib.ExitStack() as stack:
        cluster.kubectl("apply", "--server-side", "-f", REPOSITORY / "deploy/crd")
        cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
        operator = Operator(cluster)
        stack.callback(operator.stop)
        jobs = Jobs(cluster)
        watch = stack.enter_context(Watch(cluster.api, "/api/v1/pods"))
        time.sleep(SETTLE)
        operator.describe("idle")
        durations = Durations(operator)
        make_jobs(arguments, operator, jobs, watch)
        durations.describe("all pods made")
        streams = Streams(operator, watch) if arguments.streams else None
        if streams:
            stack.callback(streams.close)
            open_streams(arguments, operator, streams, durations)
        measure_scrapes(operator, durations, "all streams open" if streams else "all pods made")
        churn(arguments, operator, jobs, streams, durations)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, help="fake nodes; 0: none [as many as the pods need]")
    parser.add_argument("--streams", action="store_true", help="open the control streams of all jobs")
    parser.add_argument("--churn", type=int, default=0, metavar="SECONDS", help="delete and make jobs for so long")
    parser.add_argument("--churn-jobs", type=int, default=30, metavar="N", help="so many a minute")
    parser.add_argument("--patience", type=int, default=900, metavar="SECONDS")
    arguments = parser.parse_args()
    harness.require("fake-nodes")
    run(arguments)


if __name__ == "__main__":
    main()

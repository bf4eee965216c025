#!/usr/bin/env python3
"""How long a bucket takes no updates when its primary is lost: from the last acknowledgement before to the first after,
as the workers see them. Real processes, each in a network namespace of its own; needs root or user namespaces.

  ADAMANT_BIN_DIR=build/release/bin ADAMANT_TEST_BIN_DIR=build/release/tests tests/bench/failover.py \\
      [--case killed stopped ...] [--n 100] [--seconds 300]

Of every fault the longest interruption of a bucket and a worker counts. `quiet` and `quiet-fast` do no harm: they count
what fails over under a load as high as it goes. `rate`: updates of 4 KB to 64 buckets, as many as go, before, during
and after kills every five seconds. The program fails when an acknowledged update is lost.
"""

import argparse
import math
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "processes"))

import netns  # noqa: E402
import replicated  # noqa: E402
import runs  # noqa: E402

DEFAULTS = "failover: {beacon: 500ms, lease: 3s, grace: 4s}"
BATCH = 25  # faults per cluster
SMALL = 24  # shards of 4 KB, and one of 100 KB: each bucket is written to every few milliseconds
CALM = 1  # seconds after the end of a process: looking at the status takes a processor


class Cluster(replicated.ReplicatedCluster):
    """Four servers with three copies, two workers."""

    def __init__(self, failover, rate, buckets=8, shards=SMALL):
        super().__init__(replicated.servers(4, 3, buckets, failover=failover), count=4, rate=rate,
                         hidden=(32,) * shards, reads=0, poison_every=0, shortest_gap=20, checkpoint_interval="5m")


def stop(cluster, server, away):
    with cluster.paused(server):
        time.sleep(away)


def cut_off(cluster, server, away):
    cluster.network.isolate(server)
    time.sleep(away)
    cluster.network.heal()


def kill(cluster, server, _):
    cluster.note_deaths(server)
    cluster.kill(server)
    time.sleep(CALM)


def hand_over(cluster, server, _):
    cluster.note_deaths(server)
    cluster.terminate(server)
    time.sleep(CALM)


# case: (fault, settings, seconds of silence: more than a failover may take)
FAULTS = {
    "killed": (kill, DEFAULTS, None),
    "handed-over": (hand_over, DEFAULTS, None),
    "stopped-fast": (stop, replicated.FAST, 2.5),
    "stopped": (stop, DEFAULTS, 8),
    "cut-off-fast": (cut_off, replicated.FAST, 2.5),
    "cut-off": (cut_off, DEFAULTS, 8),
}
QUIET = {"quiet": DEFAULTS, "quiet-fast": replicated.FAST}


def check(report):
    if report.violations or report.stale_reads or report.rolled_back or report.lost:
        sys.exit(f"updates were lost: {report}")
    return report


def batch(case, count):
    """Seconds of the longest interruption by each of `count` faults, and the updates acknowledged meanwhile."""
    fault, failover, away = FAULTS[case]
    times = []
    with Cluster(failover, 600) as cluster:
        for number in range(count):
            server = cluster.primary()
            with cluster.fault(f"{case} {number + 1} of {count}: {server}"):
                begin = time.monotonic()
                fault(cluster, server, away)
                times.append((begin, time.monotonic()))
        report = check(cluster.finish())
    return [max(report.interruptions(*time), default=0) for time in times], report.acknowledged


def measure(case, count):
    samples, acknowledged = [], 0
    while len(samples) < count:
        more, updates = batch(case, min(BATCH, count - len(samples)))
        samples += more
        acknowledged += updates
        print(f"{case}: {len(samples)} of {count}, median {statistics.median(samples):.3f} s, "
              f"longest {max(samples):.3f} s", file=sys.stderr, flush=True)
    ordered = sorted(samples)
    p99 = f"{ordered[math.ceil(0.99 * count) - 1]:.3f}" if count >= 100 else "n < 100"
    runs.print_row(case, count, f"{statistics.median(samples):.3f}", p99, f"{ordered[-1]:.3f}", acknowledged, 0)


def acknowledged_per_second(cluster, seconds):
    before, begin = cluster.acknowledged(), time.monotonic()
    time.sleep(seconds)
    return (cluster.acknowledged() - before) / (time.monotonic() - begin)


def count_false(case, seconds):
    with Cluster(QUIET[case], 0) as cluster:
        before = cluster.failovers()
        rate = acknowledged_per_second(cluster, seconds)
        failovers = cluster.failovers() - before
        report = check(cluster.finish())
    print(f"{case}: {failovers} failovers in {seconds} s without a fault, at {rate:.0f} updates/s, latency "
          f"{report.latency_ms}", flush=True)


def compare_rates():
    with Cluster(DEFAULTS, 0, buckets=64, shards=128) as cluster:
        before = acknowledged_per_second(cluster, 20)
        start, begin = cluster.acknowledged(), time.monotonic()
        for _ in range(6):
            cluster.kill(cluster.primary())
            time.sleep(5)
        during = (cluster.acknowledged() - start) / (time.monotonic() - begin)
        after = acknowledged_per_second(cluster, 25)
        check(cluster.finish())
    print(f"rate: {before:.0f} updates/s before, {during:.0f} with a kill every 5 s, {after:.0f} from 5 s to 30 s "
          f"after the last: {after / before:.0%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cases = [*FAULTS, *QUIET, "rate"]
    parser.add_argument("--case", nargs="+", choices=cases, default=cases)
    parser.add_argument("--n", type=int, default=100, help="faults of each kind")
    parser.add_argument("--seconds", type=int, default=300, help="of the cases without faults")
    options = parser.parse_args()
    netns.enter()
    runs.print_header("case", "faults", "p50, s", "p99, s", "longest, s", "updates acknowledged", "lost")
    for case in options.case:
        if case in FAULTS:
            measure(case, options.n)
        elif case in QUIET:
            count_false(case, options.seconds)
        else:
            compare_rates()


if __name__ == "__main__":
    main()

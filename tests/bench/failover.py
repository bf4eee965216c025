#!/usr/bin/env python3
"""How long a bucket takes no updates when its primary is lost: from the last acknowledgement before to the first after,
as the workers see them. Real processes, each in a network namespace of its own; needs root or user namespaces.

  ADAMANT_BIN_DIR=build/release/bin ADAMANT_TEST_BIN_DIR=build/release/tests tests/bench/failover.py \\
      [--case suspected killed ...] [--n 100] [--seconds 300]

Of every fault the longest interruption of a bucket and a worker counts. `quiet` and `quiet-fast` do no harm: they count
what fails over under a load as high as it goes. `rate` compares the rate before and after five kills under such a load.
"""

import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "processes"))

import netns  # noqa: E402
import replicated  # noqa: E402
import runs  # noqa: E402

DEFAULTS = "failover: {beacon: 500ms, lease: 3s, grace: 4s}"
BATCH = 10  # faults per cluster: the wait before a restart doubles with each
SMALL = (32,) * 24  # shards of 4 KB and one of 100 KB: each bucket is written to every few milliseconds
AWAY = 2.5  # times grace: a stopped server is replaced by then


class Cluster(replicated.ReplicatedCluster):
    def __init__(self, failover, rate, **options):
        super().__init__(replicated.servers(4, 3, 8, failover=failover), count=4, rate=rate, hidden=SMALL, reads=0,
                         poison_every=0, **options)


def stop(cluster, server, grace):
    with cluster.paused(server):
        time.sleep(AWAY * grace)


def kill(cluster, server, _):
    cluster.kill_and_await(server)


def hand_over(cluster, server, _):
    before = cluster.exits(server)
    cluster.terminate(server)
    cluster.await_that(lambda: cluster.exits(server) > before, f"the end of {server}")


# case: (fault, settings, grace in seconds)
FAULTS = {
    "killed": (kill, DEFAULTS, 4),
    "killed-fast": (kill, replicated.FAST, replicated.GRACE),
    "handed-over": (hand_over, DEFAULTS, 4),
    "suspected-fast": (stop, replicated.FAST, replicated.GRACE),
    "suspected": (stop, DEFAULTS, 4),
}
QUIET = {"quiet": DEFAULTS, "quiet-fast": replicated.FAST}


def check(report):
    if report.violations or report.stale_reads or report.rolled_back or report.lost:
        sys.exit(f"updates were lost: {report}")
    return report


def batch(case, count):
    """Seconds of the longest interruption by each of `count` faults, and the updates acknowledged meanwhile."""
    fault, failover, grace = FAULTS[case]
    begins = []
    with Cluster(failover, 600) as cluster:
        for number in range(count):
            server = cluster.primary()
            with cluster.fault(f"{case} {number + 1} of {count}: {server}"):
                begins.append(time.monotonic())
                fault(cluster, server, grace)
        report = check(cluster.finish())
    longest = [max(report.interruptions(begin, begin + 0.2), default=0) for begin in begins]
    return longest, report.acknowledged


def measure(case, count):
    samples, acknowledged = [], 0
    while len(samples) < count:
        more, updates = batch(case, min(BATCH, count - len(samples)))
        samples += more
        acknowledged += updates
        print(f"{case}: {len(samples)} of {count}, median {statistics.median(samples):.3f} s, "
              f"longest {max(samples):.3f} s", file=sys.stderr, flush=True)
    ordered = sorted(samples)
    tail = f"{ordered[int(0.99 * (count - 1))]:.3f}" if count >= 100 else f"{ordered[-1]:.3f} (longest)"
    runs.print_row(case, count, f"{statistics.median(samples):.3f}", tail, acknowledged, 0)


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
    with Cluster(DEFAULTS, 0) as cluster:
        before = acknowledged_per_second(cluster, 10)
        for number in range(5):
            with cluster.fault(f"rate: kill {number + 1} of 5"):
                cluster.kill_and_await(cluster.primary())
        time.sleep(15)
        after = acknowledged_per_second(cluster, 10)
        check(cluster.finish())
    print(f"rate: {before:.0f} updates/s before, {after:.0f} from 15 s after the last fault: {after / before:.0%}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cases = [*FAULTS, *QUIET, "rate"]
    parser.add_argument("--case", nargs="+", choices=cases, default=cases)
    parser.add_argument("--n", type=int, default=100, help="faults of each kind")
    parser.add_argument("--seconds", type=int, default=300, help="of the cases without faults")
    options = parser.parse_args()
    netns.enter()
    runs.print_header("case", "faults", "median, s", "p99, s", "updates acknowledged", "lost")
    for case in options.case:
        if case in FAULTS:
            measure(case, options.n)
        elif case in QUIET:
            count_false(case, options.seconds)
        else:
            compare_rates()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Largest curvature that N workers bear which answer each other late: the linear model of docs/design/0009-asynchrony.md.

Each worker trains on f(x) = x^2 / 2 with momentum of its own, pushes what it changed every `every` steps, and has the sum
of all back after two latencies. Printed: the largest N * rate / (1 - momentum) at which x goes to 0.

  tests/bench/delayed_workers.py [--workers 8] [--momentum 0.95 0.9 0] [--until 300]
"""

import argparse
import heapq
import random


class Worker:
    def __init__(self):
        self.weight = 1.0
        self.momentum = self.accrued = self.ahead = 0.0
        self.steps = 0
        self.fetched = None  # (value, time at which it is there)

    def apply(self, look_ahead):
        known = self.fetched[0] + self.accrued
        self.ahead = look_ahead * (known - (self.weight - self.ahead))
        self.weight = known + self.ahead
        self.fetched = None


def settles(total_rate, workers, every, latency, look_ahead, momentum, until=300.0):
    """Whether the servers' x goes to 0. Times are in steps, which take 0.9 to 1.1."""
    rng = random.Random(1)
    server, crowd = 1.0, [Worker() for _ in range(workers)]
    events = [(rng.random() * every + 1, i, "step", i, 0.0) for i in range(workers)]
    heapq.heapify(events)
    order = workers
    while events:
        now, _, kind, index, change = heapq.heappop(events)
        worker = crowd[index]
        if now > until:
            break
        if kind == "push":
            server += change
            if abs(server) > 1e4:
                return False
            worker.fetched = (server, now + latency)
            continue
        worker.momentum = momentum * worker.momentum + worker.weight
        change = -total_rate / workers * worker.momentum
        worker.weight += change
        worker.accrued += change
        worker.steps += 1
        if worker.fetched and worker.fetched[1] <= now:
            worker.apply(look_ahead)
        if worker.steps % every == 0:
            if worker.fetched:
                now = worker.fetched[1]
                worker.apply(look_ahead)
            heapq.heappush(events, (now + latency, order, "push", index, worker.accrued))
            order += 1
            worker.accrued = 0.0
        heapq.heappush(events, (now + 0.9 + 0.2 * rng.random(), order, "step", index, 0.0))
        order += 1
    return abs(server) < 0.7


def largest(momentum, **case):
    """Below the first that does not settle: few workers bear some that are far larger again."""
    low, high = 0.0, 0.02
    while high < 6.0 and settles(high, momentum=momentum, **case):
        low, high = high, high * 1.25
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (middle, high) if settles(middle, momentum=momentum, **case) else (low, middle)
    return low / (1 - momentum)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--momentum", type=float, nargs="+", default=[0.95, 0.9, 0])
    parser.add_argument("--until", type=float, default=300, help="steps after which x has gone to 0")
    args = parser.parse_args()
    factors = (0, 1, 2, 3)
    print("| exchange every | latency | momentum | " + " | ".join(f"ahead × {factor}" for factor in factors) + " |")
    print("| --- " * (3 + len(factors)) + "|")
    for every, latency in ((1, 0.1), (1, 0.5), (1, 1), (2, 0.5), (4, 0.5), (8, 0.1), (8, 1.6)):
        for momentum in args.momentum:
            bounds = (largest(momentum, workers=args.workers, every=every, latency=latency, look_ahead=factor,
                              until=args.until) for factor in factors)
            print(f"| {every} | {latency} | {momentum} | " + " | ".join(f"{bound:.2f}" for bound in bounds) + " |",
                  flush=True)


if __name__ == "__main__":
    main()

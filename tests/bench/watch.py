"""Looks at a run every two seconds, as `adamant status` shows it."""

import dataclasses
import json
import threading
import time

import runs

SECONDS = 2  # between two looks: each costs some 50 ms of processor time


@dataclasses.dataclass
class Look:
    seconds: float  # time.monotonic()
    phase: str
    examples: int  # counted since the start of the job
    failovers: int
    restores: int  # of buckets from disk
    rolled_back: int  # updates
    states: dict  # of buckets: number by name
    members: dict  # by bucket: (primary, members), each as (slot, start)

    def whole(self):
        return self.members and self.states.keys() == {"Ready"}


def _holder(holder):
    return holder and (holder["slot"], holder["start"])


def look(run):
    """None while the controller does not answer."""
    done = runs.adamant("status", run.folder, "--output", "json")
    status = json.loads(done.stdout) if done.returncode == 0 else {"live": False}
    if not status["live"]:
        return None
    states = {}
    for bucket in status["buckets"]:
        states[bucket["state"]] = states.get(bucket["state"], 0) + 1
    return Look(
        seconds=time.monotonic(), phase=status["phase"],
        examples=max(0, status["epoch"] - 1) * (status["examples_total"] or 0) + (status["examples"] or 0),
        failovers=status["failovers"], restores=status["restores"],
        rolled_back=sum(bucket["rolled_back"] for bucket in status["buckets"]), states=states,
        members={bucket["bucket"]: (_holder(bucket["primary"]), sorted(map(_holder, bucket["members"])))
                 for bucket in status["buckets"]})


class Watch:
    """`with Watch(run) as watch:` looks until the end of the block."""

    def __init__(self, run):
        self._run = run
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.looks = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _watch(self):
        while not self._ended.is_set():
            seen = look(self._run)
            if seen is not None:
                self.looks.append(seen)
            self._ended.wait(SECONDS)

    def await_that(self, condition, what, timeout=120):
        """Waits for a look of which `condition` holds, and returns it."""
        deadline = time.monotonic() + timeout
        begin = len(self.looks)
        while time.monotonic() < deadline and self._run.process.poll() is None:
            for seen in self.looks[begin:]:
                if condition(seen):
                    return seen
            time.sleep(0.1)
        raise AssertionError(f"{self._run.folder}: no {what}; last seen: {self.looks[-1:]}")

    def rate(self, begin, end):
        """Examples per second between two times, from the looks next to them."""
        within = [seen for seen in self.looks if begin - SECONDS <= seen.seconds <= end + SECONDS]
        return (within[-1].examples - within[0].examples) / (within[-1].seconds - within[0].seconds)

    def longest_pause(self):
        """Seconds without a new example in training; to the precision of the looks."""
        longest, since = 0, None
        for before, seen in zip(self.looks, self.looks[1:]):
            if seen.examples > before.examples:
                since = None
            elif since is None:
                since = before.seconds
            if since is not None:
                longest = max(longest, seen.seconds - since)
        return longest

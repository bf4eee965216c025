"""A replicated job under load, the faults done to it, and what must hold after each: the gates."""

import contextlib
import os
import random
import sys
import time

from load import LoadedCluster, assert_nothing_lost

# A fifth of the default times, and less.
FAST = "failover: {beacon: 100ms, lease: 600ms, grace: 800ms}"
GRACE = 0.8  # seconds

# The defaults: on a busy machine nobody counts as silent. For faults that are proved and need not be waited out.
STEADY = "failover: {beacon: 500ms, lease: 3s, grace: 4s}"

# Shards: 4 of 1 MB, one of 170 KB, 32 of 4 KB, and 35 biases.
HIDDEN = (1336, *[32] * 33)

RECOVERY = 60  # seconds after a fault until all copies are there again
LONGEST_GAP = 2  # seconds without progress when nothing is wrong, times slowness()

SEED = int(os.environ.get("ADAMANT_FAULT_SEED", "1"))


def slowness():
    """How many times longer things may take because others keep this machine busy; 1 when nobody does."""
    return max(1, os.getloadavg()[0] / (2 * os.cpu_count()))


def servers(count=5, copies=3, buckets=16, *, mode="Delayed", flush="1s", failover=FAST):
    """The manifest's field `parameterServers`."""
    return (f"{{count: {count}, copies: {copies}, buckets: {buckets}, {failover}, "
            f"persistence: {{mode: {mode}, flushInterval: {flush}}}}}")


class ReplicatedCluster(LoadedCluster):
    """Under a load of 320 updates per second of 2 workers; a checkpoint every 5 seconds. Faults happen within fault(),
    which ends when the job is whole again."""

    def __init__(self, settings=None, *, count=5, copies=3, workers=2, rate=160, hidden=HIDDEN, **options):
        self.copies = copies
        self.settings = settings or servers(count, copies)
        super().__init__(self.settings, count=count, workers=workers, rate=rate, hidden=hidden,
                         **{"reads": 20, "poison_every": 100, "checkpoint_interval": "5s", **options})
        self.started = 0  # when all buckets were there
        self.windows = []  # (begin, end, what) of faults
        self.dead = {}  # the last start of a server that has ended
        self.random = random.Random(SEED)

    def __enter__(self):
        super().__enter__()
        with contextlib.ExitStack() as stack:
            stack.push(self)  # a job that does not start is ended
            self.await_whole("the start")
            self.await_acknowledged(200)
            self.started = time.monotonic()
            stack.pop_all()
        return self

    # --- Who is who

    def buckets(self):
        return (self.status() or {}).get("buckets", [])

    def holders(self):
        """By bucket: (name of its primary, names of its secondaries)."""
        name = lambda holder: f"parameter-server-{holder['slot']}"
        return [(name(bucket["primary"]), [name(member) for member in bucket["members"] if member != bucket["primary"]])
                for bucket in self.await_that(self.buckets, "a status")]

    def primary(self):
        """The primary of some bucket."""
        return self.random.choice(self.holders())[0]

    def secondary(self):
        """A secondary of some bucket, and its primary."""
        primary, secondaries = self.random.choice([holders for holders in self.holders() if holders[1]])
        return self.random.choice(secondaries), primary

    # --- Faults

    @contextlib.contextmanager
    def fault(self, what):
        """What happens within is to leave nothing worse than a pause."""
        begin = time.monotonic()
        yield
        healed = time.monotonic()
        self.await_whole(what)
        self.await_progress(what)
        self.windows.append((begin, time.monotonic(), what))
        print(f"  {what}: lasted {healed - begin:.1f} s, whole again {time.monotonic() - healed:.1f} s later",
              file=sys.stderr)

    def kill_and_await(self, *names):
        """SIGKILL at once; returns when all have ended."""
        before = {name: self.exits(name) for name in names}
        self.note_deaths(*names)
        self.kill(*names)
        self.await_that(lambda: all(self.exits(name) > before[name] for name in names), f"the end of {names}")

    def note_deaths(self, *names):
        """The processes of these names are about to die: buckets that still name them are not whole."""
        for name in names:
            self.dead[name] = max(self.starts(name), default=0)

    def starts(self, name):
        """The numbers of the processes of this name that have joined."""
        return [int(event["text"].rpartition(" ")[2]) for event in self.events()
                if event["event"] == "joined" and event["member"] == name]

    def whole(self):
        """All buckets serve and have all their copies, none by a process that is known to be dead."""
        buckets = self.buckets()
        return buckets and all(bucket["state"] == "Ready" and len(bucket["members"]) >= self.copies
                               and all(member["start"] > self.dead.get(f"parameter-server-{member['slot']}", 0)
                                       for member in bucket["members"])
                               for bucket in buckets)

    def await_whole(self, what):
        self.await_that(self.whole, f"all buckets Ready after {what}", RECOVERY)

    def await_progress(self, what):
        """An update of every bucket that has shards, by every worker, after now."""
        now = time.monotonic()
        reached = lambda: all(last and min(last.values()) > now for last in
                              (self.read(worker, "progress.json").get("last") for worker in self.workers))
        self.await_that(reached, f"progress of all buckets after {what}", 20)

    def tails(self, lines=15):
        states = "\n".join(f"bucket {bucket['bucket']}: {bucket['state']}, epoch {bucket['epoch']}, "
                           f"primary {bucket['primary']}, members {bucket['members']}, learner {bucket['learner']}"
                           for bucket in self.buckets() if bucket["state"] != "Ready")
        return f"seed {SEED}, settings {self.settings}\n{states}\n{super().tails(lines)}"

    # --- Gates

    def pauses(self, report):
        """(seconds, bucket) of the times without progress in a bucket that no fault excuses."""
        longest = LONGEST_GAP * slowness()
        found = []
        for gap in report.gaps:
            begin = max(gap["from"], self.started)
            for start, end, _ in sorted(self.windows):
                if end > begin and start < gap["to"]:
                    found.append((start - begin, gap["bucket"]))
                    begin = max(begin, end)
            found.append((gap["to"] - begin, gap["bucket"]))
        return [pause for pause in found if pause[0] > longest]

    def finish_and_check(self, test):
        """Nothing was lost, and nothing paused without reason."""
        report = self.finish()
        print(f"  {len(self.windows)} faults; {report.acknowledged} acknowledged, {report.refused} refused, "
              f"{report.unanswered} unanswered, {report.reads} reads, {self.failovers()} failovers", file=sys.stderr)
        try:
            assert_nothing_lost(test, report)
            test.assertEqual(self.pauses(report), [])
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tails()}") from error
        return report

    def failovers(self):
        return (self.status() or {}).get("failovers", 0)

    def told(self, kind):
        """The texts of the events of this kind."""
        return [event["text"] for event in self.events() if event["event"] == kind]

"""The load of a cluster: worker processes that push updates whose effect is known, and report what became of them."""

import dataclasses
import json

from cluster import Cluster, manifest

PROGRAM = "process_load"


@dataclasses.dataclass
class Report:
    """Of all writers together; times are of time.monotonic()."""
    acknowledged: int = 0
    refused: int = 0
    unanswered: int = 0
    rolled_back: int = 0  # acknowledged, then asked for again
    lost: int = 0  # of these, not sent again
    reads: int = 0
    stale_reads: list = dataclasses.field(default_factory=list)  # that lack an update acknowledged before them
    violations: list = dataclasses.field(default_factory=list)  # what no setting excuses
    gaps: list = dataclasses.field(default_factory=list)  # {"bucket":, "from":, "to":}: without acknowledgements
    rollbacks: list = dataclasses.field(default_factory=list)  # {"bucket":, "oldest": its acknowledgement}
    latency_ms: list = dataclasses.field(default_factory=list)  # {"p50":, "p99":} by writer

    def add(self, part):
        for field in dataclasses.fields(self):
            value = part[field.name]
            value = [value] if field.name == "latency_ms" else value
            setattr(self, field.name, getattr(self, field.name) + value)

    def interruptions(self, begin, end):
        """Seconds without an acknowledgement, of each bucket and writer that had a gap meeting [begin, end]."""
        return [gap["to"] - gap["from"] for gap in self.gaps if gap["from"] <= end and gap["to"] >= begin]


class LoadedCluster(Cluster):
    """A cluster whose workers are a load: settings are those of load_settings.h."""

    def __init__(self, parameter_servers, *, count, workers=1, hidden=(64,), checkpoint_interval="5m", hang="2m",
                 proxied=(), disks=None, durable_disks=False, **settings):
        text = " ".join(f"{key}={int(value)}" for key, value in settings.items())
        super().__init__(manifest(parameter_servers, workers, hidden, checkpoint_interval, hang), parameter_servers=count,
                         workers=workers, worker_program=PROGRAM, environment={"ADAMANT_LOAD": text}, proxied=proxied,
                         disks=disks, durable_disks=durable_disks)

    def acknowledged(self):
        """Updates acknowledged so far."""
        return sum(self.read(worker, "progress.json").get("acknowledged", 0) for worker in self.workers)

    def await_acknowledged(self, more=1, seconds=20):
        """Waits for so many more."""
        enough = self.acknowledged() + more
        self.await_that(lambda: self.acknowledged() >= enough, f"{more} more updates", seconds)

    def finish(self, seconds=90):
        """Ends the load, has it read everything back, and returns what it reports."""
        for worker in self.workers:
            (self.data(worker) / "finish").touch()
        report = Report()
        for worker in self.workers:
            report.add(self.await_that(lambda: self.read(worker, "report.json"), f"the report of {worker}", seconds))
        return report

    def read(self, worker, name):
        """What a worker has written under this name, progress.json or report.json; {} if it has not."""
        try:
            return json.loads((self.data(worker) / name).read_text())
        except FileNotFoundError:
            return {}


def assert_nothing_lost(test, report):
    """Acknowledged updates are there once, refused ones are not, unanswered ones at most once; no read missed any."""
    test.assertEqual(report.violations, [])
    test.assertEqual(report.stale_reads, [])
    test.assertEqual((report.rolled_back, report.lost), (0, 0))
    test.assertGreater(report.acknowledged, 0)

"""What one run of scaling.py trains, and the file of results."""

import dataclasses
import datetime
import json
import pathlib
import subprocess


CHOOSING_SEEDS = (101, 102)  # decide the rates of counterparts, and are never among those that are told


@dataclasses.dataclass(frozen=True)
class Case:
    """All that a result is found by again. Real processes, or with `virtual` those of `train_bench stale`."""
    rule: str = "momentum"  # of scaling_manifest.RULES
    rate: float = 0.02
    data: str = "mnist"  # or digits, cifar10
    workers: int = 1
    threads: int = 1  # of each worker
    batch: int = 32
    epochs: int = 5
    seed: int = 1
    warm_up: float = 0  # epochs
    exchange: int = 0  # batches between two pushes, and two fetches; 0: the job chooses
    asynchrony: bool = True  # Auto, else Off
    warm_start: int = -1  # batches of worker 0 alone; -1: the job chooses
    augmented: bool = False
    net: str = ""  # a file of nets/; none: adam-mnist, or the one for cifar10
    layers: str = ""  # of spec.optimiser.layers
    copies: int = 1  # of each bucket; with several there are four servers, else two
    disturbance: str = ""  # of scaling_real.DISTURBANCES
    build: str = ""  # "before": programs of another state; "now": of this one, run in turns with those
    virtual: tuple = ()  # options of train_bench stale; none: real processes

    def fields(self):
        """Those that are not as above: a new field leaves the old results valid."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)
                if getattr(self, field.name) != field.default}

    def __str__(self):
        return ", ".join(f"{name} {value}" for name, value in self.fields().items()) or "the recipe alone"


def case_of(fields):
    return Case(**{**fields, "virtual": tuple(fields.get("virtual", ()))})


def commit_of(folder):
    """Of the checkout that `folder` lies in; what is changed there is told."""
    done = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class Results:
    """A file of JSON lines, one a run. What is there is not run again; runs that failed are lines too."""

    def __init__(self, path):
        self._path = pathlib.Path(path)
        self._found = {}
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                result = json.loads(line)
                self._found[case_of(result["case"])] = result

    def __contains__(self, case):
        return case in self._found

    def __getitem__(self, case):
        return self._found[case]

    def of(self, cases):
        """Those that are there."""
        return [self._found[case] for case in cases if case in self._found]

    def with_more_seeds(self, cases):
        """Those of the cases, and those that differ from one of them in the seed alone: where an interval is too wide, more
        seeds are run by name. Seeds that choose rates are none of them."""
        wanted = {dataclasses.replace(case, seed=0) for case in cases}
        return [result for case, result in self._found.items()
                if case.seed not in CHOOSING_SEEDS and dataclasses.replace(case, seed=0) in wanted]

    def add(self, case, commit, result):
        line = {"case": case.fields(), "commit": commit,
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), **result}
        self._found[case] = line
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def commits(self):
        return sorted({result["commit"] for result in self._found.values()})


def failed(result):
    """It did not end with a model that has learned something."""
    return result["exit_code"] != 0 or not result["top1"]

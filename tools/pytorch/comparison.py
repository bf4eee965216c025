"""What tools/compare_pytorch measures, and the page it makes of that."""

import contextlib
import dataclasses
import functools
import statistics

import bench_report
from bench_report import Ratio, Series, number
from sides import Failure
from variants import EAGER_VARIANTS, VARIANTS

FINALISTS = 2
LEARN_NET = "adam-mnist"
LEARN_BATCH = 32
TARGET = 0.99
SHORT_EPOCHS = 3
LONG_EPOCHS = 10


@dataclasses.dataclass
class Program:
    """One side in a round, with what it measured."""

    child: object
    threads: int  # that it may use; ours may choose to use fewer
    requests: list[str] = dataclasses.field(default_factory=lambda: [""])  # per round; of PyTorch: variants
    series: dict[str, Series] = dataclasses.field(default_factory=dict)  # examples per second, by request
    shares: Series = None  # of sgemm's speed; ours only
    lines: list[dict] = dataclasses.field(default_factory=list)
    failures: dict[str, str] = dataclasses.field(default_factory=dict)  # of variants

    def take_turn(self):
        for request in self.requests:
            line = self.child.ask(request)
            self.lines.append(line)
            threads = line.get("threads", self.threads)
            self.series.setdefault(request, Series(threads)).add(line["examples_per_second"], line["processors"])
            if "share_of_product" in line:
                self.shares = self.shares or Series(threads)
                self.shares.add(line["share_of_product"], line["processors"])

    def choose_variants(self, variants):
        """Tries all, keeps the fastest."""
        speeds = {}
        for variant in variants:
            line = self.child.ask(variant)
            if "error" in line:
                self.failures[variant] = line["error"]
            else:
                trial = Series(self.threads)
                trial.add(line["examples_per_second"], line["processors"])
                speeds[variant] = trial.median
        if not speeds:
            raise Failure(f"PyTorch can train in no way: {self.failures}")
        self.requests = sorted(speeds, key=speeds.get, reverse=True)[:FINALISTS]

    @property
    def best(self):
        return max(self.series, key=lambda request: self.series[request].median)

    @property
    def result(self):
        return self.series[self.best]


@dataclasses.dataclass
class Speed:
    """The programs of one net, batch size and number of processors, by name."""

    net: str
    batch: int
    programs: dict[str, Program]

    def best_of(self, *names):
        return max((self.programs[name] for name in names if name in self.programs),
                   key=lambda program: program.result.median)


def start_programs(sides, net, batch, processors, options, stack):
    """The children of a case, by name. All wait but the one whose turn it is."""
    def program(child, threads):
        return Program(stack.enter_context(child), threads)

    seconds = ("--seconds", options.seconds)
    programs = {"ours": program(sides.ours("speed", net, batch, 1, "--on-request", *seconds), 1)}
    if processors == 1:
        programs["theirs"] = program(sides.theirs("speed", net, batch, 1, 1, *seconds), 1)
    else:
        programs["ours, 2"] = program(sides.ours("speed", net, batch, 2, "--on-request", *seconds), 2)
        programs["their threads"] = program(sides.theirs("speed", net, batch, 2, 1, *seconds), 2)
        programs["their processes"] = program(sides.theirs("speed", net, batch, 1, 2, *seconds), 2)
    return programs


def compare_speed(sides, net, batch, processors, options):
    with contextlib.ExitStack() as stack:
        programs = start_programs(sides, net, batch, processors, options, stack)
        for name, program in programs.items():
            if name.startswith("their"):
                program.choose_variants(EAGER_VARIANTS if options.quick else VARIANTS)
        for _ in range(options.reps):
            for program in programs.values():
                program.take_turn()
        return Speed(net, batch, programs)


@dataclasses.dataclass
class Learning:
    """Training time to TARGET, seed by seed; None: not within the schedule."""

    name: str
    seconds: list[float | None] = dataclasses.field(default_factory=list)
    top1: list[float] = dataclasses.field(default_factory=list)  # at the end
    processors: list[float] = dataclasses.field(default_factory=list)

    def add(self, lines):
        lines = list(lines)
        self.seconds.append(next((line["seconds"] for line in lines if line["top1"] >= TARGET), None))
        self.top1.append(lines[-1]["top1"])
        self.processors.append(lines[-1]["processors"])

    def top1_text(self):
        return f"{statistics.mean(self.top1):.2%} ({min(self.top1):.2%}–{max(self.top1):.2%})"

    @property
    def reached(self):
        return [seconds for seconds in self.seconds if seconds is not None]

    @property
    def median(self):
        return statistics.median(self.reached) if self.reached else float("inf")


def fastest_variant(sides, threads, processes, options):
    child = sides.theirs("speed", LEARN_NET, LEARN_BATCH, threads, processes, "--seconds", options.seconds)
    with child:
        program = Program(child, threads * processes)
        program.choose_variants(EAGER_VARIANTS if options.quick else VARIANTS)
        return program.requests[0]


def compare_learning(sides, options):
    """Ours on two threads first, then PyTorch's ways to use two processors."""
    data = ("--data", options.mnist, "--epochs", SHORT_EPOCHS)
    their = {"PyTorch, 2 threads": (2, 1), "PyTorch, 2 processes": (1, 2)}
    variants = {name: fastest_variant(sides, *cut, options) for name, cut in their.items()}
    results = [Learning("Adamant, 2 threads")] + [Learning(f"{name} ({variants[name]})") for name in their]
    for seed in range(1, options.seeds + 1):
        starts = [functools.partial(sides.ours, "learn", LEARN_NET, LEARN_BATCH, 2, "--seed", seed, *data)]
        for name, (threads, processes) in their.items():
            starts.append(functools.partial(sides.theirs, "learn", LEARN_NET, LEARN_BATCH, threads, processes,
                                            "--variant", variants[name], "--seed", seed, *data))
        for result, start in zip(results, starts, strict=True):
            with start() as child:  # one after another: each has both processors
                result.add(child.lines())
    return results


def measure_accuracy(sides, options):
    """Ours after LONG_EPOCHS, on one thread and on two."""
    results = []
    for threads in (1, 2):
        results.append(Learning(f"{threads} thread{'s' if threads > 1 else ''}"))
        for seed in range(1, options.seeds + 1):
            child = sides.ours("learn", LEARN_NET, LEARN_BATCH, threads, "--seed", seed, "--data", options.mnist,
                               "--epochs", LONG_EPOCHS, "--evaluations", 1)
            with child:
                results[-1].add(child.lines())
    return results


class Page:
    """Prints what is known as soon as it is known, and keeps it."""

    def __init__(self, command, their_versions):
        self.command = command
        self.their_versions = their_versions
        self.parts = []
        self.failures = {}

    def text(self):
        return "".join(self.parts)

    def say(self, text):
        self.parts.append(text)
        print(text, end="", flush=True)

    def head(self):
        self.say(
            "# The engine beside PyTorch\n\n"
            f"{bench_report.today()}, {bench_report.machine()}.\nAdamant: {bench_report.versions()}.\n"
            f"{self.their_versions}.\n\n    {self.command}\n\n"
            "Examples per second with momentum SGD: medians (smallest–largest) of repetitions in turns with the other\n"
            "side. PyTorch: the best of {NCHW, channels last} × {fused, unfused} × {eager, compiled}. A ratio is of\n"
            "medians; its range is over rounds. Repetitions without at least 97% of their processors do not count; where\n"
            "all were so (*), figures are by processor time.\n")

    def begin(self, title, header):
        self.say(f"\n## {title}\n\n" + bench_report.table(header, []))

    def row(self, *cells):
        self.say("| " + " | ".join(cells) + " |\n")

    def begin_speed(self, processors):
        if processors == 1:
            self.begin("One processor", ["net", "batch", "Adamant", "of sgemm's speed", "PyTorch", "its best", "ratio"])
        else:
            self.begin("Two processors",
                       ["net", "batch", "cache-line ping, ns", "Adamant, 1 thread", "Adamant, 2 threads", "in mode",
                        "of 1 thread", "PyTorch, 2 threads", "PyTorch, 2 processes", "its best", "ratio to the better"])

    def add_speed(self, speed):
        for program in speed.programs.values():
            self.failures |= program.failures
        programs = speed.programs
        name = speed.net.rpartition("/")[2].removesuffix(".yaml")
        ours = programs["ours"]
        if "theirs" in programs:
            theirs = programs["theirs"]
            self.row(name, str(speed.batch), ours.result.text(), f"{ours.shares.median:.0%}",
                     theirs.result.text(), theirs.best, Ratio(ours.result, theirs.result).text())
            return
        two = programs["ours, 2"]
        best = speed.best_of("their threads", "their processes")
        self.row(name, str(speed.batch), self.ping_text(two.lines), ours.result.text(), two.result.text(),
                 self.mode_text(two.lines), Ratio(two.result, ours.result).text(),
                 programs["their threads"].result.text(), programs["their processes"].result.text(), best.best,
                 Ratio(two.result, best.result).text())

    @staticmethod
    def mode_text(lines):
        """The way in which ours uses two processors; it is chosen when the program starts."""
        mode, every = lines[0]["mode"], lines[0]["share_every"]
        return mode if every == 1 else f"{mode} {every}"

    @staticmethod
    def ping_text(lines):
        pings = [line[key] for line in lines for key in ("ping_ns_before", "ping_ns_after") if line[key] is not None]
        return f"{number(min(pings))}–{number(max(pings))}" if pings else "not measured"

    def add_learning(self, results):
        self.begin("MNIST to 99.0%",
                   ["program", "training seconds", "seeds that reached it", f"top-1 after {SHORT_EPOCHS} epochs",
                    "processors", "Adamant's time, of this"])
        for result in results:
            seconds = result.reached
            self.row(result.name,
                     f"{number(result.median)} ({number(min(seconds))}–{number(max(seconds))})" if seconds else "never",
                     f"{len(seconds)} of {len(result.seconds)}",
                     result.top1_text(),
                     f"{statistics.mean(result.processors):.2f}",
                     f"{results[0].median / result.median:.2f}" if seconds else "")

    def add_accuracy(self, results):
        self.begin(f"Adamant on MNIST, {LONG_EPOCHS} epochs", ["threads", "top-1 at the end, mean of seeds", "seeds"])
        for result in results:
            self.row(result.name, result.top1_text(), str(len(result.top1)))

    def end(self):
        for variant, failure in self.failures.items():
            self.say(f"\nNot everywhere measured: {variant} ({failure}).\n")

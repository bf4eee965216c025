"""One mutation: built, and shown to the tests that run its code, until one of them notices."""

import dataclasses
import pathlib
import shutil
import time
from collections.abc import Callable, Iterator

import programs
from mutations import Mutation
from tree import Tree

UNIT = "release"  # presets
SIMULATION = "failpoints"  # with faults at steps
FIRST_SEEDS = 10  # then four times as many, and so on: most are caught by the first
SECONDS_OF_A_START = 60


@dataclasses.dataclass
class Limits:
    seeds: int = 1000
    unit_seconds: float = 300
    seed_seconds: float = 2


@dataclasses.dataclass
class Outcome:
    verdict: str  # unit, simulation, survived, broken (does not build) or unclear (fails without the mutation too)
    test: str = ""
    seed: int = 0  # 0: it was not one of a seed
    detail: str = ""
    seconds: float = 0


def ranges(begin: int, seeds: int) -> Iterator[tuple[int, int]]:
    """(first, count), of growing size, over so many seeds."""
    first, size = begin, FIRST_SEEDS
    while first < begin + seeds:
        count = min(size, begin + seeds - first)
        yield first, count
        first, size = first + count, 4 * size


class Trial:
    def __init__(self, tree: Tree, limits: Limits, tell: Callable[[str], None], only: str | None = None):
        self.tree = tree
        self.limits = limits
        self.tell = tell
        self.only = only  # unit, simulation; None: both
        self.intact_units: dict[str, bool] = {}  # whether it passes

    def run(self, mutation: Mutation) -> Outcome:
        started = time.monotonic()
        try:
            outcome = self.show_to_all(mutation)
        finally:
            self.tree.restore()
        outcome.seconds = round(time.monotonic() - started, 1)
        return outcome

    def show_to_all(self, mutation: Mutation) -> Outcome:
        unclear: Outcome | None = None
        for kind, preset, targets, show in (("unit", UNIT, mutation.unit, self.show_to_unit),
                                            ("simulation", SIMULATION, mutation.simulation, self.show_to_simulation)):
            if self.only not in (None, kind):
                continue
            built, problem = self.build(mutation, preset, targets)
            if problem:
                return Outcome("broken", detail=problem)
            for target, program in built:
                outcome = show(target, program)
                if outcome.verdict in ("unit", "simulation"):
                    return outcome
                unclear = unclear or (outcome if outcome.verdict == "unclear" else None)
        return unclear or Outcome("survived")

    def count_ranges(self, mutation: Mutation, first: int, count: int) -> tuple[list[Outcome], str]:
        """What the simulations notice in each of so many ranges of seeds; or why it does not build."""
        try:
            built, problem = self.build(mutation, SIMULATION, mutation.simulation)
        finally:
            self.tree.restore()
        return [] if problem else [self.show_range(built, first + i * self.limits.seeds) for i in range(count)], problem

    def show_range(self, built: list[tuple[str, pathlib.Path]], first: int) -> Outcome:
        for target, program in built:
            outcome = self.show_to_simulation(target, program, first)
            if outcome.verdict == "simulation":
                return outcome
        return Outcome("survived")

    def build(self, mutation: Mutation, preset: str, targets: tuple[str, ...]) -> tuple[
            list[tuple[str, pathlib.Path]], str]:
        """Programs with the mutation, kept: to compare with the code as it is may take it back. Or why there are none."""
        if not targets:
            return [], ""
        self.tell(f"builds {', '.join(targets)}")
        self.tree.mutate(mutation)
        problem = self.tree.build(preset, targets)
        return [] if problem else [(target, self.keep(preset, target)) for target in targets], problem

    def keep(self, preset: str, target: str) -> pathlib.Path:
        path = self.tree.intact.parent / "mutated" / target
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        shutil.copy2(self.tree.program(preset, target), path)
        return path

    def show_to_unit(self, target: str, program: pathlib.Path) -> Outcome:
        self.tell(f"runs {target}")
        run = programs.run(program, self.limits.unit_seconds)
        if not run.failed:
            return Outcome("survived")
        return Outcome("unit" if self.passes_intact(target) else "unclear", test=target, detail=run.case())

    def passes_intact(self, target: str) -> bool:
        if target not in self.intact_units:
            self.tell(f"runs {target} without the mutation")
            run = programs.run(self.tree.intact_program(UNIT, target), self.limits.unit_seconds)
            self.intact_units[target] = not run.failed
        return self.intact_units[target]

    def show_to_simulation(self, target: str, program: pathlib.Path, begin: int = 1) -> Outcome:
        unclear = None
        for first, count in ranges(begin, self.limits.seeds):
            self.tell(f"runs {target}, seeds {first} to {first + count - 1}")
            run = programs.run_seeds(program, first, count, self.seconds_for(count))
            if not run.failed:
                continue
            for seed, broken in run.seeds(first, count):
                if not self.fails_intact(target, seed, 1):
                    return Outcome("simulation", test=target, seed=seed, detail=broken)
            if not run.seeds(first, count) and not self.fails_intact(target, first, count):
                return Outcome("simulation", test=target,
                               detail=f"{run.case()}, in seeds {first} to {first + count - 1}")
            unclear = unclear or Outcome("unclear", test=target, detail=f"fails in seeds {first} to {first + count - 1}")
        return unclear or Outcome("survived")

    def fails_intact(self, target: str, first: int, count: int) -> bool:
        return programs.run_seeds(self.tree.intact_program(SIMULATION, target), first, count, self.seconds_for(count)).failed

    def seconds_for(self, seeds: int) -> float:
        return SECONDS_OF_A_START + seeds * self.limits.seed_seconds

"""What is known of mutations: a JSON line each, in a file that a run goes on from, and a table of it."""

import collections
import dataclasses
import datetime
import json
import pathlib

from mutations import Mutation
from trial import Outcome

NOTICED = ("unit", "simulation")


@dataclasses.dataclass
class Result:
    mutation: str
    key: str  # of the file, the edit and the tests
    sources: str  # of all that was built
    seeds: int  # that were to be run
    outcome: Outcome
    at: str = ""


class Results:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.by_name: dict[str, Result] = {}  # the newest
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    fields = json.loads(line)
                    fields["outcome"] = Outcome(**fields["outcome"])
                    result = Result(**fields)
                except (ValueError, TypeError, KeyError):
                    continue  # cut off when a run was stopped
                self.by_name[result.mutation] = result

    def add(self, result: Result) -> None:
        result.at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.by_name[result.mutation] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        begun = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a") as file:
            file.write(("\n" if begun else "") + json.dumps(dataclasses.asdict(result)) + "\n")

    def of(self, mutation: Mutation, key: str) -> Result | None:
        result = self.by_name.get(mutation.name)
        return result if result is not None and result.key == key else None

    def stands(self, mutation: Mutation, key: str, sources: str, seeds: int) -> bool:
        """Whether there is nothing new to be had. What nobody noticed may be noticed by other tests, or more seeds."""
        result = self.of(mutation, key)
        if result is None:
            return False
        return result.outcome.verdict in NOTICED or (result.sources == sources and result.seeds >= seeds)


def verdict_of(mutation: Mutation, result: Result | None) -> str:
    if result is None:
        return "not run"
    verdict = result.outcome.verdict
    if verdict == "survived":
        return "explained" if mutation.harmless else "unexplained"
    return verdict


def words_for(mutation: Mutation, result: Result | None) -> str:
    verdict = verdict_of(mutation, result)
    if verdict == "not run":
        return "not run"
    outcome = result.outcome
    if verdict == "unit":
        return f"{outcome.test}: {outcome.detail}"
    if verdict == "simulation":
        return f"{outcome.test}" + (f", seed {outcome.seed}" if outcome.seed else "") + f": {outcome.detail}"
    if verdict == "broken":
        return "does not build"
    if verdict == "unclear":
        return f"unclear: {outcome.test} fails without it, too ({outcome.detail})"
    seeds = f" (not noticed in {result.seeds} seeds)" if mutation.simulation else ""
    return f"survives: {mutation.harmless}{seeds}" if mutation.harmless else f"**SURVIVES**{seeds}"


SUMS = {"unit": "noticed by unit tests", "simulation": "by simulations", "explained": "survive, explained",
        "unexplained": "survive, unexplained", "broken": "do not build", "unclear": "unclear", "not run": "not run"}


def sums(mutations: list[Mutation], found: list[Result | None]) -> collections.Counter:
    return collections.Counter(verdict_of(mutation, result) for mutation, result in zip(mutations, found))


def summary(mutations: list[Mutation], found: list[Result | None]) -> str:
    counted = sums(mutations, found)
    return f"{len(mutations)} mutations: " + ", ".join(
        f"{counted[verdict]} {words}" for verdict, words in SUMS.items() if counted[verdict])


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def row_of_ranges(mutation: Mutation, found: list[Outcome], problem: str, first: int, seeds: int) -> tuple[str, int]:
    """In Markdown, and in how many of the ranges it is noticed."""
    if problem:
        return f"| {mutation.name} | does not build | | |", 0
    noticed = [outcome for outcome in found if outcome.verdict == "simulation"]
    latest = max(((outcome.seed - first) % seeds + 1 for outcome in noticed if outcome.seed), default=0)
    programs = ", ".join(sorted({outcome.test for outcome in noticed}))
    return f"| {mutation.name} | {len(noticed)} of {len(found)} | {latest or ''} | {programs} |", len(noticed)


def table(mutations: list[Mutation], found: list[Result | None]) -> str:
    """In Markdown, by subject."""
    lines = [summary(mutations, found)]
    subject = ""
    for mutation, result in zip(mutations, found):
        if mutation.subject != subject:
            subject = mutation.subject
            lines += ["", f"## {subject}", "", "| mutation | the promise that it breaks | noticed by |", "|---|---|---|"]
        lines.append(f"| {mutation.name} | {cell(mutation.breaks)} | {cell(words_for(mutation, result))} |")
    return "\n".join(lines)

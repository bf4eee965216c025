"""Groups of runs that differ in their seeds alone, and what they are held against: for the rows of scaling.py."""

import dataclasses
import math
import statistics
import typing

from scaling_case import CHOOSING_SEEDS, failed

# Student's t, two-sided 95 %, by runs; a few more runs than listed are taken for as many as are.
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26, 12: 2.20, 15: 2.14, 20: 2.09,
           30: 2.05, 60: 2.00}

MOST_RATE = 8  # times one worker's rate, in a counterpart


@dataclasses.dataclass
class Group:
    name: str
    cases: list
    against: list = dataclasses.field(default_factory=list)  # cases
    target: str = ""  # in words; empty: stated only
    met: typing.Callable = None  # (results, results against) -> whether
    points: float = 0  # that the target speaks of: more runs are needed while the interval is wider
    told: bool = True  # else it only decides what is run next

    def complete(self, results):
        return all(case in results for case in [*self.cases, *self.against])


def last(found):
    """Top-1 at the end, of those that ended."""
    return [result["top1"][-1] for result in found if not failed(result)]


def half_width(values):
    """Of the 95 % interval of the mean."""
    if len(values) < 2:
        return math.inf
    factor = STUDENT[max(runs for runs in STUDENT if runs <= len(values))]
    return factor * statistics.stdev(values) / math.sqrt(len(values))


def difference(found, against):
    """Of the means at the end, in points; NaN where there is none."""
    here, there = last(found), last(against)
    return statistics.mean(here) - statistics.mean(there) if here and there else math.nan


def diverged(found):
    return [result for result in found if failed(result) or result["attempts"] > 1]


def near(points, worst=0):
    """Nothing failed, the mean is not further below the other one, and no run is below `worst`."""
    def met(found, against):
        return (not any(map(failed, found)) and difference(found, against) >= -points and
                min(last(found), default=0) >= worst)
    return met


def workers_text(workers):
    return f"{workers} worker{'s' if workers > 1 else ''}"


def seeds_of(plan, case, default=range(1, 6)):
    return [dataclasses.replace(case, seed=seed) for seed in plan.seeds or default]


def counterpart(plan, results, case, default=range(1, 6)):
    """(the group that chooses the rate, the cases at the chosen one): one worker that takes the batches of all together,
    with an epoch of warm-up. No cases while that is not decided; of one thread it is what it is."""
    threads = case.workers * case.threads
    if threads == 1:
        return None, seeds_of(plan, case, default)
    most = min(threads, MOST_RATE)
    base = dataclasses.replace(case, workers=1, threads=1, batch=case.batch * threads,
                               warm_up=min(1.0, case.epochs / 2), exchange=0)
    candidates = {factor: [dataclasses.replace(base, rate=case.rate * factor, seed=seed) for seed in CHOOSING_SEEDS]
                  for factor in sorted({max(1, most // 4), max(1, most // 2), most})}
    choosing = Group("", [each for cases in candidates.values() for each in cases], told=False)
    if not choosing.complete(results):
        return choosing, []
    best = max(candidates, key=lambda factor: statistics.mean(last(results.of(candidates[factor])) or [0]))
    return choosing, seeds_of(plan, dataclasses.replace(base, rate=case.rate * best), default)


def beside_counterpart(plan, results, name, case, points, worst=0):
    """Groups that hold a case against its counterpart."""
    choosing, against = counterpart(plan, results, case)
    within = f"at most {points} points below" + (f", no run below {worst}" if worst else "")
    groups = [choosing] if choosing else []
    if case.workers * case.threads > 1 and against:
        groups.append(Group(f"{name}: counterpart, rate {against[0].rate:g}", against))
    return [*groups, Group(name, seeds_of(plan, case), against, within, near(points, worst), points)]

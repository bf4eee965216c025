"""The rows of scaling.py: each is a function from (plan, results) to groups of runs. Some groups follow from the results of
others, so that rows are asked again when those are there."""

import dataclasses

import scaling_virtual
from scaling_case import Case, failed
from scaling_groups import Group, beside_counterpart, counterpart, difference, diverged, last, near, seeds_of, workers_text

RULE_RATES = {"momentum": 0.02, "sgd": 0.1, "server-momentum": 0.002, "server-sgd": 0.1, "adagrad": 0.01}
CIFAR_RATES = {"momentum": 0.01, "sgd": 0.05, "server-momentum": 0.001, "server-sgd": 0.05, "adagrad": 0.01}

VIRTUAL = ("--latency", "0.5")
TENTHS = (*VIRTUAL, "--evaluations", "10")
STEPS_A_SECOND = 100  # of the virtual pauses: a step of 10 ms


@dataclasses.dataclass
class Plan:
    """What the command line says of all rows."""
    seeds: list  # empty: as the row has them
    workers: list  # empty: as the row has them
    epochs: int  # 0: as the row has them

    def case(self, **fields):
        case = Case(**fields)
        return dataclasses.replace(case, epochs=self.epochs) if self.epochs else case

    def numbers(self, default):
        return self.workers or default


def recipe(plan, results):
    return [group for workers in plan.numbers([1, 2, 4, 8, 16])
            for group in beside_counterpart(plan, results, f"{workers_text(workers)}", plan.case(workers=workers), 0.15, 98.6)]


def small_net(plan, results):
    return [group for epochs in (1, 5) for workers in plan.numbers([1, 2, 4, 8])
            for group in beside_counterpart(plan, results, f"{workers_text(workers)}, epochs: {epochs}",
                                            plan.case(workers=workers, net="small", epochs=epochs), 0.5)]


def written(plan, _):
    return [Group(f"{workers_text(workers)}, 8 written", seeds_of(plan, plan.case(workers=workers, exchange=8)), [],
                  "none succeeds at chance", lambda found, _: all(failed(each) or each["top1"][-1] > 20 for each in found))
            for workers in plan.numbers([1, 2, 4, 8, 16])]


def other_rates(plan, _):
    groups = []
    for factor in (0.5, 2):
        alone = seeds_of(plan, plan.case(rate=0.02 * factor))
        for workers in plan.numbers([1, 2, 4, 8, 16]):
            groups.append(Group(f"{workers_text(workers)}, rate x {factor}", seeds_of(
                plan, plan.case(workers=workers, rate=0.02 * factor)), alone, "none diverges unless one worker does",
                lambda found, against: bool(diverged(against)) or not diverged(found)))
    return groups


def rules(data, rates, workers, points, **fields):
    def row(plan, results):
        return [group for rule, rate in rates.items() for number in plan.numbers(workers)
                for group in beside_counterpart(plan, results, f"{rule}, {workers_text(number)}",
                                                plan.case(rule=rule, rate=rate, data=data, workers=number, **fields), points)]
    return row


def threads(plan, _):
    whole = seeds_of(plan, plan.case(workers=8))
    return [Group("8 x 1", whole)] + [
        Group(f"{workers} x {each}", seeds_of(plan, plan.case(workers=workers, threads=each)), whole,
              "within 0.15 points of 8 x 1", lambda found, against: abs(difference(found, against)) <= 0.15, 0.15)
        for workers, each in ((4, 2), (2, 4))]


def disturbed(disturbance, points=0.15, **fields):
    def row(plan, _):
        whole = seeds_of(plan, plan.case(workers=8, epochs=20, **fields))
        def met(found, against):
            lost = sum(result["updates_lost"] for result in found)
            return near(points)(found, against) and (disturbance != "server-kills" or lost == 0)
        target = f"at most {points} points below" + (", no update lost" if disturbance == "server-kills" else "")
        return [Group("undisturbed", whole), Group(disturbance, seeds_of(plan, plan.case(
            workers=8, epochs=20, disturbance=disturbance, **fields)), whole, target, met,
            points)]
    return row


def disturbed_virtual(plan, _):
    whole = seeds_of(plan, plan.case(workers=8, epochs=20, virtual=VIRTUAL))
    pause = f"7:{20 * STEPS_A_SECOND}:{6 * STEPS_A_SECOND}"
    return [Group("undisturbed", whole)] + [
        Group(name, seeds_of(plan, plan.case(workers=8, epochs=20, virtual=(*VIRTUAL, *options))), whole,
              "at most 0.15 points below", near(0.15), 0.15)
        for name, options in (("one four times as slow", ("--straggler", "7:4")), ("one that pauses", ("--pause", pause)))]


def to_target(plan, results):
    """Examples, and time on N machines, until 98.5 %, against one worker's: at most so many times as much."""
    most = {4: (1.3, 1 / 2.8), 16: (2, 1 / 7.2)}  # times examples, times time
    alone = seeds_of(plan, plan.case(virtual=TENTHS))
    groups = [Group("1 machine", alone)]
    for workers in [number for number in plan.numbers([4, 16, 64]) if number > 1]:
        limit = most.get(workers)
        case = plan.case(workers=workers, virtual=TENTHS)
        target = f"{limit[0]} x the examples, {limit[1]:.2f} x the time of one" if limit else ""
        met = (lambda found, against, limit=limit: reached(found, against, *limit)) if limit else None
        choosing, beside = counterpart(plan, results, case)
        groups += [choosing, Group(f"{workers} machines", seeds_of(plan, case), alone, target, met)]
        if beside:
            groups.append(Group(f"{workers} machines: counterpart on one, rate {beside[0].rate:g}", beside))
    return groups


def mean_of(found, name):
    """None where a run did not get there."""
    values = [result.get(name) for result in found]
    return sum(values) / len(values) if values and None not in values else None


def reached(found, alone, examples, time):
    here, there = ([mean_of(each, name) for name in ("examples_to_target", "steps_to_target")] for each in (found, alone))
    return None not in (*here, *there) and here[0] <= examples * there[0] and here[1] <= time * there[1]


def scale_virtual(plan, _):
    steady = seeds_of(plan, plan.case(workers=4, epochs=6, virtual=VIRTUAL))
    third = steady[0].epochs / 3
    scales = ("--scale", f"{third:g}:16", "--scale", f"{2 * third:g}:4")
    moving = plan.case(workers=2, epochs=6, virtual=(*VIRTUAL, *scales))

    def met(found, against):
        falls = [before - after for result in found for before, after in zip(result["top1"], result["top1"][1:])]
        return near(0.2)(found, against) and max(falls, default=0) <= 0.5
    return [Group("4 all the time", steady), Group("2, then 16, then 4", seeds_of(plan, moving), steady,
                                                   "no epoch 0.5 below the one before; ends at most 0.2 below", met)]


def one_worker(plan, _):
    """What diverges. A NaN in epoch 3 is a test of its own: tests/e2e/train_failpoints_test.py."""
    def recovers(found, _):
        return all(not failed(result) and result["top1"][-1] >= 98.5 and result["attempts"] <= 4 for result in found)

    def fails(found, _):
        return all(result["exit_code"] == 1 and "diverged" in result["message"] for result in found)

    def recovers_or_fails(found, _):
        return all(not failed(result) or "diverged" in result["message"] for result in found)
    dying = '[{layer: fc1, rate: 5}]'
    return [Group("rate x 8", seeds_of(plan, plan.case(rate=0.16)), [], "98.5 % within three tries", recovers),
            Group("rate 100", seeds_of(plan, plan.case(rate=100)), [], "failed with the message", fails),
            Group("ReLUs die (a layer's rate is 5)", seeds_of(plan, plan.case(layers=dying)), [],
                  "recovered, or failed with the message", recovers_or_fails)]


def distbelief(plan, results):
    """Virtual, correction off: {Adagrad, Sgd} x {warm start, none} x workers x rates around the best of one worker."""
    factors = (0.25, 0.5, 1, 2, 4)
    groups = []
    for rule, start in (("adagrad", 0.01), ("server-sgd", 0.1)):
        base = plan.case(rule=rule, epochs=2, asynchrony=False, virtual=VIRTUAL)
        candidates = {rate: [dataclasses.replace(base, rate=rate, seed=seed) for seed in (101, 102)]
                      for rate in (start * factor for factor in factors)}
        choosing = Group("", [case for cases in candidates.values() for case in cases], told=False)
        groups.append(choosing)
        if not choosing.complete(results):
            continue
        best = max(candidates, key=lambda rate: sum(last(results.of(candidates[rate]))))
        for warm_start in (0, 200):
            for workers in plan.numbers([1, 4, 16]):
                cases = [case for factor in factors for case in seeds_of(plan, dataclasses.replace(
                    base, rate=best * factor, workers=workers, warm_start=warm_start))]
                name = f"{rule}{', warm start' if warm_start else ''}, {workers_text(workers)}, rates {best:g} x 0.25 to 4"
                groups.append(Group(name, cases))
    return groups


def project_adam(plan, results):
    seeds = range(1, 11)
    groups = []
    for augmented in (False, True):
        case = plan.case(workers=8, epochs=20, augmented=augmented)
        choosing, against = counterpart(plan, results, case, seeds)
        name = "augmented" if augmented else "not augmented"
        groups += [choosing, Group(f"{name}: counterpart", against),
                   Group(f"{name}: 8 workers", seeds_of(plan, case, seeds), against, "stated, with its interval")]
    return groups


def speed(plan, _):
    before = seeds_of(plan, plan.case(workers=2, build="before"))
    now = seeds_of(plan, plan.case(workers=2, build="now"))
    def met(found, against):
        if any(map(failed, [*found, *against])):
            return False
        return abs(difference(found, against)) <= 0.1 and median_speed(found) >= 0.97 * median_speed(against)
    return [Group("the state before", before), Group("now", now, before, "within 0.1 points; examples/s >= 0.97", met)]


def median_speed(found):
    speeds = sorted(result["examples_per_second"] for result in found)
    return speeds[len(speeds) // 2]


def match(plan, results):
    """Whether virtual workers with the times of real ones do as those do."""
    groups = []
    for workers in plan.numbers([2, 4, 8]):
        real = Group(f"{workers_text(workers)}, real", seeds_of(plan, plan.case(workers=workers)))
        groups.append(real)
        measured = [result["measured"] for result in results.of(real.cases) if result.get("measured")]
        if not real.complete(results) or not measured:
            continue
        mean = {name: sum(each[name] for each in measured) / len(measured) for name in measured[0]}
        options = scaling_virtual.options_as(mean, cores_shared=True)
        groups.append(Group(f"{workers_text(workers)}, virtual, {' '.join(options)}", seeds_of(
            plan, plan.case(workers=workers, virtual=options)), real.cases,
            "staleness within 15 %, accuracy within 0.15 points", alike, 0.15))
    return groups


def alike(found, against):
    here = [result["gap"] for result in found if result.get("gap") is not None]
    there = [result["measured"]["gap"] for result in against if result.get("measured")]
    if not here or not there:
        return False
    ratio = (sum(here) / len(here)) / (sum(there) / len(there))
    return abs(ratio - 1) <= 0.15 and abs(difference(found, against)) <= 0.15


# name: (heading, function)
ROWS = {
    "recipe": ("The recipe, nothing else changed than the number of workers", recipe),
    "small-net": ("A small net of two layers, MNIST, 1 and 5 epochs", small_net),
    "written": ("With `fetchEvery` and `pushEvery` of 8", written),
    "other-rates": ("Half and twice the rate", other_rates),
    "rules-mnist": ("Rules and locations, MNIST", rules("mnist", RULE_RATES, [1, 4, 16], 0.3)),
    "rules-digits": ("Rules and locations, generated digits", rules("digits", RULE_RATES, [1, 4, 16], 0.3)),
    "rules-cifar10": ("Rules and locations, CIFAR-10",
                      rules("cifar10", CIFAR_RATES, [1, 16], 1.0, batch=64, epochs=10)),
    "rules-cifar10-quarter": ("Rules and locations, CIFAR-10, a net with a quarter of the maps, 5 epochs",
                              rules("cifar10", CIFAR_RATES, [1, 16], 1.0, batch=64, net="cifar10-quarter")),
    "threads": ("Workers x threads", threads),
    "to-target": ("Examples and time to 98.5 %, virtual machines", to_target),
    "straggler": ("One of 8 workers four times as slow", disturbed("straggler")),
    "pauses": ("One of 8 workers stops for 6 s every 20 s", disturbed("pauses")),
    "disturbed-virtual": ("The same, virtual machines", disturbed_virtual),
    "scale-virtual": ("Workers come and go, virtual machines", scale_virtual),
    "server-kills": ("A parameter server is killed every 10 s, 3 copies", disturbed("server-kills", copies=3)),
    "one-worker": ("One worker at what cannot go well", one_worker),
    "distbelief": ("DistBelief's claim, correction off, virtual machines", distbelief),
    "project-adam": ("Project Adam's claim", project_adam),
    "speed": ("Two workers, beside another state", speed),
    "match": ("Virtual workers beside real ones", match),
}

"""The tables of scaling.py."""

import math
import statistics

from scaling_groups import difference, failed, half_width, last

COLUMNS = ("runs", "top-1, %", "worst", "went back", "failed", "batches of others", "seconds or steps", "beside", "target",
           "met")


def number(value, digits=2):
    return f"{value:.{digits}f}" if math.isfinite(value) else ""


def mean_with_interval(values):
    if not values:
        return ""
    width = number(half_width(values))
    return f"{statistics.mean(values):.2f}{' ± ' + width if width else ''}"


def spent(found):
    """Median of seconds of training, or of steps of virtual machines, with those to 98.5 % where they are known."""
    if any("training_seconds" in result for result in found):
        return f"{statistics.median(result.get('training_seconds', 0) for result in found):.0f} s"
    steps = [result["steps"] for result in found if result.get("steps")]
    text = f"{statistics.median(steps):.0f}" if steps else ""
    examples = [result["examples_to_target"] for result in found if result.get("examples_to_target")]
    if examples:
        until = statistics.mean(result["steps_to_target"] for result in found if result.get("steps_to_target"))
        text += f"; to 98.5 %: {statistics.mean(examples):.0f} examples, {until:.0f} steps ({len(examples)} runs)"
    return text


def width_of(found, against):
    """Half of the 95 % interval of the difference of the means."""
    return math.hypot(half_width(last(found)), half_width(last(against)))


def beside(found, against):
    gap, width = difference(found, against), width_of(found, against)
    if not math.isfinite(gap):
        return ""
    return f"{gap:+.2f}{' ± ' + number(width) if math.isfinite(width) else ''}"


def met_text(group, found, against):
    if not group.met:
        return ""
    if not found or (group.against and not against):
        return "not measured"
    wide = group.points and group.against and group.cases != group.against and width_of(found, against) > group.points
    few = wide or len(found) < len(group.cases) or len(against) < len(group.against)
    return ("yes" if group.met(found, against) else "**no**") + (", too few runs" if few else "")


def batches_of_others(result):
    """Mean of the run: as it was measured exactly, else of a histogram by powers of two."""
    exact = result.get("gap", (result.get("measured") or {}).get("gap"))
    return exact if exact is not None or not result["staleness"] else statistics.mean(result["staleness"])


def cells(group, results):
    found, against = results.with_more_seeds(group.cases), results.with_more_seeds(group.against)
    accuracies = last(found)
    stale = [batches for batches in map(batches_of_others, found) if batches is not None]
    return (group.name, f"{len(found)} of {len(group.cases)}", mean_with_interval(accuracies),
            number(min(accuracies, default=math.nan)), sum(result["attempts"] > 1 for result in found),
            sum(map(failed, found)), number(statistics.mean(stale) if stale else math.nan, 1), spent(found) if found else "",
            beside(found, against) if group.target else "", group.target, met_text(group, found, against))


def section(heading, groups, results):
    """Empty where nothing was run; else the groups that have runs, and the names of the others."""
    told = [group for group in groups if group.told and group.cases]
    measured = [group for group in told if results.of(group.cases)]
    if not measured:
        return ""
    lines = [f"## {heading}", "", "| | " + " | ".join(COLUMNS) + " |", "|" + " --- |" * (len(COLUMNS) + 1)]
    lines += ["| " + " | ".join(map(str, cells(group, results))) + " |" for group in measured]
    missing = [group.name for group in told if group not in measured]
    if missing:
        lines += ["", f"Not measured: {'; '.join(missing)}."]
    return "\n".join(lines) + "\n"


def write(path, text):
    """Replaces what stands between the marks in the page, which must be there."""
    begin, end = "<!-- scaling.py -->\n", "<!-- end -->"
    page = path.read_text()
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    if not rest or not tail:
        raise SystemExit(f"{path} has no lines '{begin.strip()}' and '{end}' for the tables")
    path.write_text(f"{head}{begin}{text}\n{end}{tail}")

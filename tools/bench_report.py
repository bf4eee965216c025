"""What the pages under docs/bench have in common: figures with their spread, ratios, tables, the machine."""

import dataclasses
import datetime
import os
import pathlib
import platform
import re
import statistics
import subprocess

UNDISTURBED = 0.97  # of its processors' time: below it a repetition says more about others than about the program

# What Google Benchmark says of every repetition; the rest are a benchmark's own counters.
OF_EVERY_BENCHMARK = {
    "name", "run_name", "run_type", "label", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "error_occurred", "error_message"}


@dataclasses.dataclass
class Series:
    """Figures of one thing, repetition by repetition; the larger, the better.

    A repetition is disturbed if others took a part of its `threads` processors from it. Disturbed ones do not count while
    there are others; if all were, they do, by processor time instead of time, and the figure says so.
    """

    threads: int = 1
    values: list[float] = dataclasses.field(default_factory=list)
    processors: list[float] = dataclasses.field(default_factory=list)  # that each had, on the average

    def add(self, value: float, processors: float) -> None:
        self.values.append(value)
        self.processors.append(processors)

    def undisturbed(self, index: int) -> bool:
        return self.processors[index] >= UNDISTURBED * self.threads

    @property
    def kept(self) -> list[int]:
        """The repetitions that count."""
        every = range(len(self.values))
        return [i for i in every if self.undisturbed(i)] or list(every)

    @property
    def disturbed(self) -> bool:
        return not any(map(self.undisturbed, range(len(self.values))))

    def figure(self, index: int) -> float:
        return self.values[index] * (self.threads / self.processors[index] if self.disturbed else 1)

    @property
    def median(self) -> float:
        return statistics.median(map(self.figure, self.kept))

    def text(self) -> str:
        """Median (smallest to largest); * when all repetitions were disturbed."""
        return spread([self.figure(i) for i in self.kept]).replace(" (", "* (" if self.disturbed else " (", 1)


@dataclasses.dataclass
class Ratio:
    """`ours` over `theirs`, of medians; the range is over rounds, of repetitions that followed each other."""

    ours: Series
    theirs: Series

    @property
    def value(self) -> float:
        return self.ours.median / self.theirs.median

    def text(self) -> str:
        rounds = set(self.ours.kept) & set(self.theirs.kept)
        of_rounds = [self.ours.figure(i) / self.theirs.figure(i) for i in rounds]
        mark = "*" if self.ours.disturbed or self.theirs.disturbed else ""
        spread = f" ({min(of_rounds):.2f}–{max(of_rounds):.2f})" if of_rounds else ""
        return f"**{self.value:.2f}**{mark}{spread}"


def number(value: float) -> str:
    """Three digits or more: 7.27 G, 12,345, 123, 12.3, 1.23."""
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """In Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def spread(values: list[float]) -> str:
    """Median (smallest–largest)."""
    return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"


def figures_of_benchmarks(report: dict) -> list[dict]:
    """What a program of Google Benchmark reports as JSON: for each benchmark the median, smallest and largest of its
    repetitions."""
    by_name: dict[str, list[dict]] = {}
    for repetition in report["benchmarks"]:
        if repetition["run_type"] == "iteration":
            by_name.setdefault(repetition["run_name"], []).append(repetition)
    benchmarks = []
    for name, repetitions in by_name.items():
        first = repetitions[0]
        benchmark = {"benchmark": f"{name} {first.get('label', '')}".strip()}
        benchmarks.append(benchmark)
        if "error_message" in first:
            benchmark["error"] = first["error_message"]
            continue
        benchmark["unit"] = first["time_unit"]
        figures = {"time": "real_time", "processor time": "cpu_time"}
        figures |= {key: key for key in first if key not in OF_EVERY_BENCHMARK}
        for figure, key in figures.items():
            values = [each[key] for each in repetitions]
            benchmark[figure] = [statistics.median(values), min(values), max(values)]
    return benchmarks


def figure_text(benchmark: dict, figure: str) -> str:
    """One of figures_of_benchmarks: median (smallest–largest), times with their unit; empty: there is none."""
    if figure not in benchmark:
        return ""
    unit = f" {benchmark['unit']}" if figure in ("time", "processor time") else ""
    return spread(benchmark[figure]) + unit


def table_of_benchmarks(benchmarks: list[dict]) -> str:
    """A row for each of figures_of_benchmarks."""
    figures = list(dict.fromkeys(["time", "processor time", *(
        key for each in benchmarks for key in each if key not in ("program", "benchmark", "unit", "error"))]))
    rows = []
    for each in benchmarks:
        cells = [each["error"]] + [""] * (len(figures) - 1) if "error" in each else [
            figure_text(each, figure) for figure in figures]
        rows.append([each["benchmark"], *cells])
    return table(["benchmark", *figures], rows)


def rows_of_tables(text: str) -> list[dict]:
    """The rows of the tables in Markdown that a program prints, each by its table's header: what stands first in the header
    is the name of the table, and of a row that of the row."""
    rows: list[dict] = []
    header: list[str] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.strip().startswith("|") else []
        if not cells:
            header = None
        elif header is None:
            header = cells
        elif not all(set(cell) <= set("-:") for cell in cells):
            names = [f"column {i}" if not name else name for i, name in enumerate(header[1:], 1)]
            rows.append({"table": header[0], "benchmark": cells[0], **dict(zip(names, cells[1:]))})
    return rows


def first_match(pattern: str, path: str, fallback: str) -> str:
    try:
        match = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1].strip() if match else fallback


def machine() -> str:
    """Processor, its widest vectors, how many this process may use, caches, system."""
    model = first_match(r"^model name\s*: (.*)$", "/proc/cpuinfo", platform.machine())
    flags = first_match(r"^flags\s*: (.*)$", "/proc/cpuinfo", "").split()
    vectors = next((name for flag, name in (("amx_tile", "AMX"), ("avx512f", "AVX-512"), ("avx2", "AVX2"))
                    if flag in flags), "no AVX2")
    caches = [first_match(r"(.*)", f"/sys/devices/system/cpu/cpu0/cache/index{index}/size", "") for index in (2, 3)]
    sizes = ", ".join(f"{size} L{level}" for level, size in zip((2, 3), caches) if size)
    system = first_match(r'^PRETTY_NAME="(.*)"$', "/etc/os-release", platform.system())
    processors = len(os.sched_getaffinity(0))
    return f"{model} with {vectors} ({processors} processors{', ' + sizes if sizes else ''}), {system}"


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def versions() -> str:
    """Of what our side is made of."""
    onednn = output_of("dpkg-query", "-W", "-f=${Version}", "libdnnl-dev")
    compiler = output_of("c++", "-dumpfullversion")
    commit = output_of("git", "rev-parse", "--short", "HEAD")
    parts = [("commit", commit), ("compiler", compiler), ("oneDNN", onednn)]
    return ", ".join(f"{name} {version}" for name, version in parts if version)


def today() -> str:
    return datetime.date.today().isoformat()

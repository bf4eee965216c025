#!/usr/bin/env python3
"""One manifest from one worker to many: trains README's recipe on MNIST with real processes and writes a table.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/scaling.py DATA_DIR --results FILE [--write docs/bench/scaling.md]
      [--variants recipe counterpart] [--workers 1 2 4 8 16] [--seeds 1 2 3 4 5] [--epochs 5]

Each finished run is a line of JSON in FILE; what is there is not run again, so that the command can be stopped and given
again. A run that failed is a line too, and counts. `counterpart` is one worker that takes the batches of all together, at the
rate of up to eight of them, with a warm-up.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import tempfile
import time

import runs

MANIFEST = """\
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {{name: scaling}}
spec:
  model: {{reference: adam-mnist}}
  data:
    train: {{idx: {{images: {data}/train-images-idx3-ubyte.gz, labels: {data}/train-labels-idx1-ubyte.gz}}}}
    validation: {{idx: {{images: {data}/t10k-images-idx3-ubyte.gz, labels: {data}/t10k-labels-idx1-ubyte.gz}}}}
    batchSize: {batch}
  optimiser: {{{optimiser}}}
  distribution:
    workers: {workers}
    threadsPerWorker: {threads}
    parameterServers: {{count: {servers}}}
{distribution}  runPolicy:
    epochs: {epochs}
    seed: {seed}
"""

MOMENTUM = "kind: Momentum, rate: {rate}, momentum: 0.9, schedule: {{kind: Linear{warm_up}}}"
SGD = "kind: Sgd, rate: {rate}, schedule: {{kind: Linear{warm_up}}}"

# name: (optimiser, rate, lines of spec.distribution)
VARIANTS = {
    "recipe": (MOMENTUM, 0.02, ""),
    "recipe-8": (MOMENTUM, 0.02, "    fetchEvery: 8\n    pushEvery: 8\n"),
    "off": (MOMENTUM + ", asynchrony: Off", 0.02, "    fetchEvery: 8\n    pushEvery: 8\n"),
    "half-rate": (MOMENTUM, 0.01, ""),
    "double-rate": (MOMENTUM, 0.04, ""),
    "sgd": (SGD, 0.1, ""),
    "server-momentum": (MOMENTUM + ", location: Server", 0.002, ""),
    "server-sgd": (SGD + ", location: Server", 0.1, ""),
    "adagrad": ("kind: Adagrad, location: Server, rate: {rate}, schedule: {{kind: Linear{warm_up}}}", 0.01, ""),
    "threads-2": (MOMENTUM, 0.02, ""),
    "threads-4": (MOMENTUM, 0.02, ""),
    "rate-8": (MOMENTUM, 0.16, ""),
    "counterpart": (MOMENTUM, 0.02, ""),
}
THREADS = {"threads-2": 2, "threads-4": 4}

BATCH = 32
MOST_RATE = 8  # times one worker's rate, in the counterpart


def manifest(variant, workers, seed, epochs, data):
    """The job of a run; `workers` of the variants with threads counts threads in all."""
    optimiser, rate, distribution = VARIANTS[variant]
    threads = THREADS.get(variant, 1)
    together = variant == "counterpart"
    warm_up = ", warmUp: {epochs: 1}" if together and workers > 1 else ""
    rate *= min(workers, MOST_RATE) if together else 1
    return MANIFEST.format(
        data=data, batch=BATCH * (workers if together else 1), optimiser=optimiser.format(rate=rate, warm_up=warm_up),
        workers=1 if together else max(1, workers // threads), threads=threads, servers=2, distribution=distribution,
        epochs=epochs, seed=seed)


def train(variant, workers, seed, epochs, data):
    """Runs the job; what is remembered of it."""
    with tempfile.TemporaryDirectory(prefix="adamant-bench-") as folder:
        job = pathlib.Path(folder) / "job.yaml"
        job.write_text(manifest(variant, workers, seed, epochs, data))
        run = runs.Run(pathlib.Path(folder) / "run")
        begin = time.monotonic()
        code, output = run.train(job).wait(timeout=1800)
        rows = run.rows()
        if code != 0:
            print(f"{variant}, {workers} workers, seed {seed} ended with {code}:\n{output}", file=sys.stderr)
        return {"variant": variant, "workers": workers, "seed": seed, "epochs": epochs, "exit_code": code,
                "attempts": max((int(row["attempt"]) for row in rows), default=1),
                "top1": [100 * float(row["top1"] or 0) for row in rows],
                "staleness": [float(row["batches_of_others_mean"] or 0) for row in rows],
                "training_seconds": runs.total(rows, "seconds"), "seconds": time.monotonic() - begin}


def failed(result):
    """It did not end with a model."""
    return result["exit_code"] != 0 or not result["top1"]


def key(result):
    return result["variant"], result["workers"], result["seed"], result["epochs"]


def read_results(path):
    if not path.exists():
        return {}
    return {key(result): result for result in map(json.loads, path.read_text().splitlines())}


def run_missing(arguments, results):
    wanted = [(variant, workers, seed, arguments.epochs)
              for seed in arguments.seeds for variant in arguments.variants for workers in arguments.workers
              if variant not in THREADS or workers >= THREADS[variant]]
    missing = [each for each in wanted if each not in results]
    begin = time.monotonic()
    for done, (variant, workers, seed, epochs) in enumerate(missing):
        left = (time.monotonic() - begin) / done * (len(missing) - done) / 60 if done else math.nan
        print(f"run {done + 1} of {len(missing)}, {left:.0f} min left: {variant}, {workers} workers, seed {seed}",
              file=sys.stderr, flush=True)
        result = train(variant, workers, seed, epochs, arguments.data.resolve())
        results[key(result)] = result
        with arguments.results.open("a") as file:
            file.write(json.dumps(result) + "\n")
        outcome = "failed" if failed(result) else f"{result['top1'][-1]:.2f} %"
        print(f"  {outcome} in {result['training_seconds']:.0f} s", file=sys.stderr, flush=True)


# Student's t, two-sided 95 %, by runs; a few more runs than listed are taken for as many as are.
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26, 12: 2.20, 15: 2.14, 20: 2.09,
           30: 2.05, 60: 2.00}


def interval(values):
    """Half of the 95 % interval of the mean, as text; empty for one value."""
    if len(values) < 2:
        return ""
    factor = STUDENT[max(runs for runs in STUDENT if runs <= len(values))]
    return f" ± {factor * statistics.stdev(values) / math.sqrt(len(values)):.2f}"


def summary(group):
    """The cells of a row after its name: mean with its interval, worst, went back, failed, staleness, seconds."""
    last = [result["top1"][-1] for result in group if not failed(result)]
    accuracy = (f"{statistics.mean(last):.2f}{interval(last)}", f"{min(last):.2f}") if last else ("", "")
    stale = [statistics.mean(result["staleness"]) for result in group if result["staleness"]]
    return (*accuracy, len(group), sum(result["attempts"] > 1 for result in group), sum(map(failed, group)),
            f"{statistics.mean(stale):.1f}" if stale else "",
            f"{statistics.median(result['training_seconds'] for result in group):.0f}")


def table(results, epochs):
    lines = ["| variant | workers | top-1, % | worst | runs | went back | failed | batches of others | training seconds |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for variant in VARIANTS:
        for workers in sorted({result["workers"] for result in results.values()}):
            group = [result for result in results.values()
                     if (result["variant"], result["workers"], result["epochs"]) == (variant, workers, epochs)]
            if group:
                lines.append("| " + " | ".join(map(str, (variant, workers, *summary(group)))) + " |")
    return "\n".join(lines)


def write(path, text):
    """Replaces what stands between the marks in the page, which must be there."""
    begin, end = "<!-- scaling.py -->\n", "<!-- end -->"
    page = path.read_text()
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    if not rest or not tail:
        sys.exit(f"{path} has no lines '{begin.strip()}' and '{end}' for the table")
    path.write_text(f"{head}{begin}{text}\n{end}{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="folder with MNIST's files")
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["recipe", "counterpart"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--write", type=pathlib.Path, help="page whose table is made anew")
    arguments = parser.parse_args()
    results = read_results(arguments.results)
    run_missing(arguments, results)
    text = table(results, arguments.epochs)
    print(text)
    if arguments.write:
        write(arguments.write, text)


if __name__ == "__main__":
    main()

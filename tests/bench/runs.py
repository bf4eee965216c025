"""What the benchmark scripts of this folder share: manifests of real size, runs, tables."""

import pathlib
import statistics
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "e2e"))

from adamant import ROLES, Run, adamant, alive, binary_folder  # noqa: E402, F401 (re-exported)

SHARDS = 10  # of adam-mnist: ten tensors of less than 1 MB


def example(name, folder, replace):
    """Writes deploy/examples/NAME.yaml into `folder` with texts replaced; each must be there."""
    text = (REPOSITORY / "deploy" / "examples" / f"{name}.yaml").read_text()
    for old, new in replace.items():
        if old not in text:
            sys.exit(f"{name}.yaml has no '{old}' any more")
        text = text.replace(old, new)
    path = pathlib.Path(folder) / f"{name}.yaml"
    path.write_text(text)
    return path


def mnist_replicated(folder, data, replace):
    """deploy/examples/mnist-replicated.yaml, with the files of `data`."""
    return example("mnist-replicated", folder, {"data/mnist/": f"{data.resolve()}/", **replace})


def finish(run, timeout=1800):
    """Waits for success; the rows of metrics.csv."""
    code, output = run.wait(timeout=timeout)
    if code != 0:
        sys.exit(f"{run.folder} ended with {code}:\n{output}")
    return run.rows()


def top1(rows):
    """Of the last epoch, in percent."""
    return 100 * float(rows[-1]["top1"])


def total(rows, column):
    return sum(float(row[column]) for row in rows)


def spread(values, digits=2):
    return f"{statistics.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def print_row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def print_header(*cells):
    print_row(*cells)
    print_row(*["---"] * len(cells))


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="adamant-bench-")

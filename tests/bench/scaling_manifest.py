"""Manifests of real jobs, and options of virtual ones, for scaling.py."""

import pathlib

SERVERS = 2  # parameter servers; four where buckets have copies
NETS = pathlib.Path(__file__).resolve().parent / "nets"

# name: (kind, location)
RULES = {
    "momentum": ("Momentum", "Worker"),
    "sgd": ("Sgd", "Worker"),
    "server-momentum": ("Momentum", "Server"),
    "server-sgd": ("Sgd", "Server"),
    "adagrad": ("Adagrad", "Server"),
}

MANIFEST = """\
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {{name: scaling}}
spec:
{model}
  data:
    train: {train}
    validation: {validation}
    batchSize: {batch}
{augmentation}  optimiser:
    kind: {kind}
    location: {location}
    rate: {rate}
    schedule: {{kind: Linear{warm_up}}}
{asynchrony}{layers}  distribution:
    workers: {workers}
    threadsPerWorker: {threads}
    parameterServers: {{count: {servers}, copies: {copies}}}
{distribution}  runPolicy:
    epochs: {epochs}
    seed: {seed}
    restartBudget: {{limit: 1000}}
"""


class Data:
    """Where data sets are: `mnist` and `cifar10` are folders with files of MNIST's names, or None."""

    def __init__(self, mnist, cifar10):
        self._folders = {"mnist": mnist and mnist.resolve(), "cifar10": cifar10 and cifar10.resolve()}

    def has(self, name):
        return name == "digits" or self._folders[name] is not None

    def folder(self, name):
        return self._folders[name]

    def source(self, name, prefix):
        """Of spec.data; `prefix` as MNIST's: train or t10k."""
        if name == "digits":
            return "{digits: {seed: 1, examples: 20000}}" if prefix == "train" else "{digits: {seed: 2, examples: 5000}}"
        folder = self._folders[name]
        return f"{{idx: {{images: {folder}/{prefix}-images-idx3-ubyte.gz, labels: {folder}/{prefix}-labels-idx1-ubyte.gz}}}}"


def net(case):
    """A file of nets/, or the name of a reference net."""
    name = case.net or ("cifar10" if case.data == "cifar10" else "")
    return NETS / f"{name}.yaml" if name else "adam-mnist"


def model(case):
    path = net(case)
    if path == "adam-mnist":
        return "  model: {reference: adam-mnist}"
    text = path.read_text()
    return text[text.index("  model:"):text.index("  data:")].rstrip()


def manifest(case, data):
    kind, location = RULES[case.rule]
    distribution = ""
    if case.exchange:
        distribution += f"    fetchEvery: {case.exchange}\n    pushEvery: {case.exchange}\n"
    if case.warm_start >= 0:
        distribution += f"    warmStart: {{examples: {case.warm_start * case.batch}}}\n"
    return MANIFEST.format(
        model=model(case), train=data.source(case.data, "train"), validation=data.source(case.data, "t10k"),
        batch=case.batch, kind=kind, location=location, rate=case.rate,
        augmentation="    transformations: {translate: 2, rotate: 10, scale: 0.1}\n" if case.augmented else "",
        warm_up=f", warmUp: {{epochs: {case.warm_up}}}" if case.warm_up else "",
        asynchrony="" if case.asynchrony else "    asynchrony: Off\n",
        layers=f"    layers: {case.layers}\n" if case.layers else "", workers=case.workers, threads=case.threads,
        servers=4 if case.copies > 1 else SERVERS, copies=case.copies, distribution=distribution, epochs=case.epochs,
        seed=case.seed)


def stale_options(case, data):
    """What `train_bench stale` is called with."""
    for field in ("copies", "disturbance", "augmented", "layers"):
        if field in case.fields():
            raise ValueError(f"virtual jobs know no {field}")
    kind, location = RULES[case.rule]
    options = [net(case), "--data", data.folder(case.data), "--workers", case.workers, "--threads", case.threads,
               "--batch", case.batch, "--kind", kind, "--location", location, "--rate", case.rate, "--warm-up",
               case.warm_up, "--asynchrony", "auto" if case.asynchrony else "off", "--epochs", case.epochs, "--seed",
               case.seed]
    if case.exchange:
        options += ["--fetch-every", case.exchange, "--push-every", case.exchange]
    if case.warm_start >= 0:
        options += ["--warm-start", case.warm_start]
    return [str(option) for option in [*options, *case.virtual]]

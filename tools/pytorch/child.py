#!/usr/bin/env python3
"""Trains with PyTorch as `train_bench` trains with Adamant, and prints the same lines of JSON. Run by
tools/compare_pytorch.

  child.py speed --net NET.json --batch 32 --threads 1 --processes 1 --seconds 1
  child.py learn --net NET.json --batch 32 --threads 1 --processes 2 --variant "NCHW, fused, eager" --data DIR

NET.json is what `train_bench describe` prints. speed: every line of standard input names a variant (trainer.py), which
runs for the time given; a variant that fails answers with its error.
"""

import argparse
import gzip
import json
import pathlib
import sys

import numpy
import torch
from net import make_net
from team import Team, die_with_parent
from trainer import share_in_every_layout

SPEED_RATE = 0.001
MOST_EXAMPLES = 60_000
MOST_FLOATS = 1 << 25
MEAN = 0.1307
DEVIATION = 0.3081


def random_examples(description):
    channels, height, width = description["input"]
    count = max(1, min(MOST_EXAMPLES, MOST_FLOATS // (channels * height * width)))
    torch.manual_seed(1)
    return (torch.rand(count, channels, height, width) * 2 - 1,
            torch.randint(description["classes"], (count,)))


def read_idx(path, offset):
    opened = gzip.open(path) if path.exists() else open(path.with_suffix(""), "rb")
    with opened as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset)


def read_mnist(folder, prefix):
    labels = read_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", 8)
    pixels = read_idx(folder / f"{prefix}-images-idx3-ubyte.gz", 16).reshape(len(labels), 1, 28, 28)
    inputs = (pixels.astype(numpy.float32) / 255 - MEAN) / DEVIATION
    return torch.from_numpy(inputs), torch.from_numpy(labels.astype(numpy.int64))


def total(works):
    """What the members did together."""
    seconds = max(work.end for work in works) - min(work.start for work in works)
    return sum(work.examples for work in works), seconds, sum(work.processor_seconds for work in works)


def say(**line):
    print(json.dumps(line), flush=True)


def speed(arguments, description, net):
    inputs, labels = random_examples(description)
    team = Team(arguments.processes, arguments.threads,
                (share_in_every_layout(net), inputs, labels, arguments.batch, SPEED_RATE))
    orders = [torch.randperm(len(labels)) for _ in range(arguments.processes)]
    for line in sys.stdin:
        try:
            team.call("choose", *[(line.strip(),)] * arguments.processes)
            works = team.call("train_for", *[(arguments.seconds, order) for order in orders])
        except RuntimeError as error:
            say(error=str(error))
            continue
        examples, seconds, processor_seconds = total(works)
        say(examples_per_second=examples / seconds, processors=processor_seconds / seconds)


def learn(arguments, description, net):
    inputs, labels = read_mnist(arguments.data, "train")
    test_inputs, test_labels = read_mnist(arguments.data, "t10k")
    team = Team(arguments.processes, arguments.threads,
                (share_in_every_layout(net), inputs, labels, arguments.batch, arguments.rate, arguments.weight_decay))
    team.call("choose", *[(arguments.variant,)] * arguments.processes)
    batches = len(labels) // arguments.batch
    steps = batches * arguments.epochs
    all_seconds = all_processor_seconds = 0
    for epoch in range(arguments.epochs):
        order = torch.randperm(len(labels)).split(arguments.batch)[:batches]
        for part in range(arguments.evaluations):
            places = range(batches * part // arguments.evaluations, batches * (part + 1) // arguments.evaluations)
            rates = [arguments.rate * (1 - (epoch * batches + place) / steps) for place in places]
            rows = [order[place] for place in places]
            members = [(rows[i::arguments.processes], rates[i::arguments.processes])
                       for i in range(arguments.processes)]
            _, seconds, processor_seconds = total(team.call("train_on", *members))
            all_seconds += seconds
            all_processor_seconds += processor_seconds
            top1 = team.call("top1", *[(test_inputs, test_labels)] * arguments.processes)[0]
            say(epochs=epoch + places.stop / batches, seconds=all_seconds,
                processors=all_processor_seconds / all_seconds, top1=top1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["speed", "learn"])
    parser.add_argument("--net", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--processes", type=int, default=1, help="that share the weights")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1, help="speed: of a repetition")
    parser.add_argument("--variant", help="learn: how")
    parser.add_argument("--data", type=pathlib.Path, help="learn: folder with MNIST's files")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.02, help="learn: at first; falls linearly to 0")
    parser.add_argument("--weight-decay", type=float, default=0.0005)
    parser.add_argument("--evaluations", type=int, default=4, help="learn: per epoch, outside the clock")
    arguments = parser.parse_args()
    die_with_parent()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    description = json.loads(arguments.net.read_text())
    command = speed if arguments.command == "speed" else learn
    command(arguments, description, make_net(description))


if __name__ == "__main__":
    main()

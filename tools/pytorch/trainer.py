"""Training with PyTorch in one process, in one of the ways of variants.py, on weights that other processes may share."""

import contextlib
import copy
import itertools
import signal
import time

import torch
import variants
from torch.nn.functional import cross_entropy

MOMENTUM = 0.9
WARM_UP_STEPS = 3
COMPILE_SECONDS = 240

LAYOUTS = dict(zip(variants.LAYOUTS, (torch.contiguous_format, torch.channels_last)))
UPDATES = dict(zip(variants.UPDATES, ({"fused": True}, {})))


@contextlib.contextmanager
def time_limit(seconds):
    """Raises TimeoutError inside the block when it takes longer."""
    def stop(*_):
        raise TimeoutError(f"took more than {seconds} s")
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def share_in_every_layout(net):
    """The net once per memory layout, with weights of its own that processes forked from this one share."""
    return {name: copy.deepcopy(net).to(memory_format=layout).share_memory() for name, layout in LAYOUTS.items()}


class Work:
    """What a piece of training did: examples, and when (seconds of the monotonic and of the process's clock)."""

    def __init__(self, examples, start, processor_start):
        self.examples = examples
        self.start = start
        self.end = time.monotonic()
        self.processor_seconds = time.process_time() - processor_start


class Trainer:
    """`nets`: of share_in_every_layout. `inputs`: float tensor [examples, channels, height, width]."""

    def __init__(self, nets, inputs, labels, batch, rate, weight_decay=0):
        self.nets = nets
        self.data = {name: inputs.contiguous(memory_format=layout) for name, layout in LAYOUTS.items()}
        self.labels = labels
        self.batch = batch
        self.update = {"lr": rate, "momentum": MOMENTUM, "weight_decay": weight_decay}
        self.losses = {}  # compiled, by layout
        self.variant = None

    def choose(self, variant):
        """Sets the variant and takes steps outside the clock; compiles what must be. Momentum starts at 0."""
        if variant == self.variant:
            return
        layout, update, execution = variant.split(", ")
        self.layout = layout
        net = self.nets[layout]
        self.net = net
        self.optimiser = torch.optim.SGD(net.parameters(), **self.update, **UPDATES[update])
        self.loss = lambda x, y: cross_entropy(net(x), y)
        if execution == "compiled":
            self.loss = self.losses.setdefault(layout, torch.compile(self.loss, dynamic=False))
        kept = copy.deepcopy(net.state_dict())
        with time_limit(COMPILE_SECONDS):
            for _ in range(WARM_UP_STEPS):
                self.step(torch.arange(self.batch))
        net.load_state_dict(kept)
        for state in self.optimiser.state.values():
            state["momentum_buffer"].zero_()
        self.variant = variant

    def step(self, rows):
        x = self.data[self.layout][rows].contiguous(memory_format=LAYOUTS[self.layout])
        loss = self.loss(x, self.labels[rows])
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad()

    def train_for(self, seconds, order):
        """Batches of `order` (a tensor of indices), around again at its end."""
        batches = itertools.cycle(order.split(self.batch)[:len(order) // self.batch])
        examples = 0
        start, processor_start = time.monotonic(), time.process_time()
        while time.monotonic() - start < seconds:
            self.step(next(batches))
            examples += self.batch
        return Work(examples, start, processor_start)

    def train_on(self, batches, rates):
        """One step for each of `batches` (tensors of indices), at the rate beside it."""
        examples = 0
        start, processor_start = time.monotonic(), time.process_time()
        for rows, rate in zip(batches, rates):
            self.optimiser.param_groups[0]["lr"] = rate
            self.step(rows)
            examples += len(rows)
        return Work(examples, start, processor_start)

    def top1(self, inputs, labels):
        """The share of right answers."""
        with torch.no_grad():
            correct = sum((self.net(x).argmax(1) == y).sum().item()
                          for x, y in zip(inputs.split(1000), labels.split(1000)))
        return correct / len(labels)

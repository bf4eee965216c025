"""Processes that train one net together, without locks (Hogwild), each pinned to a processor; or one process alone."""

import ctypes
import os
import signal

import torch
import torch.multiprocessing
from trainer import Trainer

PR_SET_PDEATHSIG = 1


def die_with_parent():
    """This process ends when the one that started it does, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Team:
    """`processes` members of `threads` threads each. `arguments`: of Trainer. Nothing of PyTorch may have run in parallel
    in this process before: forked processes would miss its threads."""

    def __init__(self, processes, threads, arguments):
        context = torch.multiprocessing.get_context("fork")
        processors = sorted(os.sched_getaffinity(0))
        self.barrier = context.Barrier(processes)
        self.links = []
        for index in range(processes):
            ours, theirs = context.Pipe()
            mine = [processors[(index * threads + i) % len(processors)] for i in range(threads)]
            context.Process(target=self.serve, args=(theirs, threads, mine, arguments), daemon=True).start()
            self.links.append(ours)

    def serve(self, link, threads, processors, arguments):
        die_with_parent()
        os.sched_setaffinity(0, processors)
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)
        trainer = Trainer(*arguments)
        while True:
            method, values = link.recv()
            try:
                if method in ("train_for", "train_on"):
                    self.barrier.wait()
                link.send((None, getattr(trainer, method)(*values)))
            except Exception as error:  # whatever PyTorch's compiler throws
                link.send((f"{type(error).__name__}: {str(error).splitlines()[0]}", None))

    def call(self, method, *values_of_members):
        """Calls the method on every member at once, with values of its own each; their results."""
        for link, values in zip(self.links, values_of_members, strict=True):
            link.send((method, values))
        results = [link.recv() for link in self.links]
        for error, _ in results:
            if error is not None:
                raise RuntimeError(error)
        return [result for _, result in results]

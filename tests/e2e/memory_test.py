"""A process that the kernel kills as memory runs out, in a real control group of its own."""

import pathlib
import shutil
import time
import unittest

import adamant

MEMORY = pathlib.Path("/sys/fs/cgroup/memory")  # of version 1
UNIFIED = pathlib.Path("/sys/fs/cgroup")
LIMIT = 24 << 20  # bytes, of the worker's group: too few to begin
LAYERS = """
        - {name: fc1, kind: FullyConnected, outputs: 3000}
        - {name: relu1, kind: Relu}
        - {name: fc2, kind: FullyConnected, outputs: 10}"""
WORKER = """#!/bin/sh
echo $$ > {group}/cgroup.procs
exec {program} "$@"
"""


class MemoryTest(adamant.TestCase):

    def make_group(self):
        """A control group of little memory; None where only others may make one."""
        unified = not MEMORY.exists()
        group = (UNIFIED if unified else MEMORY) / f"adamant_{self.folder.name}"
        try:
            group.mkdir()
            self.addCleanup(self.remove, group)
            (group / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(LIMIT))
        except OSError:
            self.skipTest("no control group with a limit of memory can be made")
        return group

    @staticmethod
    def remove(group):
        for _ in range(50):  # its processes may not be gone at once
            try:
                return group.rmdir()
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"{group} is still in use")

    def programs_with(self, group):
        """The folder of the programs, whose workers run in the group."""
        folder = self.folder / "bin"
        folder.mkdir()
        for program in adamant.binary_folder().glob("adamant*"):
            shutil.copy(program, folder)
        worker = folder / "adamant-worker"
        moved = worker.rename(folder / "worker")
        worker.write_text(WORKER.format(group=group, program=moved))
        worker.chmod(0o755)
        return folder

    def test_a_worker_that_the_kernel_kills_as_memory_ran_out_is_called_that(self):
        programs = self.programs_with(self.make_group())
        run = adamant.Run(self.folder / "run", programs)
        self.addCleanup(run.end)
        code, output = run.train(self.job(layers=LAYERS, restarts=1)).wait()
        self.assertEqual(code, 1, output)
        killed = r"worker-[01] was killed by signal 9 as memory ran out \(oom_kill\); it had \d+ MiB at most"
        self.assertRegex(output, killed)
        self.assertRegex(output, f"the job failed: {killed} and the restart budget of 1 is spent")


if __name__ == "__main__":
    unittest.main()

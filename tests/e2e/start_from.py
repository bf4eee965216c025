"""What tests of saved checkpoints, and of jobs that begin with one, have in common."""

import json

import adamant

COPIES = "  output: {storage: {}, checkpoints: {keep: 5}}\n"

# With one thread of one worker, and one server, a run repeats bit for bit. A worker that goes on has weights that differ
# from the server's in rounding, one that begins has the server's.
ALONE = dict(workers=1, parameter_servers=1, epochs=2, optimiser="{kind: Sgd, location: Server, rate: 0.05}")


def values(model):
    """The bytes of a safetensors file's tensors, without what its header says of the run."""
    content = model.read_bytes()
    return content[8 + int.from_bytes(content[:8], "little"):]


class StartFromCase(adamant.TestCase):

    def job_with(self, more="", **changes):
        job = self.job(**{**ALONE, **changes})
        text = job.read_text().replace("    workers:", "    fetchEvery: 1\n    pushEvery: 1\n    workers:")
        job.write_text(text + more)
        return job

    def finished(self, name, job):
        run = self.run_in(name).train(job)
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        return run

    def copied(self, run):
        """The folders of its copies, by the epoch that they are of."""
        folders = (run.folder / "checkpoints").glob("checkpoint-*")
        return {json.loads((folder / "checkpoint.json").read_text())["epoch"]: folder for folder in folders}

    def first(self):
        """A run of two epochs with a copy of each checkpoint."""
        run = self.finished("first", self.job_with(COPIES))
        self.assertEqual(set(self.copied(run)), {1, 2})
        return run

    def refused(self, job):
        run = self.run_in("refused").train(job)
        code, output = run.wait()
        self.assertEqual(code, 2, output)
        self.assertFalse(run.folder.exists(), "nothing was begun")
        return adamant.in_one_line(output)

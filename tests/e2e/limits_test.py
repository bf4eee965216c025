"""What becomes of programs that may have little memory, few threads, or small files."""

import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

import adamant

HINT = "limits of memory, threads or processes are likely (ulimit -v, ulimit -u"
MEBIBYTES = (240, 200, 160, 140, 120, 100)  # of address space; threads have 8 each for their stacks
CRASHES = (-signal.SIGABRT, -signal.SIGSEGV)
ONLY_ROOT = unittest.skipUnless(os.geteuid() == 0, "only root starts programs as a user who has no other processes")
PROGRAMS = ("adamant-data-server", "adamant-parameter-server", "adamant-worker")


LARGE = """
        - {name: fc1, kind: FullyConnected, outputs: 256}
        - {name: fc2, kind: FullyConnected, outputs: 10}"""


def limited(mebibytes, program, *arguments, seconds=2):
    """Runs a program that may have so much memory, for so long at most."""
    return subprocess.run(["timeout", "-s", "KILL", str(seconds), adamant.binary_folder() / program, *map(str, arguments)],
                          capture_output=True, text=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20,) * 2))


class LimitsTest(adamant.TestCase):

    def assert_told(self, program, *arguments, new=None, never=()):
        """With ever less memory, the program never aborts or crashes or ends with a code of `never`, and ends at least once
        with one clear line and the code of what this machine does not let run. How much it needs depends on the machine.
        `new`: a folder that it makes."""
        told = False
        for mebibytes in MEBIBYTES:
            if new is not None:
                shutil.rmtree(new, ignore_errors=True)
            result = limited(mebibytes, program, *arguments)
            self.assertNotIn(result.returncode, (*CRASHES, *never), result.stderr)
            if result.returncode == 4 and HINT in result.stderr:
                self.assertRegex(result.stderr.splitlines()[-1], f"^{program}: .*; limits of memory")
                told = True
        self.assertTrue(told, f"{program} {arguments}: {result.stderr}")

    def test_too_little_memory_or_too_few_threads_are_told(self):
        new = self.folder / "new"
        self.assert_told("adamant", "train", self.job(), "--run-dir", new, new=new)
        run = self.run_in().train(self.job(epochs=10000))
        run.await_epoch(1)
        run.kill_all()
        for command in (["status", run.folder], ["train", "--resume", run.folder]):
            self.assert_told("adamant", *command)
        for program in PROGRAMS:
            self.assert_told(program, "--controller", "127.0.0.1:1", "--slot", 0, "--data-dir", self.folder / program,
                             never=(1,))

    def train_with_few(self, processes, job, run_dir):
        """As a user who has no other processes, and may have so many, threads counted."""
        return subprocess.run(["timeout", "-s", "KILL", "60", "setpriv", "--reuid=64123", "--regid=64123", "--clear-groups",
                               "bash", "-c", f"ulimit -u {processes} && exec \"$@\"", "-",
                               adamant.binary_folder() / "adamant", "train", job, "--run-dir", run_dir],
                              capture_output=True, text=True, check=False)

    @ONLY_ROOT
    def test_too_few_threads_for_grpc_are_told(self):
        self.folder.chmod(0o777)
        job = self.job()
        for processes in range(1, 15):
            result = self.train_with_few(processes, job, self.folder / f"run{processes}")
            self.assertEqual(result.returncode, 4, f"{processes} processes: {result.stderr}")
            self.assertIn(HINT, result.stderr)

    @ONLY_ROOT
    def test_too_few_threads_for_a_process_of_the_job_are_told(self):
        """Near what the job needs it may come through, as processes that have ended leave their threads to others."""
        self.folder.chmod(0o777)
        job = self.job(epochs=1, restarts=2)
        for processes, codes in ((25, (1,)), (45, (1,)), (65, (1,)), (85, (1,)), (105, (0, 1)), (125, (0, 1)), (145, (0, 1))):
            run = self.run_in(f"run{processes}")
            result = self.train_with_few(processes, job, run.folder)
            self.assertIn(result.returncode, codes, f"{processes} processes: {result.stderr}")
            lost = [event["text"] for event in run.events() if event["event"] == "lost"]
            self.assertTrue(lost or 0 in codes)
            for text in lost:
                self.assertRegex(text, " exited with code 4: adamant-.*" + re.escape(HINT) + "|could not be started: .* unavailable")

    def test_from_too_little_memory_to_enough_libraries_neither_crash_nor_hang(self):
        """oneDNN would write code through a null pointer, and RocksDB wait for itself. Below what loads the libraries the
        system's loader says so (127)."""
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        for command in (["plan", self.job()], ["eval", run.folder], ["status", run.folder],
                        ["export", run.folder, "--format", "onnx", "--out", self.folder / "model.onnx"]):
            codes = []
            for mebibytes in range(60, 400, 2):
                result = limited(mebibytes, "adamant", *command, seconds=60)
                self.assertIn(result.returncode, (0, 4, 127), f"{command} with {mebibytes} MB: {result.stderr}")
                codes.append(result.returncode)
                if result.returncode == 0:
                    break
                self.assertRegex(result.stderr, "adamant: ")
            self.assertEqual((codes.count(0), 4 in codes), (1, True), f"{command}: {codes}")

    def worker_that(self, script):
        """A folder of the programs, in which the worker is a script; $WORKER is the real one."""
        programs = self.folder / "bin"
        programs.mkdir()
        for program in adamant.binary_folder().glob("adamant-*"):
            (programs / program.name).symlink_to(program)
        worker = programs / "adamant-worker"
        worker.unlink()
        worker.write_text(f"#!/bin/sh\nWORKER={adamant.binary_folder() / worker.name}\n{script}\n")
        worker.chmod(0o755)
        return programs

    def test_a_process_that_has_never_run_for_such_a_lack_fails_the_job_with_its_reason(self):
        programs = self.worker_that("echo hello\necho 'adamant-worker: lacks threads' >&2\nexit 4")
        run = self.run_in()
        run.start(self.job(restarts=1000), "--run-dir", run.folder, "--bin-dir", programs)
        code, output = run.wait()
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"the job failed: worker-[01] exited with code 4: adamant-worker: lacks threads: "
                                 "this machine does not let it run")
        self.assertNotIn("restarting", [event["event"] for event in run.events()])

    def test_a_process_that_has_run_is_started_again_until_it_lacks_nothing(self):
        lack = self.folder / "lack"
        programs = self.worker_that(f"if mv {lack} {lack}.over; then echo 'lacks threads' >&2; exit 4; fi\nexec $WORKER \"$@\"")
        run = self.run_in()
        run.start(self.job(epochs=10000), "--run-dir", run.folder, "--bin-dir", programs)
        run.await_epoch(1)
        lack.touch()
        self.assertTrue(run.kill("worker-0"))
        told = lambda kind: [event["text"] for event in run.events()
                             if event["event"] == kind and event["member"] == "worker-0"]
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and len(told("joined")) < 2:
            time.sleep(0.01)
        self.assertEqual(len(told("joined")), 2, told("lost"))
        self.assertIn("worker-0 exited with code 4: lacks threads", told("lost"))
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=30)[0], 3)

    def test_files_that_may_not_grow_are_treated_as_a_full_disk_and_not_called_one(self):
        run = self.run_in()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500 << 10, before[1]))
        try:
            run.train(self.job(epochs=10000, layers=LARGE))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "File too large" not in "".join(self.alarms(run)):
            time.sleep(0.05)
        run.process.send_signal(signal.SIGINT)
        code, output = run.wait(timeout=30)
        self.assertEqual(code, 3, output)
        self.assertRegex("".join(self.alarms(run)), r"cannot write: a file may not grow \(ulimit -f\): .*File too large")
        self.assertNotIn("disk full", output)
        self.assertNotIn("signal 25", output)

    @staticmethod
    def alarms(run):
        return [event["text"] for event in run.events() if event["event"] == "alarm"]


if __name__ == "__main__":
    unittest.main()

"""What people see who sit at a terminal, and have rights of their own."""

import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import unittest

import adamant


def on_a_terminal(*arguments, timeout=120):
    """Runs a command with a terminal for its output: its exit code, and all that was written there."""
    leader, follower = pty.openpty()
    with subprocess.Popen([adamant.binary_folder() / "adamant", *map(str, arguments)], stdin=follower, stdout=follower,
                          stderr=follower, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(follower)
        shown = b""
        try:
            while block := os.read(leader, 65536):
                shown += block
        except OSError:  # the last who had it open is gone
            pass
        finally:
            os.close(leader)
        return process.wait(timeout=timeout), shown.decode()


class TerminalTest(adamant.TestCase):

    def test_a_terminal_shows_a_bar_and_a_line_for_each_epoch(self):
        code, shown = on_a_terminal("train", self.job(epochs=2), "--run-dir", self.folder / "run")
        self.assertEqual(code, 0, shown)
        lines = [line for line in re.split(r"[\r\n]+", shown) if re.match(r"(\x1b\[K)?epoch \d+/\d+  ", line)]
        self.assertEqual([re.search(r"epoch (\d+/\d+)", line)[1] for line in lines], ["1/2", "2/2"], shown)
        self.assertRegex(shown, r"\r\x1b\[Kepoch 1/2 \[.*\] +\d+%")
        self.assertRegex(shown, r"model: .*/model\.onnx\r\n(it was warned of at the start, and may be why: .*\r\n)?$")

    def test_who_stops_a_run_is_told_so_by_one_word(self):
        run = self.folder / "run"
        arguments = [adamant.binary_folder() / "adamant", "train", self.job(epochs=100000), "--run-dir", run]
        leader, follower = pty.openpty()
        with subprocess.Popen(arguments, stdin=follower, stdout=follower, stderr=follower) as process:
            os.close(follower)
            shown = b""
            signalled = False
            try:
                while block := os.read(leader, 65536):
                    shown += block
                    if not signalled and b"top-1" in shown:
                        signalled = True
                        process.send_signal(signal.SIGINT)
            except OSError:  # the last who had it open is gone
                pass
            os.close(leader)
            self.assertEqual(process.wait(timeout=60), 3)
        self.assertRegex(shown.decode(), "stopped in epoch")
        self.assertNotIn("Suspended", shown.decode())
        self.assertNotIn("Suspended", adamant.adamant("status", run).stdout)

    def test_whoever_may_read_a_run_may_look_at_it(self):
        run = self.run_in().train(self.job(epochs=1000))
        run.await_epoch(1)
        other = {}
        program = adamant.binary_folder() / "adamant"
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            other = dict(user=65534, group=65534, extra_groups=[])
            program = pathlib.Path(shutil.copy(program, self.folder))  # which may lie where only we may look

        def status():
            return subprocess.run([program, "status", run.folder], capture_output=True, text=True, timeout=60,
                                  check=False, **other)

        (run.folder / "lock").chmod(0o444)
        result = status()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^tiny: (Starting|Running|Evaluating)\n")
        if other:  # its controller's socket is not for others
            self.assertIn("its processes are another user's: this is what they have stored last", result.stderr)
        else:
            self.assertIn("worker-0             Running    incarnation 1  http://", result.stdout)
        run.kill_all()
        result = status()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tiny: Interrupted", result.stdout)

    def test_a_finished_run_that_may_only_be_read_is_shown(self):
        run = self.run_in().train(self.job(epochs=1))
        self.assertEqual(run.wait()[0], 0)
        self.folder.chmod(0o755)
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("adamant", *(f"adamant-{role}" for role in adamant.ROLES)):
            shutil.copy(adamant.binary_folder() / name, programs)
        other = {}
        if os.geteuid() == 0:
            other = dict(user=65534, group=65534, extra_groups=[])
        else:
            run.folder.chmod(0o555)
            self.addCleanup(run.folder.chmod, 0o755)
        manifest = run.folder / "job.yaml"
        text = manifest.read_text()
        warning = "warning: the run has succeeded, and of what has changed"
        for edited, code, shown, told in ((text, 0, "top-1 ", ""), (text.replace("rate: 0.005", "rate: 0.01"), 0, "top-1 ", warning),
                                          (text.replace("epochs: 1\n", "epochs: 2\n"), 4, "", "adamant: cannot write to ")):
            manifest.write_text(edited)
            result = subprocess.run([programs / "adamant", "train", "--resume", run.folder], capture_output=True, text=True,
                                    timeout=60, check=False, **other)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(shown, result.stdout)
            self.assertTrue(result.stderr.startswith(told) and bool(told) == bool(result.stderr), result.stderr)

    def test_a_deleted_folder_of_logs_costs_no_restarts(self):
        run = self.run_in().train(self.job(epochs=1000, restarts=2))
        run.await_epoch(0)
        shutil.rmtree(run.folder / "logs")
        self.assertTrue(run.kill("worker-0"))
        log = run.folder / "logs" / "worker-0.log"
        while not log.exists():  # the next worker's; epochs may be shorter than it takes to start
            run.await_epoch(len(run.rows()) + 1)
        run.await_epoch(len(run.rows()) + 2)
        self.assertIsNone(run.process.poll())


if __name__ == "__main__":
    unittest.main()

"""What people see who sit at a terminal, and have rights of their own."""

import os
import pathlib
import pty
import re
import shutil
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
        self.assertRegex(shown, r"model: .*/model\.onnx\r\n$")

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
        # What its controller says, which may be some tenths of a second old: epochs are shorter.
        self.assertRegex(result.stdout, r"^tiny: (Starting|Running|Evaluating)\n")
        self.assertIn("worker-0             Running    start 1  http://", result.stdout)
        run.kill_all()
        result = status()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tiny: Interrupted", result.stdout)

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

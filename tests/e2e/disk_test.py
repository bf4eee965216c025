"""What becomes of a job whose disk is full."""

import json
import shutil
import signal
import subprocess
import time
import unittest

import adamant

EPOCHS = 60  # of a tenth of a second on a fast machine


class DiskTest(adamant.TestCase):

    def test_a_disk_without_inodes_is_not_said_to_lack_bytes(self):
        disk = self.folder / "disk"
        self.mount(disk, "192m,nr_inodes=20")
        run = adamant.Run(disk / "run")
        self.addCleanup(run.end)
        code, output = run.train(self.job(epochs=1)).wait()
        self.assertEqual(code, 4, output)
        self.assertIn("No space left on device (there is room, but no inode: too many files); remove files from that disk, then go on with: "
                      f"adamant train --resume {run.folder}\n", adamant.in_one_line(output))

    def mount(self, folder, size):
        """A small disk in `folder`."""
        folder.mkdir(exist_ok=True)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=False,
                               capture_output=True)
        if mount.returncode != 0:
            self.skipTest("only root can make a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)

    def fill(self, folder, chunk=4096):
        """The file that takes all the room there is, in chunks of this size."""
        ballast = folder / "ballast"
        with open(ballast, "ab", buffering=0) as file:
            try:
                while file.write(b"\0" * chunk):
                    pass
            except OSError:
                pass
        return ballast

    def test_a_full_disk_raises_an_alarm_and_fails_the_job_only_when_the_model_must_be_stored(self):
        disk = self.folder / "disk"
        self.mount(disk, "768m")  # each of two servers takes at most two segments, of 64 MiB, and twice what it holds
        run = adamant.Run(disk / "run")
        self.addCleanup(run.end)
        # Shards that are large enough to need room of their own, an epoch of many seconds, and far fewer bytes pushed
        # in it than workers keep (`retain`) before they wait for the disk.
        layers = ("\n        - {name: fc1, kind: FullyConnected, outputs: 256}"
                  "\n        - {name: fc2, kind: FullyConnected, outputs: 10}")
        run.train(self.job(epochs=1, workers=1, layers=layers, copies=1, train="{digits: {seed: 1, examples: 60000}}"))
        run.await_epoch(0)
        ballast = self.fill(disk, chunk=65536)  # what is counted has room
        counted = self.await_alarm(run)["examples"] or 0
        self.assertIn("alarm        parameter-server-", adamant.adamant("status", run.folder).stdout)
        code, output = run.wait(timeout=90)
        self.assertEqual(code, 1, output)
        self.assertIn("No space left on device; training goes on", output)
        self.assertRegex(output, f"the job failed: .*cannot store snapshot .*{disk}/run/data/.*No space left on device")
        self.assertIn(f"make room on that disk, then go on with: adamant train --resume {run.folder}", output)
        status = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
        self.assertEqual(status["phase"], "Failed")
        self.assertGreater(status["examples"], counted)
        ballast.unlink()
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 1, 60000)

    def test_a_controller_that_cannot_store_ends_the_job_and_says_where_room_is_needed(self):
        run = self.run_in().train(self.job(epochs=EPOCHS))
        run.await_epoch(0)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10)[0], 3)
        folder = run.folder / "controller"
        folder.rename(self.folder / "controller")
        self.mount(folder, "24m")
        shutil.copytree(self.folder / "controller", folder, dirs_exist_ok=True)
        run.resume().await_epoch(len(run.rows()) + 2)
        ballast = self.fill(folder)
        code, output = run.wait()
        self.assert_room_is_asked_for(code, output, folder)
        self.fill(folder)  # the store has given back what it had taken beforehand
        code, output = run.resume().wait()
        self.assert_room_is_asked_for(code, output, folder)
        ballast.unlink()
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, EPOCHS, 3000)

    def test_a_parameter_server_that_finds_its_disk_full_waits_for_room(self):
        run = self.run_in().train(self.job(epochs=2, restarts=0, copies=1))
        run.await_epoch(0)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10)[0], 3)
        folder = run.folder / "data" / "parameter-server-1"
        folder.rename(self.folder / "server")
        self.mount(folder, "64m")
        shutil.copytree(self.folder / "server", folder, dirs_exist_ok=True)
        ballast = self.fill(folder)
        run.resume()
        self.await_alarm(run)
        ballast.unlink()
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assertIn("parameter-server-1: stores again", output)

    def test_a_disk_that_is_full_before_the_start_leaves_nothing_behind(self):
        disk = self.folder / "disk"
        self.mount(disk, "192m")
        ballast = self.fill(disk)
        job = self.job(epochs=1)
        run = adamant.Run(disk / "runs" / "first")
        self.addCleanup(run.end)
        code, output = run.train(job).wait()
        self.assertEqual(code, 4, output)
        self.assertRegex(adamant.in_one_line(output), f"{run.folder}/job.yaml.*No space left on device; make room on that disk, then begin again")
        self.assertEqual([path.name for path in disk.iterdir()], ["ballast"])
        ballast.unlink()
        code, output = run.train(job).wait()
        self.assertEqual(code, 0, output)

    def test_a_disk_that_is_full_before_a_process_has_begun_is_told_with_the_folder(self):
        disk = self.folder / "disk"
        self.mount(disk, "64k")
        run = adamant.Run(disk / "run")
        self.addCleanup(run.end)
        code, output = run.train(self.job(epochs=1)).wait()
        self.assertEqual(code, 4, output)
        self.assertIn(f"make room on that disk, then go on with: adamant train --resume {run.folder}\n", output)
        subprocess.run(["mount", "-o", "remount,size=192m", disk], check=True)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)

    def test_whatever_finds_the_disk_full_at_the_start_asks_for_room(self):
        run = self.run_in().train(self.job(epochs=2))
        run.await_epoch(0)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10)[0], 3)
        for name in ("metrics.csv", "learning-curve.svg", "endpoint"):
            written = run.folder / f"{name}.tmp"  # and then renamed
            written.symlink_to("/dev/full")
            code, output = run.resume().wait()
            self.assert_room_is_asked_for(code, output, written)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 2, 3000)

    def assert_room_is_asked_for(self, code, output, folder):
        self.assertEqual(code, 4, output)
        self.assertRegex(adamant.in_one_line(output), f"{folder}: .*No space left on device.*; make room on that disk, then go on with: "
                                                      f"adamant train --resume {self.folder}/")

    def await_alarm(self, run):
        """The status in which a parameter server says that its disk is full."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status = json.loads(adamant.adamant("status", run.folder, "--output", "json").stdout)
            if any("disk full" in member["alarm"] for member in status["members"]):
                return status
            time.sleep(0.05)
        raise AssertionError("no parameter server raised an alarm")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""A disk without room: of the whole run, of the controller, of a parameter server, of the processes' logs; full before the
start, or in mid-run, but for some last bytes. No process may abort, no example or update be lost; the job says what is
wrong (unless what is left suffices), and goes on when there is room, by itself or with --resume. Only for root.

  ADAMANT_BIN_DIR=build/release/bin tests/bench/full_disks.py [--disks run controller ...] [--rooms 0 1024 ...]
"""

import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import runs

sys.path.insert(0, str(runs.REPOSITORY / "tests" / "e2e"))
import adamant  # noqa: E402

DISKS = {"run": ".", "controller": "controller", "parameter-server": "data/parameter-server-0", "logs": "logs"}
ROOMS = (0, 64, 1024, 4096, 24576)  # KB
WHENS = ("start", "mid-run")
AMPLE = 1024 * 1024  # KB
EPOCHS = 60
LAYERS = """
        - {name: fc1, kind: FullyConnected, outputs: 256}
        - {name: relu1, kind: Relu}
        - {name: fc2, kind: FullyConnected, outputs: 10}"""
EXAMPLES = 3000
PATIENCE = 20  # seconds in which a disk that matters must have been noticed
NO_SPACE = ("No space left on device", "disk full")


class SmallDisk:
    """A file system in memory over `folder`, which keeps what it held."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder.with_name(folder.name + ".aside")
        folder.rename(aside)
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={AMPLE}k", "none", folder], check=True)
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        shutil.rmtree(aside)
        self.ballast = folder / "ballast"

    def leave(self, kilobytes):
        """Takes all the room but for this much."""
        with open(self.ballast, "ab", buffering=0) as file:
            try:
                while file.write(b"\0" * 4096):
                    pass
            except OSError:
                pass
            file.truncate(max(0, self.ballast.stat().st_size - 1024 * kilobytes))

    def give_room(self):
        self.ballast.unlink(missing_ok=True)

    def end(self):
        subprocess.run(["umount", "-l", self.folder], check=True)


class Cell:
    """One disk, one moment, one amount of room."""

    def __init__(self, folder, disk, when, room):
        self.name, self.when, self.room = disk, when, room
        self.folder = folder / f"{disk}-{when}-{room}"
        self.folder.mkdir()
        self.job = self.folder / "job.yaml"
        self.job.write_text(adamant.manifest(epochs=EPOCHS, parameter_servers=3, layers=LAYERS))
        self.run = adamant.Run(self.folder / "disk" / "run")
        self.printed = ""
        self.faults = []

    def try_it(self):
        """What became of it without room; what went wrong is in `faults`."""
        disk = self.start()
        try:
            outcome = self.watch()
            disk.give_room()
            self.finish()
            self.judge(self.run.rows())
        finally:
            self.run.end()
            disk.end()
        return outcome

    def start(self):
        """Lets it run into the full disk."""
        whole = self.name == "run"
        if whole and self.when == "start":
            disk = SmallDisk(self.folder / "disk")
            disk.leave(self.room)
            self.run.train(self.job)
            return disk
        if whole:
            disk = SmallDisk(self.folder / "disk")
        self.run.train(self.job).await_epoch(2)
        if not whole:
            self.run.process.send_signal(signal.SIGINT)
            self.run.wait(timeout=20)
            disk = SmallDisk(self.run.folder / DISKS[self.name])
            if self.when == "mid-run":
                self.run.resume().await_epoch(len(self.run.rows()) + 1)
        disk.leave(self.room)
        if self.run.process.poll() is not None:
            self.run.resume()
        return disk

    def watch(self):
        """What becomes of it while there is no room: an exit code, an alarm, or neither."""
        deadline = time.monotonic() + PATIENCE
        alarm = False
        while time.monotonic() < deadline and self.run.process.poll() is None and not alarm:
            alarm = any(event["event"] == "alarm" for event in self.run.events())
            time.sleep(0.05)
        if alarm:
            return "alarm, goes on"
        if self.run.process.poll() is None:
            return "not noticed"
        code = self.end_of_run()
        if code != 0 and not any(text in self.printed for text in NO_SPACE):
            self.faults.append("does not say why")
        return "not noticed" if code == 0 else f"ends with {code}"

    def end_of_run(self):
        code, output = self.run.wait()
        self.printed += output
        return code

    def finish(self):
        """Now there is room: it goes on by itself, or with --resume, or begins if it had not begun."""
        code = self.run.process.returncode
        if code is None:
            code = self.end_of_run()
        if code != 0:
            begun = (self.run.folder / "job.yaml").exists()
            code = (self.run.resume() if begun else self.run.train(self.job)) and self.end_of_run()
        if code != 0:
            self.faults.append(f"ends with {code} though there is room: {self.printed[-400:]}")

    def judge(self, rows):
        if "signal" in self.printed or "ends with -" in self.printed:
            self.faults.append("a process aborts")
        if [int(row["epoch"]) for row in rows] != list(range(1, EPOCHS + 1)):
            self.faults.append(f"{len(rows)} rows")
        if any(int(row["examples_counted"]) + int(row["examples_left"]) != EXAMPLES for row in rows):
            self.faults.append("examples are lost")
        if sum(int(row["updates_lost"]) for row in rows) > 0:
            self.faults.append("updates are lost")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--disks", nargs="+", choices=DISKS, default=list(DISKS))
    parser.add_argument("--rooms", nargs="+", type=int, default=ROOMS, help="KB that are left")
    arguments = parser.parse_args()
    faults = 0
    runs.print_header("disk", "full", *(f"{room} KB left" for room in arguments.rooms))
    with runs.temporary_folder() as folder:
        for name in arguments.disks:
            for when in WHENS:
                cells = [Cell(pathlib.Path(folder), name, when, room) for room in arguments.rooms]
                outcomes = [cell.try_it() for cell in cells]
                runs.print_row(name, when, *outcomes)
                for cell in cells:
                    faults += bool(cell.faults)
                    for fault in cell.faults:
                        print(f"{cell.folder.name}: {fault}", file=sys.stderr, flush=True)
    print(f"{faults} cells with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

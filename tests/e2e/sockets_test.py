#!/usr/bin/env python3
"""No other user of the machine reaches the processes of a run."""

import os
import pathlib
import socket
import time
import unittest

import adamant

NOBODY = 65534


def listening_ports():
    """Of this machine: {inode of the socket}."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                found.add(words[9])
    return found


def sockets_of(pid):
    """The inodes of the sockets that a process has."""
    found = set()
    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            end = os.readlink(file)
        except FileNotFoundError:
            continue
        if end.startswith("socket:["):
            found.add(end[8:-1])
    return found


def connect(path):
    """None, or the error."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        try:
            one.connect(str(path))
        except OSError as error:
            return type(error)
    return None


def as_nobody(action):
    """Returns what `action` returns, a text, in a process of another user."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(write, action().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


class SocketsTest(adamant.TestCase):
    def train(self):
        run = self.run_in().train(self.job(epochs=1000))
        run.await_epoch(1)
        return run, self.folder_of(run)

    @staticmethod
    def folder_of(run):
        endpoint = (run.folder / "endpoint").read_text().strip()
        assert endpoint.startswith("unix:/"), endpoint
        return pathlib.Path(endpoint.removeprefix("unix:")).parent

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes another user")
    def test_no_other_user_can_connect(self):
        run, folder = self.train()
        self.assertEqual((folder.stat().st_mode & 0o7777, folder.stat().st_uid), (0o700, os.geteuid()))
        sockets = sorted(folder.iterdir())
        self.assertEqual([each.name for each in sockets], ["c", "d0.1", "p0.1", "p1.1", "r0.1", "r1.1"])
        self.assertEqual([connect(each) for each in sockets], [None] * 6)
        refused = as_nobody(lambda: " ".join(connect(each).__name__ for each in sockets))
        self.assertEqual(refused.split(), ["PermissionError"] * 6)
        self.assertIsNone(run.process.poll())

    def test_the_processes_have_no_port_but_that_of_their_metrics(self):
        run, _ = self.train()
        members = run.members()
        self.assertEqual(len(members), 5)
        ports = listening_ports()
        self.assertEqual({name: len(sockets_of(pid) & ports) for name, pid in members.items()}, dict.fromkeys(members, 1))
        self.assertEqual(sockets_of(run.process.pid) & ports, set())

    def test_the_folder_goes_with_the_run(self):
        run, folder = self.train()
        run.kill_all()
        self.assertTrue(folder.is_dir())
        run.resume()
        run.await_epoch(len(run.rows()) + 1)
        self.assertFalse(folder.exists())
        folder = self.folder_of(run)
        self.assertTrue(folder.is_dir())
        run.process.terminate()
        run.wait()
        self.assertFalse(folder.exists())

    def test_a_process_that_takes_anothers_place_has_sockets_of_its_own(self):
        run, folder = self.train()
        self.assertTrue(run.kill("parameter-server-0"))
        deadline = time.monotonic() + 30  # epochs go on meanwhile, by the other server's copies
        while not (folder / "p0.2").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertIn("p0.2", [each.name for each in folder.iterdir()])
        run.await_epoch(len(run.rows()) + 2)

    def test_a_long_TMPDIR_is_not_taken(self):
        long = self.folder / ("long" * 12)
        long.mkdir()
        run = self.run_in()
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(long)
        try:
            run.train(self.job(epochs=1000))
        finally:
            os.environ.pop("TMPDIR")
            if before is not None:
                os.environ["TMPDIR"] = before
        run.await_epoch(1)
        self.assertEqual(self.folder_of(run).parent, pathlib.Path("/tmp"))


if __name__ == "__main__":
    unittest.main()

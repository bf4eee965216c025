"""Disks of single processes, mounted where they keep their data: they can be full, and lose power."""

import contextlib
import fcntl
import os
import pathlib
import struct

import netns

_EXT4_IOC_SHUTDOWN = 0x8004587D
_WITHOUT_WRITING_ANYTHING = 2


def can_lose_power():
    """Whether this system lets us mount file systems on files."""
    return os.geteuid() == 0 and os.access("/dev/loop-control", os.W_OK) and pathlib.Path("/dev/loop0").exists()


class Disk:
    """A file system of so many megabytes, mounted at a new folder; in memory, or `durable` on a device of its own."""

    def __init__(self, folder, megabytes, durable):
        self._folder = folder
        self._image = folder.with_name(folder.name + ".disk") if durable else None
        folder.mkdir(parents=True)
        if durable:
            with open(self._image, "wb") as image:
                image.truncate(megabytes << 20)
            netns.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self._image))
            self._mount()
        else:
            netns.run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder))

    def fill(self):
        """Leaves no byte free."""
        with open(self._folder / "filler", "ab", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(1 << 16))

    def free(self):
        """Undoes fill()."""
        (self._folder / "filler").unlink()

    def lose_power(self):
        """What was not synced is lost, and every access fails until power_up()."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, _EXT4_IOC_SHUTDOWN, struct.pack("I", _WITHOUT_WRITING_ANYTHING))
        finally:
            os.close(folder)

    def power_up(self):
        """No process may have a file open."""
        self.unmount()
        self._mount()

    def unmount(self):
        netns.run("umount", str(self._folder))

    def _mount(self):
        netns.run("mount", "-o", "loop", str(self._image), str(self._folder))

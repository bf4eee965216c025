"""Takes the archive of `make images` apart for the tests: settings, files, and programs run as a pod runs them."""

import json
import os
import pathlib
import subprocess
import tarfile

# The programs' root is read-only, as are the mounts under it but for /data; $1 is the root, $2 user and group.
_AS_A_POD = """
set -e
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=0777 none "$root/data"
exec chroot --userspec="$user" --groups= "$root" "$@"
"""


class Image:
    """The one image of an archive, unpacked into a folder."""

    def __init__(self, archive, folder):
        self.root = pathlib.Path(folder)
        self.entries = []  # tarfile.TarInfo of all layers
        with tarfile.open(archive) as tar:
            (manifest,) = json.load(tar.extractfile("manifest.json"))
            self.tags = manifest["RepoTags"]
            self.settings = json.load(tar.extractfile(manifest["Config"]))["config"]
            self.layers = manifest["Layers"]
            for layer in self.layers:
                with tarfile.open(fileobj=tar.extractfile(layer)) as files:
                    self.entries += files.getmembers()
                    files.extractall(self.root)
        for mount_point in ("proc", "data"):  # a pod's runtime makes them
            (self.root / mount_point).mkdir()

    def programs(self):
        """Without the other names that they have."""
        return sorted(path for path in (self.root / "usr/bin").iterdir() if not path.is_symlink())

    def elf_files(self):
        """{name: what it needs, by name} of the programs and libraries."""
        found = {}
        for path in self.root.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
                found[path.name] = _needed(path)
        return found

    def run(self, program, *arguments, timeout=120):
        """Runs a program of the image to its end: as the image's user, nothing to write to but /data."""
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _AS_A_POD, "sh", self.root,
                   self.settings["User"], f"/usr/bin/{program}", *map(str, arguments)]
        variables = dict(variable.split("=", 1) for variable in self.settings["Env"])
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, cwd="/",
                              env={**variables, "PATH": os.environ["PATH"]})


def _needed(path):
    lines = subprocess.run(["readelf", "--dynamic", path], capture_output=True, text=True, check=True).stdout
    return {line.split("[")[1].rstrip("]") for line in lines.splitlines() if "(NEEDED)" in line}

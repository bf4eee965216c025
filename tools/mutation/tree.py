"""A copy of the working tree, in which the code is broken and built."""

import hashlib
import os
import pathlib
import shutil
import subprocess

from mutations import LISTS, Mutation
from programs import stop

SOURCES = ("services/", "operator/", "proto/", "tests/", "cmake/", "CMake")


class Failure(Exception):
    """Says what a person is to do."""


class Tree:
    """Built again and again, from one mutation to the next; nobody else may use it meanwhile."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path):
        self.root = root
        self.folder = folder / "tree"
        self.intact = folder / "intact"  # programs of the code as it is
        self.mutated = ""  # a file
        self.sources = ""  # a digest of what is built

    def update(self) -> None:
        """Makes it the working tree as it is now, with what is not committed. Writes only what differs."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=self.root, check=True, capture_output=True).stdout.decode()
        names = sorted(name for name in set(listed.split("\0")) if name and (self.root / name).is_file())
        digest = hashlib.sha256()
        for name in names:
            content = (self.root / name).read_bytes()
            if name.startswith(SOURCES) and not name.startswith(LISTS):
                digest.update(f"{name} {len(content)}\n".encode() + content)
            self.write(name, content)
            shutil.copymode(self.root / name, self.folder / name)
        self.remove_all_but(set(names))
        self.sources = digest.hexdigest()[:16]
        self.mutated = ""
        mark = self.intact / "sources"
        if not mark.exists() or mark.read_text() != self.sources:
            shutil.rmtree(self.intact, ignore_errors=True)
            self.intact.mkdir(parents=True)
            mark.write_text(self.sources)

    def write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def remove_all_but(self, names: set[str]) -> None:
        for folder, folders, files in os.walk(self.folder):
            if pathlib.Path(folder) == self.folder and "build" in folders:
                folders.remove("build")
            for file in files:
                path = pathlib.Path(folder) / file
                if str(path.relative_to(self.folder)) not in names:
                    path.unlink()

    def text_of(self, mutation: Mutation) -> str:
        return (self.root / mutation.file).read_text()

    def mutate(self, mutation: Mutation) -> None:
        self.restore()
        self.mutated = mutation.file
        self.write(mutation.file, mutation.apply(self.text_of(mutation)).encode())

    def restore(self) -> None:
        if self.mutated:
            self.write(self.mutated, (self.root / self.mutated).read_bytes())
            self.mutated = ""

    def build(self, preset: str, targets: tuple[str, ...]) -> str:
        """Empty if it could; else the end of what the build printed."""
        with subprocess.Popen(["tools/build", preset, *targets], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=True) as process:
            try:
                output = process.communicate()[0]
            finally:
                stop(process)
        return "" if process.returncode == 0 else output[-4000:] or "the build failed"

    def program(self, preset: str, target: str) -> pathlib.Path:
        return self.folder / "build" / preset / "tests" / target

    def intact_program(self, preset: str, target: str) -> pathlib.Path:
        """The same test of the code as it is. Takes back a mutation if it has to be built first."""
        path = self.intact / target
        if not path.exists():
            self.restore()
            if problem := self.build(preset, (target,)):
                raise Failure(f"{target} does not build without a mutation either:\n{problem}")
            shutil.copy2(self.program(preset, target), path)
        return path

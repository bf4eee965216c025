"""Damage to what processes keep on disk: a bit flipped, the end cut, the file gone, or no file, of any kind that they have."""

import os
import re

DAMAGES = ("bit", "cut", "gone")
OF_STORES = (*DAMAGES, "folder", "fifo")  # and what is there in place of the file

# Of a store that keeps records (RocksDB): without these, or with others, it has all that it had. They are made anew.
NEEDLESS = ("OPTIONS-*", "IDENTITY", "LOCK", "MARK")
NEEDED = ("CURRENT", "MANIFEST-*", "*.log", "*.sst")
SEGMENT = "*.segment"  # of the large values beside it
LEFT_BEHIND = ("MARK.new", "*.dbtmp")  # by a kill, before they are renamed


def kind_of(path):
    """"000012.log" -> "*.log", "MANIFEST-000005" -> "MANIFEST-*"."""
    if path.suffix in (".dbtmp", ".log", ".sst", ".segment"):
        return f"*{path.suffix}"
    return re.sub(r"^(MANIFEST|OPTIONS)-\d+$", r"\1-*", path.name)


def files(folder, kind):
    """Those of the kind in and below the folder, the newest last."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and kind_of(path) == kind)


def unknown_files(folder):
    """Kinds of files in and below a store's folder that nobody has thought of."""
    known = {*NEEDLESS, *NEEDED, *LEFT_BEHIND, SEGMENT}
    return {kind_of(path) for path in folder.rglob("*") if path.is_file()} - known


def apply(damage, path, random):
    """In place, as a process may have the file open. Flipped bits spare the end of a log, which may be cut, and the foot
    of a table, which is padded."""
    size = path.stat().st_size
    if damage in ("gone", "folder", "fifo"):
        path.unlink()
        if damage != "gone":
            {"folder": os.mkdir, "fifo": os.mkfifo}[damage](path)
    elif damage == "cut":
        os.truncate(path, size * random.randrange(100) // 100)
    elif size > 0:
        # Of a segment whatever value there is, wherever it lies.
        spared = {"*.log": 3 / 4, "*.sst": 1 / 10}.get(kind_of(path), 0)
        places = range(0, size, 16384) if kind_of(path) == SEGMENT else [random.randrange(int(size * (1 - spared)) or 1)]
        with open(path, "r+b") as file:
            for place in places:
                byte = os.pread(file.fileno(), 1, place)[0]
                os.pwrite(file.fileno(), bytes([byte ^ 1 << random.randrange(8)]), place)


def may_be_unseen(kind, damage, when):
    """Where it may look like what a kill leaves, or is overwritten before anybody looks; see docs/replication.md."""
    killed = when != "stopped"
    return kind in NEEDLESS or (kind == "*.log" and damage == "cut" and killed) or (kind == SEGMENT and when == "running")

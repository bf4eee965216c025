"""The test clusters of this user. Each has a state folder, and a mark in the environment of all that runs for it, by
which remove() finds what to kill, whoever started it."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

HOME = pathlib.Path(tempfile.gettempdir()) / f"adamant-clusters-{os.getuid()}"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
PATIENCE = 30  # seconds for what must happen
_MARK = "ADAMANT_CLUSTER_STATE"


def await_that(condition, what, patience=PATIENCE):
    """Returns the first true value of condition(); TimeoutError after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {patience} s still not: {what}")
        time.sleep(0.02)
    return value


def run(*command, **options):
    """Runs a command to its end and returns what it printed; OSError says what it complained about."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


# --- Folders. Who holds the lock of one owns the cluster; the lock of a dead owner is free.


def home():
    """The parent of all state folders, which nobody else may read."""
    HOME.mkdir(mode=0o700, exist_ok=True)
    if HOME.stat().st_uid != os.getuid():
        raise OSError(f"{HOME} belongs to another user")
    return HOME


@contextlib.contextmanager
def _exclusive():
    """While it lasts, nobody else makes folders or removes leftovers."""
    with open(home() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def try_lock(folder):
    """An open file that holds the folder's lock; None while its owner lives."""
    lock = open(folder / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    except BlockingIOError:
        lock.close()
        return None


def create(folder):
    """Makes the folder of a new cluster and returns its lock, after removing what killed owners have left behind."""
    with _exclusive():
        _remove_leftovers()
        try:
            folder.mkdir()
        except FileExistsError:
            name = folder.name
            raise OSError(f"there is a cluster named {name}; tests/cluster/cluster.py down --name {name}") from None
        return try_lock(folder)


def folders():
    return sorted(folder for folder in home().iterdir() if folder.is_dir())


def remove_leftovers():
    with _exclusive():
        _remove_leftovers()


def _remove_leftovers():
    for folder in folders():
        lock = try_lock(folder)
        if lock is not None:
            with lock:
                _remove(folder)


def remove(folder):
    """Kills all that runs for the cluster and removes its control groups and its folder. Mounts and networks are in
    namespaces that end with their processes."""
    with _exclusive():
        _remove(folder)


def _remove(folder):
    def none_left():
        pids = processes(folder)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    for _ in range(2):  # a process that is becoming another program has no environment for a moment
        await_that(none_left, f"the processes of {folder.name} have ended")
        time.sleep(0.01)
    for group in cgroups(folder.name):
        remove_cgroup(group)
    shutil.rmtree(folder)


# --- Processes


def environment(folder):
    """Of all processes of the cluster: the mark, and nothing of the caller's that could change what they do."""
    return {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": str(folder), _MARK: str(folder)}


def is_marked(folder, pid):
    """Whether the process runs for the cluster. One that has ended does not, whether or not its parent has asked."""
    try:
        return f"{_MARK}={folder}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def has_ended(pid):
    """Whether all that the process held is free again: none of its threads is left, whether or not its parent has
    asked."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return status in "ZX" and len(os.listdir(f"/proc/{pid}/task")) == 1
    except OSError:
        return True


def processes(folder):
    """The pids of what runs for the cluster, containers apart."""
    return [int(entry.name) for entry in pathlib.Path("/proc").iterdir()
            if entry.name.isdigit() and is_marked(folder, int(entry.name))]


def memory(folder):
    """Bytes that these processes need, shared pages counted once; containers apart."""
    total = 0
    for pid in processes(folder):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


# --- Control groups: /adamant-<cluster>-<machine>, with version 1 in every controller


def _hierarchies():
    """The folders in which a control group must be made: one per controller with version 1, one with version 2."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [folder for folder in CGROUPS.iterdir() if folder.is_dir() and not folder.is_symlink()]


def cgroup_name(cluster, machine):
    return f"adamant-{cluster}-{machine}"


def cgroups(cluster, machine="*"):
    return [group for folder in _hierarchies() for group in folder.glob(cgroup_name(cluster, machine))]


def make_cgroup(cluster, machine):
    for folder in _hierarchies():
        group = folder / cgroup_name(cluster, machine)
        group.mkdir(exist_ok=True)
        if folder.name == "cpuset":  # with version 1 these are empty at first, and then nothing may run in it
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((folder / file).read_text())
    if (CGROUPS / "cgroup.controllers").exists():
        controllers = (CGROUPS / "cgroup.controllers").read_text().split()
        (CGROUPS / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def remove_cgroup(group):
    """Removes a group and those below; its processes are dead or about to be."""

    def removed():
        try:
            for folder, _, _ in os.walk(group, topdown=False):
                os.rmdir(folder)
            return True
        except OSError:  # busy: a process is still ending
            return False

    await_that(removed, f"{group} is unused")

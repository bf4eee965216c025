"""What runs for a cluster: daemons, and machines made of namespaces that hold them. Both are known by files in the
state folder, so whoever knows the folder can stop and start them."""

import contextlib
import os
import pathlib
import signal
import subprocess

import state
from state import await_that, run

# As the first process of its machine it must wait for orphans.
_INIT = "while :; do sleep 1000 & wait; done"
# The kubelet sets these as it likes. They are the kernel's, so it gets files of its own in their place.
_SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
            "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")


class Daemons:
    """The programs that run for a cluster. Logs: FOLDER/log/NAME.log, which later starts continue."""

    def __init__(self, folder):
        self._folder = folder
        self._children = {}  # by pid: those started by this process

    def start(self, name, command, **options):
        """`command` becomes the program, or starts it and lives as long. It survives this process. OSError when it runs
        already."""
        if self.pid(name) is not None:
            raise OSError(f"{name} runs already")
        for kind in ("log", "pid"):
            (self._folder / kind).mkdir(exist_ok=True)
        with open(self.log(name), "ab") as log:
            child = subprocess.Popen([str(word) for word in command], env=state.environment(self._folder),
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                     cwd=self._folder, **options)
        self._children[child.pid] = child
        self._pid_file(name).write_text(str(child.pid))

    def log(self, name):
        return self._folder / "log" / f"{name}.log"

    def pid(self, name):
        """None when it does not run."""
        with contextlib.suppress(FileNotFoundError):
            pid = int(self._pid_file(name).read_text())
            runs = self._children[pid].poll() is None if pid in self._children else state.is_marked(self._folder, pid)
            return pid if runs else None
        return None

    def signal(self, name, number):
        pid = self.pid(name)
        if pid is None:
            raise OSError(f"{name} does not run; the end of its log:\n{self.end_of_log(name)}")
        os.kill(pid, number)

    def kill(self, name):
        """SIGKILL; returns when it is gone, and so what it held."""
        pid = self.pid(name)
        self.signal(name, signal.SIGKILL)
        await_that(lambda: state.has_ended(pid), f"{name} has ended")

    def await_end(self):
        """Returns when all that this process has started has ended."""
        for child in self._children.values():
            child.wait()

    def await_ready(self, name, is_ready, patience=state.PATIENCE):
        """Waits for is_ready(); OSError with the end of its log when the program ends or takes too long."""

        def ready_or_ended():
            return is_ready() or self.pid(name) is None

        try:
            await_that(ready_or_ended, f"{name} is ready", patience)
        except TimeoutError as error:
            raise OSError(f"{error}; the end of its log:\n{self.end_of_log(name)}") from None
        if self.pid(name) is None:
            raise OSError(f"{name} has ended; the end of its log:\n{self.end_of_log(name)}")

    def end_of_log(self, name):
        with contextlib.suppress(FileNotFoundError):
            return self.log(name).read_text(errors="replace")[-2000:]
        return "(none)"

    def _pid_file(self, name):
        return self._folder / "pid" / name


class Machine:
    """Namespaces for network, mounts and processes. When its first process is killed, the kernel kills all the others
    and removes what the namespaces hold: mounts, links, addresses, rules."""

    def __init__(self, daemons, name):
        self.name = name
        self._daemons = daemons

    def start(self):
        self._daemons.start(self.name, ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
                                        "--mount-proc", "sh", "-c", _INIT])

        def has_started():  # the child becomes the shell once it has its namespaces and /proc
            init = self._init()
            return init is not None and pathlib.Path(f"/proc/{init}/comm").read_text() == "sh\n"

        self._daemons.await_ready(self.name, has_started)
        run(*self.in_network("ip", "link", "set", "lo", "up"))
        run(*self.in_network("sysctl", "-qw", "net.ipv4.ip_forward=1"))

    def in_network(self, *command):
        """The command that runs another one in the machine's network only. It becomes that command."""
        return ["nsenter", f"--target={self.init()}", "--net", "--", *command]

    def inside(self, *command):
        """The command that runs another one in the machine: it dies with it. It waits for that command."""
        return ["nsenter", f"--target={self.init()}", "--net", "--mount", "--pid", "--", *command]

    def furnish(self, folder):
        """An own /run, and files in place of the kernel settings that are not of a namespace; once after start()."""
        folder.mkdir(exist_ok=True)
        run(*self.inside("mount", "-t", "tmpfs", "-o", "mode=755", "run", "/run"))
        for setting in _SYSCTLS:
            ours = folder / setting.replace("/", ".")
            ours.write_text(pathlib.Path("/proc/sys", setting).read_text())
            run(*self.inside("mount", "--bind", ours, f"/proc/sys/{setting}"))

    def init(self):
        """The pid, as seen from outside, of its first process; OSError when the machine is off."""
        init = self._init()
        if init is None:
            raise OSError(f"{self.name} is off")
        return init

    def is_on(self):
        return self._init() is not None

    def kill(self):
        """All its processes at once."""
        init = self.init()
        self._daemons.kill(self.name)
        await_that(lambda: state.has_ended(init), f"all of {self.name} has ended")

    def _init(self):
        pid = self._daemons.pid(self.name)
        if pid is None:
            return None
        with contextlib.suppress(FileNotFoundError):
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return int(children[0]) if children else None
        return None

"""A job of real processes, each in a network namespace of its own: starts them for their controller, and hurts them.

The controller decides what runs (process_controller); this side starts it, tells of exits, and keeps everything else
running while the controller is dead. A node is named like its process: "controller", "parameter-server-0", "worker-1".
"""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import netns
from disks import Disk

CONTROLLER = "controller"
CONTROLLER_PORT = 7077
PATIENCE = 60  # seconds for what must happen

MANIFEST = """\
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {{name: processes}}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:{layers}
  data:
    train: {{digits: {{seed: 1, examples: 1000}}}}
    validation: {{digits: {{seed: 2, examples: 100}}}}
  distribution:
    workers: {workers}
    warmStart: {{examples: 1000}}
    dataServers: 1
    parameterServers: {parameter_servers}
  detection: {{hang: {hang}}}
  runPolicy:
    epochs: 100000
    checkpointInterval: {checkpoint_interval}
    restartBudget: {{limit: 100000, backoff: 0s}}
"""


def layers(hidden):
    """A net whose layer l has hidden[l] outputs: 28 x 28 inputs, 10 outputs at the end."""
    lines = []
    for number, outputs in enumerate([*hidden, 10]):
        lines.append(f"\n        - {{name: fc{number}, kind: FullyConnected, outputs: {outputs}}}")
        if number < len(hidden):
            lines.append(f"\n        - {{name: relu{number}, kind: Relu}}")
    return "".join(lines)


def manifest(parameter_servers, workers=1, hidden=(64,), checkpoint_interval="5m", hang="2m"):
    """`parameter_servers`: the text of that field, "{count: 3, copies: 3, buckets: 8}"."""
    return MANIFEST.format(layers=layers(hidden), workers=workers, parameter_servers=parameter_servers,
                           checkpoint_interval=checkpoint_interval, hang=hang)


def _folder(variable):
    return pathlib.Path(os.environ[variable])


def known_failpoints():
    """The names in docs/failpoints.md; empty when the programs are built without failpoints."""
    if os.environ.get("ADAMANT_HAS_FAILPOINTS") != "1":
        return frozenset()
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "failpoints.md"
    return frozenset(re.findall(r"^\| `([^`]+)` \|", page.read_text(), re.MULTILINE))


class Process:
    """One that runs, or did."""

    def __init__(self, name, generation, popen):
        self.name = name
        self.generation = generation
        self.popen = popen
        self.ready = False  # controllers: it has given an order


class Cluster:
    """`with Cluster(manifest("{count: 3}"), parameter_servers=3) as cluster:` starts the controller; leaving stops all.

    Faults take names of processes; network.proxy(name) is there for those named in `proxied` from the first connection
    on. `disks` gives members a disk of their own, of so many megabytes: {"parameter-server-0": 64}; `durable_disks`
    can lose power. Where ADAMANT_KEEP_LOGS names a folder, logs and events are copied to a new one in it.
    """

    def __init__(self, job, *, parameter_servers, workers=1, worker_program="adamant-worker", environment=None,
                 proxied=(), disks=None, durable_disks=False):
        self._job = job
        self._worker_program = worker_program
        self.servers = [f"parameter-server-{slot}" for slot in range(parameter_servers)]
        self.workers = [f"worker-{slot}" for slot in range(workers)]
        self.network = netns.Network([CONTROLLER, "data-server-0", *self.servers, *self.workers])
        self._proxied = proxied
        self._disk_sizes = dict(disks or {})
        self._durable_disks = durable_disks
        self._disks = {}
        self._environment = dict(environment or {})  # of all processes
        self._failpoints = {}  # by name: of its next starts
        self._held = set()  # not started again until released
        self._lock = threading.RLock()
        self._processes = {}
        self._waiting_starts = {}  # of processes that are held
        self._exits = collections.Counter()
        self._controller = None
        self._follower = None
        self._stopping = False

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adamant-processes-")))
            stack.enter_context(self.network)
            for name in self._proxied:
                self.network.proxy(name)
            stack.callback(self._unmount_disks)
            stack.callback(self._keep_logs)
            stack.callback(self._kill_everything)
            (self.folder / "job.yaml").write_text(self._job)
            self.start_controller()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    # --- What goes on

    @property
    def run_dir(self):
        return self.folder / "run"

    def data(self, name):
        """The folder in which a member keeps its data."""
        return self.run_dir / "data" / name

    def events(self):
        """The controller's log of events so far, one dictionary each."""
        try:
            lines = (self.run_dir / "events.jsonl").read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def status(self):
        """`adamant status` as a dictionary; None while the controller does not answer."""
        if not self._controller.ready:  # to look whether it runs would keep it from taking the run directory
            return None
        command = self.network.command(CONTROLLER, _folder("ADAMANT_BIN_DIR") / "adamant", "status", self.run_dir,
                                       "--output", "json")
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def log(self, name):
        """What all processes of this name have logged."""
        path = self.folder / "controller.log" if name == CONTROLLER else self.run_dir / "logs" / f"{name}.log"
        try:
            return path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def pid(self, name):
        """None when it does not run."""
        with self._lock:
            process = self._controller if name == CONTROLLER else self._processes.get(name)
            return process.popen.pid if process is not None and process.popen.poll() is None else None

    def exits(self, name):
        """How many processes of this name have ended."""
        with self._lock:
            return self._exits[name]

    def await_that(self, condition, what, seconds=PATIENCE):
        """Waits until condition() is true; returns what it returned."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {seconds} s\n{self.tails()}")
            if self._controller.popen.poll() not in (None, 0, -signal.SIGKILL):
                raise AssertionError(f"{what}: the controller has failed\n{self.tails()}")
            time.sleep(0.01)
        return value

    def await_phase(self, phase, seconds=PATIENCE):
        self.await_that(lambda: (self.status() or {}).get("phase") == phase, f"phase {phase}", seconds)

    def tails(self, lines=15):
        """The ends of all logs, for messages of failed tests."""
        names = [CONTROLLER, "data-server-0", *self.servers, *self.workers]
        return "\n".join(f"--- {name}\n" + "\n".join(self.log(name).splitlines()[-lines:]) for name in names)

    # --- Faults

    def signal(self, name, number):
        """Sends a signal; returns whether the process ran."""
        with self._lock:  # so that it cannot be reaped, and its pid reused, meanwhile
            pid = self.pid(name)
            if pid is not None:
                os.kill(pid, number)
            return pid is not None

    def kill(self, *names):
        """SIGKILL. The controller hears of exits and starts members again; a killed controller stays dead until
        start_controller()."""
        for name in names:
            self.signal(name, signal.SIGKILL)

    def terminate(self, name):
        """SIGTERM: the process ends in good order and is started again."""
        self.signal(name, signal.SIGTERM)

    def pause(self, name):
        self.signal(name, signal.SIGSTOP)

    def resume(self, name):
        self.signal(name, signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self, name):
        self.pause(name)
        try:
            yield
        finally:
            self.resume(name)

    @contextlib.contextmanager
    def kept_down(self, *names):
        """Processes of these names that end are not started again before this ends."""
        with self._lock:
            self._held.update(names)
        try:
            yield
        finally:
            with self._lock:
                self._held.difference_update(names)
                for name in names:
                    if (order := self._waiting_starts.pop(name, None)) is not None:
                        self._start(order)

    def disk(self, name):
        """The disk of a member that has one of its own."""
        return self._disks[name]

    def lose_power(self, *names):
        """All at once: the processes end, and what their disks had not synced is lost. They start again on the rest."""
        with self.kept_down(*names):
            before = {name: self.exits(name) for name in names}
            self.kill(*names)
            for name in names:
                self.disk(name).lose_power()
            self.await_that(lambda: all(self.exits(name) > before[name] for name in names), "the end of all")
            for name in names:
                self.disk(name).power_up()

    def arm(self, name, *starts):
        """The next processes of this name start each with some failpoints: {"area/what": "crash@3"}."""
        unknown = set().union(*starts) - known_failpoints()
        if unknown:
            raise ValueError(f"no such failpoints: {sorted(unknown)}")
        with self._lock:
            self._failpoints[name] = [";".join(f"{key}={action}" for key, action in failpoints.items())
                                      for failpoints in starts]

    # --- The controller

    def start_controller(self):
        """Starts it, or another after one was killed: members that still run go on."""
        binaries = _folder("ADAMANT_BIN_DIR")
        listen = f"{self.network.address(CONTROLLER)}:{CONTROLLER_PORT}"
        with self._lock, open(self.folder / "controller.log", "a") as log:
            popen = self.network.start(
                CONTROLLER, _folder("ADAMANT_TEST_BIN_DIR") / "process_controller", self.folder / "job.yaml",
                self.run_dir, binaries, listen, json.dumps(self._survivors()), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment_of(CONTROLLER))
            self._controller = Process(CONTROLLER, 0, popen)
        self._follower = threading.Thread(target=self._follow_orders, args=(self._controller,))
        self._follower.start()

    def stop_job(self):
        """Suspends the job in good order; returns the controller's exit code."""
        self.signal(CONTROLLER, signal.SIGTERM)
        return self._controller.popen.wait(timeout=PATIENCE)

    def _survivors(self):
        """By name: the generations of the members that run."""
        return {name: process.generation for name, process in self._processes.items() if self.pid(name) is not None}

    def _follow_orders(self, controller):
        for line in controller.popen.stdout:
            order = json.loads(line)
            with self._lock:
                if "ready" in order:
                    controller.ready = True
                elif self._stopping:
                    continue
                elif "start" in order:
                    self._start(order)
                elif "kill" in order:
                    process = self._processes.get(order["kill"])
                    if process is not None and process.generation == order["generation"]:
                        self.kill(process.name)
                else:
                    self.kill(*self._processes)
        with self._lock:
            controller.popen.wait()
            controller.popen.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                controller.popen.stdin.close()
            self._exits[CONTROLLER] += 1

    # --- Members

    def _start(self, order):
        name = order["start"]
        if self.pid(name) is not None:  # given up by a controller that did not live to have it killed
            self.kill(name)
            self._processes[name].popen.wait()
        if name in self._held:
            self._waiting_starts[name] = order
            return
        program, *arguments = order["arguments"]
        if name in self.workers:
            program = _folder("ADAMANT_BIN_DIR") / self._worker_program
            program = program if program.exists() else _folder("ADAMANT_TEST_BIN_DIR") / self._worker_program
        if name in self._disk_sizes and name not in self._disks:
            self._disks[name] = Disk(self.data(name), self._disk_sizes[name], self._durable_disks)
        address = self.network.address(name)
        flags = ["--listen", f"{address}:0", "--metrics-listen", f"{address}:0"]
        if name in self.servers:
            flags += ["--replication-listen", f"{address}:0", "--node", name]
        with open(order["log"], "a") as log:
            popen = self.network.start(name, program, *arguments, *flags, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=self._environment_of(name))
        self._processes[name] = Process(name, order["generation"], popen)
        threading.Thread(target=self._watch, args=(self._processes[name],), daemon=True).start()

    def _unmount_disks(self):
        for disk in self._disks.values():
            disk.unmount()

    def _keep_logs(self):
        if (keep := os.environ.get("ADAMANT_KEEP_LOGS")) is not None:
            kept = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=keep))
            shutil.copytree(self.run_dir / "logs", kept / "logs")
            for path in (self.folder / "controller.log", self.run_dir / "events.jsonl"):
                shutil.copy(path, kept)

    def _environment_of(self, name):
        starts = self._failpoints.get(name)
        extra = {"ADAMANT_FAILPOINTS": starts.pop(0)} if starts else {}
        return {**os.environ, **self._environment, **extra}

    def _watch(self, process):
        with contextlib.suppress(ChildProcessError):  # pid() may see the end first
            os.waitid(os.P_PID, process.popen.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            code = process.popen.wait()
            self._exits[process.name] += 1
            if self._stopping:
                return
            how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
            self._tell({"exited": process.name, "generation": process.generation, "how": how,
                        "bad_configuration": code in (2, 127)})

    def _tell(self, message):
        # Without a controller nobody need know: its successor starts all members that do not run.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._controller.popen.stdin.write(json.dumps(message) + "\n")
            self._controller.popen.stdin.flush()

    def _kill_everything(self):
        with self._lock:
            self._stopping = True
            processes = [self._controller, *self._processes.values()]
            for process in processes:
                if process is not None:
                    process.popen.kill()
        for process in processes:
            if process is not None:
                process.popen.wait(timeout=PATIENCE)
        if self._follower is not None:
            self._follower.join()

"""A network of its own for a test: nodes are network namespaces on one bridge, links are cut by iptables.

A test program ends with `netns.main()`, which runs it again inside new namespaces for network, mounts and processes:
nothing of it is seen outside, and when it ends, however it ends, the kernel removes all it made, processes included.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import unittest

SUBNET = "10.77.0"
PROXY_PORT = 15001
PROXY_MARK = "0x1"  # kProxyMark of proxy_connection.h
SKIPPED = 77  # exit code that ctest counts as skipped
INSIDE = "ADAMANT_INSIDE_NAMESPACES"
_CLONE_NEWNET = 0x40000000


def run(*command):
    """Runs a command of the system to its end; OSError says what it complained about."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


# Who is not root becomes root of a user namespace, where the system allows that.
_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
_UNSHARE = ["unshare", *_ROOT, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def _unavailable():
    """Why there can be no network of our own; None when there can."""
    for tool in ("ip", "iptables", "nsenter", "unshare"):
        if shutil.which(tool) is None:
            return f"needs {tool}: tools/setup installs it"
    probe = subprocess.run([*_UNSHARE, "sh", "-c", "mount -t tmpfs none /run && iptables -t nat -L -n"],
                           capture_output=True, text=True, check=False)
    return None if probe.returncode == 0 else f"needs root, or user namespaces: {probe.stderr.strip()}"


def enter():
    """Runs the calling program again inside new namespaces, and returns there. Where that cannot be, says so and ends
    it as skipped; with CI=true as failed."""
    if INSIDE in os.environ:
        run("mount", "-t", "tmpfs", "none", "/run")
        run("ip", "link", "set", "lo", "up")
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    reason = _unavailable()
    if reason is not None:
        print(f"{pathlib.Path(sys.argv[0]).name}: {reason}", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    os.execvpe(_UNSHARE[0], [*_UNSHARE, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def main():
    """Runs the tests of the calling program after enter()."""
    enter()
    unittest.main()


class Network:
    """`with Network(["a", "b"]) as network:`"""

    def __init__(self, nodes):
        self._addresses = {node: f"{SUBNET}.{number}" for number, node in enumerate(nodes, start=1)}
        self._cut = set()  # nodes that have rules
        self._proxies = {}
        self._cleanup = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            run("ip", "link", "add", "bridge", "type", "bridge")
            stack.callback(run, "ip", "link", "delete", "bridge")
            run("ip", "link", "set", "bridge", "up")
            for number, (node, address) in enumerate(self._addresses.items()):
                port = f"port{number}"
                run("ip", "netns", "add", node)
                stack.callback(run, "ip", "netns", "delete", node)
                run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", node)
                stack.callback(run, "ip", "link", "delete", port)
                run("ip", "link", "set", port, "master", "bridge", "up")
                run("ip", "-n", node, "address", "add", f"{address}/24", "dev", "eth0")
                run("ip", "-n", node, "link", "set", "eth0", "up")
                run("ip", "-n", node, "link", "set", "lo", "up")
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *error):
        for proxy in self._proxies.values():
            proxy.stop()
        return self._cleanup.__exit__(*error)

    def address(self, node):
        return self._addresses[node]

    def command(self, node, *arguments):
        """The command that runs another one in a node. It becomes that command: its pid is the command's."""
        return ["nsenter", f"--net=/run/netns/{node}", "--", *map(str, arguments)]

    def start(self, node, *arguments, **options):
        """Popen in a node."""
        return subprocess.Popen(self.command(node, *arguments), **options)

    def socket(self, node, kind):
        """A socket of this process that sees the network as the node does: SOCK_STREAM or SOCK_DGRAM."""
        made = []

        def make():  # a thread of its own, as entering a namespace concerns the thread
            with open(f"/run/netns/{node}") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) == 0:
                    made.append(socket.socket(socket.AF_INET, kind))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return made[0]

    # --- Faults. Packets on a cut way vanish, and nobody is told.

    def drop(self, source, target):
        """Cuts the way from source to target, not the way back."""
        self._rule("-A", source, target)

    def restore(self, source, target):
        """Undoes drop()."""
        self._rule("-D", source, target)

    def cut(self, a, b):
        """Cuts both ways between two nodes."""
        self.drop(a, b)
        self.drop(b, a)

    def isolate(self, node):
        """Cuts a node off all others."""
        for other in self._addresses.keys() - {node}:
            self.cut(node, other)

    def heal(self):
        """Undoes all of the above."""
        for node in self._cut:
            run(*self.command(node, "iptables", "-w", "-F"))
        self._cut.clear()

    @contextlib.contextmanager
    def flapping(self, a, b, cut_seconds, whole_seconds):
        """As long as it lasts, the way from a to b is cut and whole in turns; whole afterwards."""
        stop = threading.Event()

        def flap():
            while not stop.is_set():
                self.drop(a, b)
                stop.wait(cut_seconds)
                self.restore(a, b)
                stop.wait(whole_seconds)

        thread = threading.Thread(target=flap)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _rule(self, change, source, target):
        self._cut.add(target)
        run(*self.command(target, "iptables", "-w", change, "INPUT", "-i", "eth0", "-s", self.address(source),
                           "-j", "DROP"))

    # --- Slow and odd connections

    def proxy(self, node):
        """The proxy that all TCP connections made from this node go through from now on; started at the first call."""
        if node not in self._proxies:
            self._proxies[node] = Proxy(self, node)
        return self._proxies[node]


class Proxy:
    """tcp_proxy of one node. Connections made before it started do not go through it."""

    def __init__(self, network, node):
        self._network = network
        program = pathlib.Path(os.environ["ADAMANT_TEST_BIN_DIR"]) / "tcp_proxy"
        self._process = network.start(node, program, PROXY_PORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True)
        self._answer()
        run(*network.command(node, "iptables", "-w", "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-d", f"{SUBNET}.0/24",
                              "!", "-o", "lo", "-m", "mark", "!", "--mark", PROXY_MARK,
                              "-j", "REDIRECT", "--to-ports", str(PROXY_PORT)))

    def set(self, node="*", **behaviour):
        """How connections to a node, or to all without a behaviour of their own, are treated, open ones too: keys of
        proxy_behaviour.h. Without keys they are just forwarded."""
        values = " ".join(f"{key}={int(value)}" for key, value in behaviour.items())
        self._command(f"set {self._target(node)} {values}".rstrip())

    def reset(self, node="*"):
        """Resets the open connections to a node, or all."""
        self._command(f"reset {self._target(node)}")

    def stats(self):
        """{"connections": so far, "open":, "bytes":, "resets":, "duplicated":}"""
        return {key: int(value) for key, value in (word.split("=") for word in self._command("stats").split()[1:])}

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _target(self, node):
        return node if node == "*" else self._network.address(node)

    def _command(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line.startswith("ok"):
            raise ValueError(f"tcp_proxy: {line.strip() or 'ended'}")
        return line

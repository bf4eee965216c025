#!/usr/bin/env python3
"""A real Kubernetes on this machine, for tests: `with Cluster.api_only() as cluster:`. README.md says what there is.

usage: tests/cluster/cluster.py --help
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys

import build_binaries
import state
import storage
from control_plane import ControlPlane
from images import write_probe_image
from machine import Daemons, Machine
from node import CNI_PLUGINS, Node, fake_node
from pki import Authority, write_kubeconfig
from state import await_that

# What each kind needs of the machine, by the sections of tools/packages.txt.
_TOOLS = {"tests": ("openssl",)}
_NODE_TOOLS = {"tests": ("cc", "ip", "iptables", "nft", "nsenter", "openssl", "unshare"),
               "cluster": ("containerd", "ctr", "runc", f"{CNI_PLUGINS}/ptp")}
_READY = 120  # seconds within which a node must be ready on a busy machine
_CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
_PROGRAMS = {
    "api-only": build_binaries.API_ONLY,
    "control-plane": (*build_binaries.API_ONLY, *_CONTROLLERS),
    "fake-nodes": (*build_binaries.API_ONLY, *_CONTROLLERS, "kwok"),
    "nodes": (*build_binaries.API_ONLY, *_CONTROLLERS, "kubelet", "kube-proxy", "coredns"),
}


def require(kind, programs=(), sources=()):
    """Ends the calling test program as skipped where it cannot have clusters of the kind, "api-only", "control-plane",
    "fake-nodes" or "nodes", or more of what build_binaries has; with CI=true as failed."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    try:
        for section, tools in (_NODE_TOOLS if kind == "nodes" else _TOOLS).items():
            for tool in tools:
                if shutil.which(tool) is None:
                    raise OSError(f"needs {tool}: tools/setup {section} installs it")
        if kind == "nodes":
            _require_rights()
        build_binaries.find((*_PROGRAMS[kind], *programs))
        for name in sources:
            build_binaries.source(name)
    except OSError as error:
        build_binaries.skip(error)


def _require_rights():
    if os.geteuid() != 0:
        raise OSError("nodes need root")
    probe = f"probe-{secrets.token_hex(3)}"
    try:
        state.make_cgroup(probe, "node")
        for group in state.cgroups(probe):
            state.remove_cgroup(group)
        state.run("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true")
    except OSError as error:
        raise OSError(f"nodes need control groups and namespaces: {error}") from error


class Cluster:
    """Starts when entered, and is removed with all that runs for it when left, or when this process ends in whatever
    way. Where ADAMANT_CLUSTER_KEEP=1 it stays; where ADAMANT_KEEP_LOGS names a folder, its logs are copied there.

    Failures are OSError. Methods may be called by several threads, but not two at a time on one machine or program."""

    def __init__(self, kind, nodes, name=None, *, api_arguments=(), enforce_policies=False):
        self.name = name or secrets.token_hex(3)
        self.folder = state.home() / self.name
        self.daemons = Daemons(self.folder)
        self.authority = Authority(self.folder / "pki")
        self._settings = {"kind": kind, "nodes": nodes, "api_arguments": list(api_arguments),
                          "enforce_policies": enforce_policies}
        self._keeper = None

    @classmethod
    def api_only(cls, **options):
        """etcd and the API server, on loopback. Nothing acts on objects: no pod runs, no namespace vanishes."""
        return cls("api-only", 0, **options)

    @classmethod
    def control_plane(cls, **options):
        """Also the controllers and the scheduler: garbage is collected, pods are bound to nodes that a test makes."""
        return cls("control-plane", 0, **options)

    @classmethod
    def fake_nodes(cls, count, **options):
        """Also nodes node1, node2, … that are ready, and on which thousands of pods are Running at once, but nothing
        runs: for tests of scale. A deleted pod vanishes at once."""
        return cls("fake-nodes", count, **options)

    @classmethod
    def nodes(cls, count, **options):
        """Also nodes that run pods, DNS and the storage class "local". Needs root. `enforce_policies`: pods
        send and get what NetworkPolicies let through; otherwise these are kept, and have no effect."""
        return cls("nodes", count, **options)

    @classmethod
    def attach(cls, name):
        """One that runs already, started by whomever."""
        state.remove_leftovers()
        if not (state.home() / name / "cluster.json").exists():
            others = " ".join(folder.name for folder in state.folders())
            raise OSError(f"there is no cluster {name}; there are: {others or 'none'}")
        settings = json.loads((state.home() / name / "cluster.json").read_text())
        cluster = cls(settings["kind"], settings["nodes"], name)
        cluster._assemble(settings)
        return cluster

    def __enter__(self):
        programs = build_binaries.find(_PROGRAMS[self._settings["kind"]])
        lock = state.create(self.folder)
        with lock, socket.socket() as port:
            # Held as long as the cluster lives: nobody takes the port while the API server is down.
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            port.bind(("127.0.0.1", 0))
            self._keeper = subprocess.Popen(
                [sys.executable, pathlib.Path(__file__).with_name("keeper.py"), self.folder], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                pass_fds=[lock.fileno(), port.fileno()])
            settings = {**self._settings, "port": port.getsockname()[1], "keeper": self._keeper.pid,
                        "programs": {name: str(path) for name, path in programs.items()}}
        with contextlib.ExitStack() as stack:
            stack.callback(self._remove)
            (self.folder / "cluster.json").write_text(json.dumps(settings))
            self._assemble(settings)
            self._start()
            stack.pop_all()
        return self

    def __exit__(self, *error):
        if os.environ.get("ADAMANT_CLUSTER_KEEP") == "1":
            self._keeper.stdin.write(b"keep")
            self._keeper.stdin.close()
            print(f"kept: export KUBECONFIG={self.kubeconfig()}\nremove it: tests/cluster/cluster.py down {self.name}")
        else:
            self._remove()

    def _remove(self):
        self._copy_logs()
        with contextlib.suppress(BrokenPipeError):  # somebody else has removed it
            self._keeper.stdin.close()
        complaint = self._keeper.stderr.read().decode()
        self._keeper.stderr.close()
        if self._keeper.wait() != 0:
            raise OSError(f"cluster {self.name} is not removed: {complaint}")
        self.daemons.await_end()

    def await_end(self):
        """Returns when somebody has removed it."""
        self._keeper.wait()

    def down(self):
        """Removes one that another process has started."""
        os.kill(self._settings["keeper"], signal.SIGTERM)
        await_that(lambda: not self.folder.exists(), f"cluster {self.name} is removed", _READY)

    # --- Who asks, and how

    @property
    def url(self):
        """Of the API server, on loopback; the same after a restart."""
        return self._plane.url

    @property
    def api(self):
        """An Api of the administrator."""
        return self._plane.api()

    def kubeconfig(self, user="admin", groups=()):
        """Path of a file for a user with a client certificate. The administrator may do everything, others what roles
        allow them."""
        name = "-".join([user, *groups])
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"  # the administrator's exists already
        return self._write_kubeconfig(name, self.authority.issue(name, subject))

    def token(self, namespace, account, seconds=3600):
        """A token of a service account, which must exist; valid for at least 600 s."""
        answer = self.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}})
        return answer["status"]["token"]

    def token_kubeconfig(self, namespace, account, seconds=3600):
        """Path of a file for a service account with a token."""
        return self._write_kubeconfig(f"{namespace}-{account}", {"token": self.token(namespace, account, seconds)})

    def kubectl(self, *arguments, input=None, user="admin"):
        """What kubectl printed. `input`: text, or an object that becomes JSON."""
        text = json.dumps(input) if isinstance(input, dict) else input
        return state.run(self.programs["kubectl"], "--kubeconfig", self.kubeconfig(user), *arguments, input=text,
                         env=self.kubectl_environment())

    def kubectl_environment(self):
        """Where kubectl keeps what it knows of the API server, which is gone with the cluster."""
        return {**os.environ, "KUBECACHEDIR": str(self.folder / "kubectl")}

    # --- Faults of the control plane

    def stop_api(self):
        """SIGKILL for the API server; connections to it are refused, what etcd holds stays."""
        self._plane.stop_api()

    def start_api(self):
        """Returns when it serves again."""
        self._plane.start_api()

    def pause_api(self):
        """The API server keeps its connections and takes new ones, but answers nothing."""
        self._plane.pause_api()

    def resume_api(self):
        """Undoes pause_api()."""
        self._plane.resume_api()

    def reset_connections(self, of=()):
        """Ends all connections to the API server, watches too, or those of these addresses; it serves on. Needs root."""
        self._plane.reset_connections(of)

    def restart_etcd(self):
        """SIGKILL and a new start at once; the API server stays."""
        self._plane.restart_etcd()

    def in_control_network(self, *command):
        """The command that runs another one in the network that the control plane is in."""
        return self._plane.in_network(*command)

    # --- Nodes, numbered from 1

    def cut_node(self, number):
        """Cuts its power: from one moment on it is silent, and nothing is told to anybody."""
        self._node(number).cut()

    def restore_node(self, number):
        """Switches a cut node on again, with the disk that it had."""
        self._node(number).start(self._nodes)

    def disconnect_node(self, number):
        """Cuts it off the network; its pods run on."""
        self._node(number).disconnect()

    def reconnect_node(self, number):
        """Undoes disconnect_node()."""
        self._node(number).reconnect()

    def node_exec(self, number, *command):
        """Runs a command in a node, as its root, and returns what it printed."""
        return self._node(number).exec(*command)

    def load_images(self, archives):
        """Gives images to all nodes that are on; `archives`: files as `docker save` and `buildah push` write them. Pods
        must say imagePullPolicy: Never or IfNotPresent."""
        nodes = [node for node in self._nodes if node.is_on()]
        if not nodes:
            raise OSError(f"cluster {self.name} has no nodes that are on")
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
            for archive in archives:
                for done in [pool.submit(node.load_image, archive) for node in nodes]:
                    done.result()

    def kill_container(self, namespace, pod):
        """SIGKILL for the first process of the pod's first container."""
        node, container = self._container(namespace, pod)
        node.kill_container(container)

    def exec_in_network_of(self, namespace, pod, *command):
        """Runs a program of this machine, as root, in the network of a pod, and returns what it printed."""
        node, container = self._container(namespace, pod)
        return node.exec_in_network_of(container, *command)

    def _container(self, namespace, pod):
        """The node that the pod is on, and its first container's name there."""
        found = self.api.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")
        container = found["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        return self._node(int(found["spec"]["nodeName"].removeprefix("node"))), container

    def serve_files(self, folder):
        """Serves a folder's files by HTTP to all pods and nodes, until the cluster ends; returns the URL. Once."""
        return self._plane.serve_files(folder)

    # --- How it starts

    def _assemble(self, settings):
        self._settings = settings
        self.programs = settings["programs"]
        hub = Machine(self.daemons, "hub") if settings["kind"] == "nodes" else None
        self._plane = ControlPlane(self.folder, self.daemons, self.authority, settings, hub)
        self._nodes = [Node(self.folder, number, Machine(self.daemons, f"node{number}"), hub, self._plane,
                            enforce_policies=settings["enforce_policies"])
                       for number in range(1, settings["nodes"] + 1)] if hub is not None else []

    def _start(self):
        self.authority.create()
        self._plane.start()
        if self._settings["kind"] != "api-only":
            self._plane.start_controllers()
        if self._settings["kind"] == "fake-nodes":
            self._plane.start_kwok()
            for number in range(1, self._settings["nodes"] + 1):
                self.api.create("/api/v1/nodes", fake_node(f"node{number}"))
        if self._settings["kind"] == "nodes":
            self._start_nodes()
        if self._settings["kind"] != "api-only":
            self.daemons.await_ready("kube-controller-manager", self._takes_pods)

    def _start_nodes(self):
        self._plane.start_dns()
        self.api.create("/apis/storage.k8s.io/v1/storageclasses", storage.CLASS)
        self.daemons.start("storage", [sys.executable, storage.__file__, self.url, self.authority.certificate,
                                       *self.authority.issued("admin"), self.folder])
        for node in self._nodes:
            node.start(self._nodes)
        self.load_images([write_probe_image(self.folder)])
        for node in self._nodes:
            self.daemons.await_ready(f"{node.name}-kubelet", lambda node=node: self._is_ready(node), _READY)

    def _takes_pods(self):
        accounts = self.api.get("/api/v1/namespaces/default/serviceaccounts")["items"]
        return "default" in (account["metadata"]["name"] for account in accounts)

    def _is_ready(self, node):
        try:
            return node.is_ready(self.api)
        except OSError:  # it has not registered
            return False

    def _node(self, number):
        if not 1 <= number <= len(self._nodes):
            raise OSError(f"cluster {self.name} has no node {number}; it has {len(self._nodes)}")
        return self._nodes[number - 1]

    def _write_kubeconfig(self, name, credentials):
        return write_kubeconfig(self.folder / f"{name}.kubeconfig", self.url, self.authority, credentials)

    def _copy_logs(self):
        target = os.environ.get("ADAMANT_KEEP_LOGS")
        if target and (self.folder / "log").exists():
            shutil.copytree(self.folder / "log", pathlib.Path(target) / f"cluster-{self.name}")


if __name__ == "__main__":
    import command_line

    command_line.main()

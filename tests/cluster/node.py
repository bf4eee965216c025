"""One node of a cluster: a machine with its own containerd, kubelet, kube-proxy, control groups and pod network."""

import json
import shutil
import sys

import policy_enforcer
import state
from control_plane import ADDRESS, PODS
from images import PAUSE
from state import run

CNI_PLUGINS = "/usr/lib/cni"
_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true  # not every kernel lets us lower it
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""


def fake_node(name):
    """The object of a node that does not exist and has room for everything."""
    room = {"cpu": "10000", "memory": "10000Gi", "pods": "10000"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"capacity": room, "allocatable": room}}


class Node:
    """`number` from 1; `hub`: the control plane's machine, which has all nodes on its bridge. The node's disk, which
    outlives a power cut, is a folder: containers, images, the kubelet's state, volumes."""

    def __init__(self, folder, number, machine, hub, control_plane, *, enforce_policies):
        self.name = f"node{number}"
        self._cluster = folder.name
        self._disk = folder / self.name
        self._number = number
        self._machine = machine
        self._hub = hub
        self._control_plane = control_plane
        self._enforce_policies = enforce_policies
        self._daemons = control_plane.daemons
        self.address = f"198.18.0.{10 + number}"
        self._pods = f"198.19.{128 + number}.0/24"

    def start(self, nodes):
        """Switches it on; `nodes`: all of the cluster. containerd runs when this returns, the others soon after."""
        self._disk.mkdir(exist_ok=True)
        (self._disk / "volumes").mkdir(exist_ok=True)
        self._machine.start()
        self._machine.furnish(self._disk / "sysctl")
        self._connect(nodes)
        state.make_cgroup(self._cluster, self.name)
        if self._enforce_policies:
            self._start_enforcer()
        self._start_containerd()
        self._start_kubelet()
        self._start_proxy()

    def cut(self):
        """As when its power fails: silent from one moment on, and nothing is told to anybody."""
        self.disconnect()
        self._machine.kill()
        run(*self._hub.in_network("ip", "link", "delete", self.name))
        for group in state.cgroups(self._cluster, self.name):
            state.remove_cgroup(group)

    def is_on(self):
        return self._machine.is_on()

    def disconnect(self):
        """Pulls the network's plug; all goes on running."""
        run(*self._hub.in_network("ip", "link", "set", self.name, "down"))

    def reconnect(self):
        run(*self._hub.in_network("ip", "link", "set", self.name, "up"))

    def exec(self, *command):
        """Runs a command in it, as its root, and returns what it printed."""
        return run(*self._machine.inside(*command))

    def load_image(self, archive):
        self._ctr("images", "import", archive)

    def kill_container(self, container):
        """SIGKILL for the container's first process."""
        self._ctr("tasks", "kill", "--signal", "SIGKILL", container)

    def exec_in_network_of(self, container, *command):
        """Runs a program of this machine, as root, in the network of a container that runs; returns what it printed."""
        tasks = dict(line.split()[:2] for line in self._ctr("tasks", "list").splitlines())
        if container not in tasks:
            raise OSError(f"{self.name} runs no container {container}")
        return self.exec("nsenter", f"--target={tasks[container]}", "--net", "--", *command)

    def is_ready(self, api):
        """Whether the API calls it ready. OSError when it is off."""
        for condition in api.get(f"/api/v1/nodes/{self.name}")["status"]["conditions"]:
            if condition["type"] == "Ready":
                return condition["status"] == "True"
        return False

    def _ctr(self, *arguments):
        return run("ctr", "--address", self._disk / "containerd.sock", "--namespace", "k8s.io", *arguments)

    def _connect(self, nodes):
        """A link to the bridge, and a route to the pods of each other node."""
        hub, mine = self._hub.in_network("ip"), self._machine.in_network("ip")
        run(*hub, "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self._machine.init())
        run(*hub, "link", "set", self.name, "master", "bridge", "up")
        run(*hub, "route", "replace", self._pods, "via", self.address)
        run(*mine, "address", "add", f"{self.address}/16", "dev", "eth0")
        run(*mine, "link", "set", "eth0", "up")
        run(*mine, "route", "add", "default", "via", ADDRESS)
        for other in nodes:
            if other is not self:
                run(*mine, "route", "add", other._pods, "via", other.address)

    def _start_enforcer(self):
        """Returns when there are rules: no pod is before them."""
        authority = self._control_plane.authority
        self._start("policies", sys.executable, policy_enforcer.__file__, self._control_plane.inner_url,
                    authority.certificate, *authority.issued("admin"))
        self._daemons.await_ready(f"{self.name}-policies", lambda: policy_enforcer.is_enforced(self._machine.in_network))

    def _start_containerd(self):
        configuration = self._disk / "containerd.toml"
        configuration.write_text(_CONTAINERD.format(folder=self._disk, pause=PAUSE, plugins=CNI_PLUGINS))
        (self._disk / "cni").mkdir(exist_ok=True)
        pods = {"type": "host-local", "dataDir": str(self._disk / "addresses"), "ranges": [[{"subnet": self._pods}]],
                "routes": [{"dst": "0.0.0.0/0"}]}
        (self._disk / "cni" / "pods.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "pods",
            "plugins": [{"type": "ptp", "ipam": pods}, {"type": "portmap", "capabilities": {"portMappings": True}}]}))
        (self._disk / "containerd.sock").unlink(missing_ok=True)  # of the time before a power cut
        self._start("containerd", shutil.which("containerd"), "--config", configuration)
        self._daemons.await_ready(f"{self.name}-containerd", self._containerd_answers)

    def _containerd_answers(self):
        try:
            self._ctr("version")
            return True
        except OSError:
            return False

    def _start_kubelet(self):
        authority = self._control_plane.authority
        identity = (self.name, f"/O=system:nodes/CN=system:node:{self.name}")
        certificate, key = authority.issue(*identity, [f"DNS:{self.name}", f"IP:{self.address}"])
        configuration = self._disk / "kubelet.json"
        configuration.write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self._disk}/containerd.sock",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{state.cgroup_name(self._cluster, self.name)}",
            "failCgroupV1": False, "failSwapOn": False,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(authority.certificate)}},
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(certificate), "tlsPrivateKeyFile": str(key),
            "clusterDNS": [ADDRESS], "clusterDomain": "cluster.local", "resolvConf": "/dev/null",
            "podLogsDir": str(self._disk / "logs"), "volumePluginDir": str(self._disk / "plugins"),
            # The disk and the memory are the whole machine's: what others use is no reason to evict.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        }))
        self._start("kubelet", self._control_plane.programs["kubelet"], "--config", configuration,
                    "--kubeconfig", self._control_plane.inner_kubeconfig(*identity),
                    "--hostname-override", self.name, "--node-ip", self.address, "--root-dir", self._disk / "kubelet")

    def _start_proxy(self):
        configuration = self._disk / "proxy.json"
        configuration.write_text(json.dumps({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
            "clientConnection": {"kubeconfig": str(self._control_plane.kubeconfig_of("kube-proxy"))},
            "hostnameOverride": self.name, "clusterCIDR": PODS,
            "conntrack": {"maxPerCore": 0},  # the kernel's, not a namespace's
        }))
        self._start("proxy", self._control_plane.programs["kube-proxy"], "--config", configuration)

    def _start(self, program, *command):
        self._daemons.start(f"{self.name}-{program}", self._machine.inside(*command))

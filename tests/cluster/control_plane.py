"""The control plane of one cluster: etcd, the API server, the controllers, DNS and a way to reach it from outside."""

import pathlib
import signal
import socket
import sys

from api import Api
from pki import write_kubeconfig
from state import run

ADDRESS = "198.18.0.1"  # where it has a machine of its own; 198.18.0.0/15 is set aside for benchmarks
SERVICES = "198.19.0.0/17"
PODS = "198.19.128.0/17"
_PORT = 6443  # on ADDRESS
_FILES_PORT = 8000  # likewise
_ETCD = "unix://etcd:1"  # a socket in the state folder, where all daemons run; etcd wants something like a port
_START = 60  # seconds within which the API server must be ready on a busy machine
_COREFILE = """\
cluster.local:53 {{
  errors
  kubernetes cluster.local {{
    kubeconfig {kubeconfig}
  }}
}}
"""


class ControlPlane:
    """`settings`: {"programs": {name: path}, "port": on loopback, "api_arguments": more of the API server's}.
    `machine`: None when all runs on loopback."""

    def __init__(self, folder, daemons, authority, settings, machine):
        self.daemons = daemons
        self.authority = authority
        self.programs = settings["programs"]
        self._folder = folder
        self._settings = settings
        self._machine = machine
        self.url = f"https://127.0.0.1:{settings['port']}"  # for those outside
        self.inner_url = self.url if machine is None else f"https://{ADDRESS}:{_PORT}"

    def start(self):
        names = ("DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
                 "IP:127.0.0.1", f"IP:{ADDRESS}", "IP:198.19.0.1")
        self.authority.issue("apiserver", "/CN=kube-apiserver", names)
        self.authority.issue("admin", "/O=system:masters/CN=admin")
        self.authority.make_signing_key("tokens.key")
        if self._machine is not None:
            self._start_machine()
        self.start_etcd()
        self.start_api()

    def api(self):
        """Of the administrator, for use outside."""
        return Api(self.url, self.authority.certificate, *self.authority.issued("admin"))

    # --- etcd

    def start_etcd(self):
        # Nothing here must survive a power cut of this machine; unwritten pages survive the end of a process.
        self._start("etcd", "--data-dir", "etcd.data", "--listen-client-urls", _ETCD, "--advertise-client-urls", _ETCD,
                    "--listen-peer-urls", "unix://etcd:2", "--unsafe-no-fsync")

    def restart_etcd(self):
        self.daemons.kill("etcd")
        self.start_etcd()

    # --- The API server

    def start_api(self):
        """Returns when it serves."""
        self._start("kube-apiserver", *self._api_arguments())
        self.daemons.await_ready("kube-apiserver", self.api().is_ready, _START)

    def stop_api(self):
        self.daemons.kill("kube-apiserver")

    def pause_api(self):
        """It keeps its connections and answers nothing."""
        self.daemons.signal("kube-apiserver", signal.SIGSTOP)

    def resume_api(self):
        self.daemons.signal("kube-apiserver", signal.SIGCONT)

    def reset_connections(self, of=()):
        """Ends all connections to the API server, watches too, or those of these addresses; it serves on. Needs root."""
        port = self._settings["port"] if self._machine is None else _PORT
        peers = " or ".join(f"dst {address}" for address in of)
        run(*self.in_network("ss", "--kill", "--tcp", f"sport = :{port}" + (f" and ( {peers} )" if of else "")))

    def _api_arguments(self):
        certificate, key = self.authority.issued("apiserver")
        admin_certificate, admin_key = self.authority.issued("admin")
        tokens = self._folder / "pki" / "tokens.key"
        if self._machine is None:
            # A sharing port can be held for us while the server is down. On loopback nobody needs endpoints of it.
            where = ["--bind-address", "127.0.0.1", "--secure-port", self._settings["port"], "--permit-port-sharing",
                     "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none"]
        else:
            where = ["--bind-address", "0.0.0.0", "--secure-port", _PORT, "--advertise-address", ADDRESS]
        return [*where,
                "--etcd-servers", _ETCD,
                "--tls-cert-file", certificate, "--tls-private-key-file", key,
                "--client-ca-file", self.authority.certificate,
                "--service-account-issuer", "https://kubernetes.default.svc",
                "--service-account-key-file", tokens, "--service-account-signing-key-file", tokens,
                "--service-cluster-ip-range", SERVICES,
                "--authorization-mode", "Node,RBAC",
                "--enable-admission-plugins", "NodeRestriction",
                "--kubelet-client-certificate", admin_certificate, "--kubelet-client-key", admin_key,
                "--kubelet-certificate-authority", self.authority.certificate,
                "--kubelet-preferred-address-types", "InternalIP",
                "--shutdown-delay-duration", "0s",
                *self._settings["api_arguments"]]

    # --- What acts on objects

    def start_controllers(self):
        # No second ones, no ports of their own, and no limit that would be the one that a test of scale measures.
        common = ["--leader-elect=false", "--secure-port", 0, "--kube-api-qps", 1000, "--kube-api-burst", 2000]
        self._start("kube-controller-manager", "--kubeconfig", self.kubeconfig_of("kube-controller-manager"), *common,
                    "--root-ca-file", self.authority.certificate, "--use-service-account-credentials")
        self._start("kube-scheduler", "--kubeconfig", self.kubeconfig_of("kube-scheduler"), *common)

    def start_dns(self):
        """Names of services, asked of this machine by all pods."""
        corefile = self._folder / "Corefile"
        kubeconfig = self.inner_kubeconfig("coredns", "/O=system:masters/CN=coredns")
        corefile.write_text(_COREFILE.format(kubeconfig=kubeconfig))
        self._start("coredns", "-conf", corefile)

    def start_kwok(self):
        """Makes every node ready and every pod on one run, without containers."""
        self._start("kwok", "--kubeconfig", self.inner_kubeconfig("kwok", "/O=system:masters/CN=kwok"),
                    "--manage-all-nodes", "--node-lease-duration-seconds", 40, "--cidr", PODS)

    def serve_files(self, folder):
        """Serves files by HTTP; returns the URL."""
        self.daemons.start("files", self.in_network(sys.executable, "-u", "-m", "http.server", "--bind", ADDRESS,
                                                    "--directory", folder, _FILES_PORT))
        self.daemons.await_ready("files", lambda: "Serving" in self.daemons.log("files").read_text())
        return f"http://{ADDRESS}:{_FILES_PORT}"

    def kubeconfig_of(self, component):
        """Of a component that Kubernetes has a role for."""
        return self.inner_kubeconfig(component, f"/CN=system:{component}")

    def inner_kubeconfig(self, name, subject):
        """Path of a file for use inside the cluster's network."""
        return write_kubeconfig(self._folder / f"{name}.kubeconfig", self.inner_url, self.authority,
                                self.authority.issue(name, subject))

    # --- Its machine: a bridge that the nodes' links are plugged into

    def _start_machine(self):
        self._machine.start()
        for command in ("link add bridge type bridge forward_delay 0", f"address add {ADDRESS}/16 dev bridge",
                        "link set bridge up", "route add default dev bridge"):
            run(*self._machine.in_network("ip", *command.split()))
        with socket.create_server(("127.0.0.1", self._settings["port"]), reuse_port=True) as listener:
            forward = pathlib.Path(__file__).with_name("forward.py")
            self.daemons.start("forward", self._machine.in_network(
                sys.executable, forward, str(listener.fileno()), ADDRESS, str(_PORT)), pass_fds=[listener.fileno()])

    def _start(self, name, *arguments):
        self.daemons.start(name, self.in_network(self.programs[name], *arguments))

    def in_network(self, *command):
        """The command that runs another one where its daemons run."""
        return command if self._machine is None else self._machine.in_network(*command)

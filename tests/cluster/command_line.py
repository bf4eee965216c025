"""The command line of cluster.py."""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import time

import state
from cluster import Cluster, require

_OF_CLUSTER = ("stop_api", "start_api", "pause_api", "resume_api", "reset_connections", "restart_etcd")
_OF_NODE = ("cut_node", "restore_node", "disconnect_node", "reconnect_node")


def _make(arguments, name=None):
    """The cluster that the options ask for."""
    if arguments.nodes:
        kind, nodes = "nodes", arguments.nodes
    elif arguments.fake_nodes:
        kind, nodes = "fake-nodes", arguments.fake_nodes
    else:
        kind, nodes = "control-plane" if arguments.controllers else "api-only", 0
    require(kind)
    return Cluster(kind, nodes, name, enforce_policies=arguments.enforce_policies)


def _up(arguments):
    begin = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt), _make(arguments, arguments.name) as cluster:
        print(f"cluster {cluster.name}: up in {time.monotonic() - begin:.1f} s. Use it with\n"
              f"  export KUBECONFIG={cluster.kubeconfig()}\n"
              f"or\n"
              f"  tests/cluster/cluster.py kubectl --name {cluster.name} get pods -A\n"
              f"until Ctrl-C here, or\n"
              f"  tests/cluster/cluster.py down --name {cluster.name}", flush=True)
        cluster.await_end()


def _run(arguments):
    with _make(arguments) as cluster:
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig()), "ADAMANT_CLUSTER": cluster.name,
                       "ADAMANT_CLUSTER_TOOL": str(pathlib.Path(__file__).with_name("cluster.py"))}
        return subprocess.run(arguments.command, env=environment, check=False).returncode


def _list(_):
    state.remove_leftovers()
    for folder in state.folders():
        print(f"{folder.name}: {state.memory(folder) >> 20} MB, {folder}")


def _kubectl(arguments):
    cluster = Cluster.attach(arguments.name)
    os.execve(cluster.programs["kubectl"], ["kubectl", "--kubeconfig", cluster.kubeconfig(), *arguments.command],
              cluster.kubectl_environment())


def _parser():
    parser = argparse.ArgumentParser(prog="cluster.py", description="Real Kubernetes clusters on this machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, act, text):
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(act=act)
        return made

    def command_of_cluster(name, act, text):
        made = command(name, act, text)
        made.add_argument("--name", default=os.environ.get("ADAMANT_CLUSTER", "dev"), help="of the cluster")
        return made

    up = command_of_cluster("up", _up, "start a cluster and stay until it ends")
    run = command("run", _run, "start a cluster for a command, which finds it by KUBECONFIG")
    for made in (up, run):
        kind = made.add_mutually_exclusive_group()  # of none: etcd and the API server only
        kind.add_argument("--controllers", action="store_true", help="also controllers and scheduler")
        kind.add_argument("--fake-nodes", type=int, metavar="N", help="also nodes that run nothing")
        kind.add_argument("--nodes", type=int, metavar="N", help="also nodes that run pods; needs root")
        made.add_argument("--enforce-policies", action="store_true", help="of nodes: NetworkPolicies have effect")
    run.add_argument("command", nargs="+", help="after --")
    command_of_cluster("down", lambda given: Cluster.attach(given.name).down(), "remove a cluster, whoever started it")
    command("list", _list, "the clusters of this user and the memory of each")
    command_of_cluster("kubectl", _kubectl, "kubectl as administrator").add_argument("command",
                                                                                      nargs=argparse.REMAINDER)
    images = command_of_cluster("images", lambda given: Cluster.attach(given.name).load_images(given.archives),
                                "give images to all nodes")
    images.add_argument("archives", nargs="+", type=os.path.abspath)
    for method in (*_OF_CLUSTER, *_OF_NODE):
        made = command_of_cluster(method.replace("_", "-"), _call, getattr(Cluster, method).__doc__)
        made.set_defaults(method=method)
        if method in _OF_NODE:
            made.add_argument("node", type=int, nargs=1)
    return parser


def _call(arguments):
    getattr(Cluster.attach(arguments.name), arguments.method)(*getattr(arguments, "node", []))


def main():
    arguments = _parser().parse_args()
    try:
        sys.exit(arguments.act(arguments))
    except OSError as error:
        sys.exit(f"cluster.py: {error}")

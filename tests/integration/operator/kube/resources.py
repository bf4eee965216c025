"""A cluster with Adamant's custom resources, for the tests beside this file."""

import json
import os
import pathlib
import subprocess

from cluster import Cluster

ROOT = pathlib.Path(__file__).resolve().parents[4]
MANIFESTS = ROOT / "tests" / "manifests"
JOBS = "/apis/adamant.dev/v1alpha1/namespaces/default/trainingjobs"
MAPS = "/apis/adamant.dev/v1alpha1/namespaces/default/shardmaps"
MERGE = "application/merge-patch+json"


def cluster_with_resources(test_class):
    """An API server that knows the resources, for as long as the tests of the class run."""
    cluster = test_class.enterClassContext(Cluster.api_only())
    definitions = ROOT / "deploy" / "crd"
    cluster.kubectl("apply", "--server-side", "-f", definitions)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", definitions)
    return cluster


def validate(manifest):
    """What `adamant validate --show-defaults` prints for it; OSError with what is wrong."""
    program = pathlib.Path(os.environ["ADAMANT_BIN_DIR"]) / "adamant"
    done = subprocess.run([program, "validate", manifest, "--show-defaults"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr)
    return done.stdout


class ObjectReader:
    """Reads objects as the operator does. Threads: one at a time."""

    def __init__(self):
        self._program = subprocess.Popen([os.environ["ADAMANT_READ_OBJECTS"]], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._program.stdin.close()
        self._program.wait()
        self._program.stdout.close()

    def read(self, job):
        """The job as a manifest with every default, or None, and the problems: "PATH: MESSAGE"."""
        self._program.stdin.write(json.dumps(job) + "\n")
        self._program.stdin.flush()
        told = json.loads(self._program.stdout.readline())
        return told.get("manifest"), told.get("problems", [])

"""Pods for the tests of the harness: their program is probe.c, and they keep all rules of restricted pod security."""

import state
from images import PROBE

RESTRICTED = {
    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
    "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name, *arguments, node=None, claim=None):
    """A manifest. The label app is the name; a claim's volume is at /disk."""
    container = {"name": "probe", "image": PROBE, "imagePullPolicy": "Never", "args": list(arguments),
                 "securityContext": RESTRICTED}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    if node is not None:
        spec["nodeSelector"] = {"kubernetes.io/hostname": f"node{node}"}
    if claim is not None:
        spec["volumes"] = [{"name": "disk", "persistentVolumeClaim": {"claimName": claim}}]
        container["volumeMounts"] = [{"name": "disk", "mountPath": "/disk"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


class Namespace:
    """A new one that takes restricted pods only."""

    def __init__(self, cluster, name):
        self._cluster = cluster
        self._name = name
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        cluster.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                                  "metadata": {"name": name, "labels": labels}})
        state.await_that(lambda: "default" in self.kubectl("get", "serviceaccounts"), "pods can be made")

    def kubectl(self, *arguments, **options):
        return self._cluster.kubectl("--namespace", self._name, *arguments, **options)

    def start(self, name, *arguments, **options):
        """Returns when it runs."""
        self.kubectl("apply", "-f", "-", input=pod(name, *arguments, **options))
        self._await(name, "Running")

    def run(self, name, *arguments, **options):
        """Runs a pod to its end and returns what it printed."""
        self.kubectl("apply", "-f", "-", input=pod(name, *arguments, **options))
        self._await(name, "Succeeded")
        return self.kubectl("logs", name)

    def service(self, name, *, headless):
        """For the pod of the same name, port 7000."""
        spec = {"selector": {"app": name}, "ports": [{"port": 7000}], **({"clusterIP": "None"} if headless else {})}
        self.kubectl("apply", "-f", "-", input={"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                                                "spec": spec})

    def claim(self, name):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
        self.kubectl("apply", "-f", "-", input={"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                                                "metadata": {"name": name}, "spec": spec})

    def _await(self, name, phase):
        self.kubectl("wait", f"pod/{name}", f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=60s")

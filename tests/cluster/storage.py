#!/usr/bin/env python3
"""Makes volumes on the nodes' disks for claims of the storage class "local", and removes them when they are released.

A claim waits until the scheduler has chosen a node for its first pod; from then on its pods run there only. Any user
may write to a volume. Runs beside the control plane until it is killed.

usage: storage.py URL CA CERTIFICATE KEY FOLDER     FOLDER holds a folder for each node
"""

import pathlib
import shutil
import sys
import time

from api import Api, ApiError

PROVISIONER = "adamant.dev/test-cluster"
CLASS = {
    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
    "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer",
}
_PERIOD = 0.2  # seconds between two looks
_MADE_BY = "pv.kubernetes.io/provisioned-by"


class Provisioner:
    def __init__(self, api, folder):
        self._api = api
        self._folder = folder

    def step(self):
        """Does what is to be done now. OSError when the API is away: the next step goes on."""
        volumes = self._api.get("/api/v1/persistentvolumes")["items"]
        names = {volume["metadata"]["name"] for volume in volumes}
        for claim in self._api.get("/api/v1/persistentvolumeclaims")["items"]:
            annotations = claim["metadata"].get("annotations", {})
            node = annotations.get("volume.kubernetes.io/selected-node")
            if annotations.get("volume.kubernetes.io/storage-provisioner") == PROVISIONER and node is not None:
                if f"pvc-{claim['metadata']['uid']}" not in names and claim["status"]["phase"] == "Pending":
                    self._make(claim, node)
        for volume in volumes:
            if volume["metadata"].get("annotations", {}).get(_MADE_BY) == PROVISIONER:
                if volume["status"].get("phase") == "Released":
                    self._remove(volume)

    def _make(self, claim, node):
        name = f"pvc-{claim['metadata']['uid']}"
        place = self._folder / node / "volumes" / name
        place.mkdir(exist_ok=True)
        place.chmod(0o777)
        on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        self._api.create("/api/v1/persistentvolumes", {
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {_MADE_BY: PROVISIONER}},
            "spec": {
                "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
                "accessModes": claim["spec"]["accessModes"], "storageClassName": CLASS["metadata"]["name"],
                "persistentVolumeReclaimPolicy": "Delete", "local": {"path": str(place)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                             **{key: claim["metadata"][key] for key in ("namespace", "name", "uid")}},
            },
        })
        print(f"made {place}", flush=True)

    def _remove(self, volume):
        self._api.delete(f"/api/v1/persistentvolumes/{volume['metadata']['name']}")
        shutil.rmtree(volume["spec"]["local"]["path"], ignore_errors=True)
        print(f"removed {volume['spec']['local']['path']}", flush=True)


def main():
    provisioner = Provisioner(Api(*sys.argv[1:5]), pathlib.Path(sys.argv[5]))
    while True:
        try:
            provisioner.step()
        except ApiError as error:
            print(error, flush=True)
        except OSError:
            pass  # the API is down: tests do that
        time.sleep(_PERIOD)


if __name__ == "__main__":
    main()

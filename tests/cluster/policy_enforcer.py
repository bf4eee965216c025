#!/usr/bin/env python3
"""Enforces NetworkPolicies in the network that it runs in, a node's: follows what the API tells of them, of pods and of
namespaces, and keeps nftables' rules as they say. While the API is away the rules stay. Runs until it is killed.

usage: policy_enforcer.py URL CA CERTIFICATE KEY
"""

import http.client
import sys
import threading
import time

from api import Api
from network_policies import TABLE, ruleset
from state import run

_PATHS = ("/apis/networking.k8s.io/v1/networkpolicies", "/api/v1/pods", "/api/v1/namespaces")
_PAUSE = 0.2  # seconds before the API is asked again


class Followed:
    """The objects of one list, as far as the API has told; `news` is set at every change."""

    def __init__(self, api, path, news):
        self._api = api
        self._path = path
        self._news = news
        self._lock = threading.Lock()
        self._objects = None  # by UID
        threading.Thread(target=self._follow, daemon=True).start()

    def objects(self):
        """None until they are known."""
        with self._lock:
            return None if self._objects is None else list(self._objects.values())

    def _follow(self):
        while True:
            try:
                listed = self._api.get(self._path)
                self._replace(listed["items"])
                version = listed["metadata"]["resourceVersion"]
                for event in self._api.watch(f"{self._path}?resourceVersion={version}"):
                    if event["type"] == "ERROR":
                        break
                    self._change(event)
            except TimeoutError:  # nothing has changed for a while
                continue
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(_PAUSE)

    def _replace(self, items):
        with self._lock:
            self._objects = {item["metadata"]["uid"]: item for item in items}
        self._news.set()

    def _change(self, event):
        uid = event["object"]["metadata"]["uid"]
        with self._lock:
            if event["type"] == "DELETED":
                self._objects.pop(uid, None)
            else:
                self._objects[uid] = event["object"]
        self._news.set()


def is_enforced(in_network):
    """Whether there are rules; `in_network(*command)`: the command that runs another one in the node's network."""
    try:
        return bool(run(*in_network("nft", "list", "table", "ip", TABLE)))
    except OSError:
        return False


def main():
    api = Api(*sys.argv[1:5])
    news = threading.Event()
    followed = [Followed(api, path, news) for path in _PATHS]
    applied = None
    while True:
        news.wait()
        news.clear()
        objects = [each.objects() for each in followed]
        if None not in objects and (rules := ruleset(*objects)) != applied:
            run("nft", "--file", "-", input=rules)
            applied = rules


if __name__ == "__main__":
    main()

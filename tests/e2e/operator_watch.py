"""What a watch of the Kubernetes API has told, and when: tests wait for it and measure by it."""

import http.client
import threading
import time


class Change:
    """`kind`: "ADDED", "MODIFIED" or "DELETED"; `time`: of time.monotonic(), when it was told."""

    def __init__(self, kind, thing):
        self.time = time.monotonic()
        self.kind = kind
        self.object = thing

    @property
    def name(self):
        return self.object["metadata"]["name"]


class Watch:
    """Follows the objects of one list until it is left. Methods may be called by several threads."""

    def __init__(self, api, path):
        self._api = api
        self._path = path
        self._changes = []
        self._news = threading.Condition()
        self._closed = False
        listed = api.get(path)
        self._version = listed["metadata"]["resourceVersion"]
        self._changes += [Change("ADDED", item) for item in listed["items"]]
        threading.Thread(target=self._follow, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._closed = True

    def changes(self, since=0.0):
        """Those that were told at `since` or later, in their order."""
        with self._news:
            return [change for change in self._changes if change.time >= since]

    def objects(self):
        """{name: object} of those that exist, as they were last told."""
        objects = {}
        for change in self.changes():
            objects[change.name] = change.object
            if change.kind == "DELETED":
                del objects[change.name]
        return objects

    def first(self, matches, what, since=0.0, seconds=60):
        """The first change told at `since` or later that matches; waits for it, and ends in TimeoutError without."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self._news:
            while True:
                for change in self._changes[seen:]:
                    if change.time >= since and matches(change):
                        return change
                seen = len(self._changes)
                if not self._news.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    raise TimeoutError(f"after {seconds} s still not: {what}")

    def _follow(self):
        separator = "&" if "?" in self._path else "?"
        while not self._closed:
            try:
                for event in self._api.watch(f"{self._path}{separator}resourceVersion={self._version}"):
                    self._tell(event["type"], event["object"])
            except _Expired:
                self._list_again()
            except (OSError, ValueError, http.client.HTTPException):  # silent for a while, or cut: goes on where it was
                time.sleep(0.02)

    def _list_again(self):
        """What changed since a version that the API server has forgotten is told as of now."""
        known = self.objects()
        try:
            listed = self._api.get(self._path)
        except OSError:
            return
        self._version = listed["metadata"]["resourceVersion"]
        items = {item["metadata"]["name"]: item for item in listed["items"]}
        for name, thing in known.items():
            if name not in items or items[name]["metadata"]["uid"] != thing["metadata"]["uid"]:
                self._add("DELETED", thing)
        for name, item in items.items():
            old = known.get(name)
            if old is None or old["metadata"]["uid"] != item["metadata"]["uid"]:
                self._add("ADDED", item)
            elif old["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._add("MODIFIED", item)

    def _tell(self, kind, thing):
        if kind == "ERROR":
            raise _Expired if thing.get("code") == 410 else OSError(thing.get("message"))
        self._version = thing["metadata"]["resourceVersion"]
        self._add(kind, thing)

    def _add(self, kind, thing):
        with self._news:
            self._changes.append(Change(kind, thing))
            self._news.notify_all()


class _Expired(Exception):
    """The version to go on from is too old."""

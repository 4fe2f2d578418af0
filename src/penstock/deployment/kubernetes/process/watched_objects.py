"""Keeps a copy of our objects up to date, by list and watch, on a thread of its own.

    list -> copy replaced -> watch from there -> copy changed, change by change
      ^------------ the watch ended, broke, or is too far behind ------------/

The result of each of our own calls is put in at once, so that the copy includes it. Resource
versions are compared only to keep a late change from overwriting a newer one. `trouble` is set
while the copy is out of date; callers must not act on it then.
"""

import threading
import time
from collections.abc import Callable

from penstock.deployment.interface import DeploymentError
from penstock.deployment.kubernetes.core.refusals import MissingRightError
from penstock.deployment.kubernetes.process.api import Api, GoneError, Object, Resource

# The server ends a watch after this long; listing again then finds any missed change.
WATCH_S = 240.0
PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 10.0
REFUSED_PAUSE_S = 300.0


class WatchedObjects:
    """The objects of one kind in one group."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        selector: str,
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._resource = resource
        self._selector = selector
        self._on_change = on_change
        self._objects: dict[str, Object] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.trouble: DeploymentError | None = None
        self.lists = 0
        self._thread = threading.Thread(
            target=self._run, name=f"penstock-watch-{resource[1]}", daemon=True
        )

    def start(self) -> None:
        """List once, so that an error reaches the caller; then watch on the thread."""
        self._since = self._list()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()

    def objects(self) -> list[Object]:
        """The objects, sorted by name."""
        with self._lock:
            return [self._objects[name] for name in sorted(self._objects)]

    def put(self, one: Object) -> None:
        """Store the object that one of our own calls returned."""
        with self._lock:
            self._take(one)
        self._on_change()

    def drop(self, name: str, uid: str) -> None:
        with self._lock:
            known = self._objects.get(name)
            if known is not None and known["metadata"]["uid"] == uid:
                del self._objects[name]
        self._on_change()

    def _list(self) -> str:
        items, since = self._api.list_objects(self._resource, self._selector)
        with self._lock:
            fresh = {one["metadata"]["name"]: _lean(one) for one in items}
            # Created after the list was read: kept, the watch reports it.
            late = {
                n: o for n, o in self._objects.items() if n not in fresh and _is_newer(o, since)
            }
            self._objects = {**late, **fresh}
        self.lists += 1
        self.trouble = None
        self._on_change()
        return since

    def _run(self) -> None:
        pause_s = PAUSE_FIRST_S
        needs_list = False
        while not self._stop.is_set():
            begun_s = time.monotonic()
            try:
                if needs_list:
                    self._since = self._list()
                needs_list = True
                self._follow()
            except GoneError:
                continue
            except DeploymentError as error:
                self.trouble = error
                self._on_change()
                is_refused = isinstance(error, MissingRightError)
                if time.monotonic() - begun_s > PAUSE_MAX_S:
                    pause_s = PAUSE_FIRST_S
                self._stop.wait(REFUSED_PAUSE_S if is_refused else pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)
            else:
                pause_s = PAUSE_FIRST_S

    def _follow(self) -> None:
        for change in self._api.watch(self._resource, self._selector, self._since, WATCH_S):
            one = change["object"]
            if change["type"] == "BOOKMARK":
                continue
            with self._lock:
                if change["type"] == "DELETED":
                    known = self._objects.get(one["metadata"]["name"])
                    if known is not None and known["metadata"]["uid"] == one["metadata"]["uid"]:
                        del self._objects[one["metadata"]["name"]]
                else:
                    self._take(one)
            self._on_change()
            if self._stop.is_set():
                return

    def _take(self, one: Object) -> None:
        known = self._objects.get(one["metadata"]["name"])
        if known is None or not _is_newer(known, _version(one)):
            self._objects[one["metadata"]["name"]] = _lean(one)


def _lean(one: Object) -> Object:
    """Without `managedFields`, which takes half of every object."""
    one["metadata"].pop("managedFields", None)
    return one


def _version(one: Object) -> str:
    return str(one["metadata"].get("resourceVersion", ""))


def _is_newer(one: Object, than: str) -> bool:
    """Compares the versions as numbers; False when one is not a number."""
    own = _version(one)
    return own.isdecimal() and than.isdecimal() and int(own) > int(than)

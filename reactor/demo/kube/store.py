"""Objects, their revisions, and the window of history that watches and old reads live on.

One counter of resource versions per cluster, one collection per kind. A collection keeps the newest revision of each
object and the last changes in order; any older view inside the window is the newest view with changes undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from reactor.demo.kube.errors import too_old
from reactor.demo.kube.objects import JsonObject, NamespacedName, encode, key_of
from reactor.demo.kube.resources import Resource


class Revision:
    """One object as it was at one resource version, encoded at most once for each API version that serves it."""

    __slots__ = ("_encoded", "value", "version")

    def __init__(self, value: JsonObject, version: int) -> None:
        self.value = value
        self.version = version
        self._encoded: dict[str, bytes] = {}

    def encoded(self, resource: Resource) -> bytes:
        known = self._encoded.get(resource.group_version)
        if known is None:
            known = self._encoded[resource.group_version] = encode(resource.to_served(self.value))
        return known

    def moved_to(self, version: int) -> Revision:
        """Give the same object under a later resource version, as deletions are reported."""
        metadata = {**self.value["metadata"], "resourceVersion": str(version)}
        return Revision({**self.value, "metadata": metadata}, version)


@dataclass(frozen=True, slots=True)
class StoreChange:
    """One step of a collection: `before` None is a creation, `after` None a deletion."""

    key: NamespacedName
    version: int
    before: Revision | None
    after: Revision | None


OnStoreChange = Callable[[StoreChange], None]


@dataclass(slots=True)
class Collection:
    """Objects of one kind in one cluster."""

    window: int
    objects: dict[NamespacedName, Revision] = field(default_factory=dict)
    history: deque[StoreChange] = field(default_factory=deque)
    compacted: int = 0
    """The oldest resource version from which everything that followed is still known."""
    listeners: set[OnStoreChange] = field(default_factory=set)

    def record(self, change: StoreChange) -> None:
        if change.after is None:
            del self.objects[change.key]
        else:
            self.objects[change.key] = change.after
        self.history.append(change)
        while len(self.history) > self.window:
            self.compacted = self.history.popleft().version
        for listener in tuple(self.listeners):
            listener(change)

    def since(self, version: int) -> list[StoreChange]:
        """Give the changes after this version in order; 410 when some of them are forgotten."""
        if version < self.compacted:
            raise too_old(version, self.compacted)
        later: list[StoreChange] = []
        for change in reversed(self.history):
            if change.version <= version:
                break
            later.append(change)
        later.reverse()
        return later

    def as_of(self, version: int) -> dict[NamespacedName, Revision]:
        """Give all objects as they were at this version; 410 when that is forgotten."""
        objects = dict(self.objects)
        for change in reversed(self.since(version)):
            if change.before is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.before
        return objects


class ObjectStore:
    """Collections of one cluster, and its counter of resource versions."""

    def __init__(self, window: int) -> None:
        self.version = 1
        self._window = window
        self._collections: dict[tuple[str, str], Collection] = {}

    def collection(self, resource: Resource) -> Collection:
        known = self._collections.get(resource.collection)
        if known is None:
            known = self._collections[resource.collection] = Collection(self._window)
        return known

    def put(self, resource: Resource, value: JsonObject) -> Revision:
        """Keep a new revision under the next resource version and tell the watches."""
        self.version += 1
        stamped = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.version)}}
        revision, key = Revision(stamped, self.version), key_of(stamped)
        collection = self.collection(resource)
        collection.record(StoreChange(key, self.version, collection.objects.get(key), revision))
        return revision

    def remove(self, resource: Resource, key: NamespacedName) -> Revision:
        """Forget an object; the answer carries the resource version of its deletion."""
        self.version += 1
        collection = self.collection(resource)
        last = collection.objects[key]
        collection.record(StoreChange(key, self.version, last, None))
        return last.moved_to(self.version)

    def restore(self, version: int) -> None:
        """Go on from this version, lower or higher, with the objects that there are and without any history."""
        for collection in self._collections.values():
            collection.history.clear()
            collection.compacted = 0
            for key, one in collection.objects.items():
                collection.objects[key] = one.moved_to(min(one.version, version))
        self.version = version

    def compact(self) -> None:
        """Forget all history: a client that has missed a change by now gets 410."""
        for collection in self._collections.values():
            collection.history.clear()
            collection.compacted = self.version

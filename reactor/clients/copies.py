"""Objects as a watch of this process holds them: code that changes one need not read it first.

A copy may be old. So it is only good for a write that tests the resourceVersion which the copy has: the server refuses
it where the object is another one by now. That nothing is to be done is never concluded from a copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import TypeAlias
from weakref import WeakKeyDictionary

from reactor.clients.changes import ObjectKey
from reactor.clients.kubernetes_port import JsonObject, KubeApi

Find: TypeAlias = Callable[[ObjectKey], JsonObject | None]

_held: WeakKeyDictionary[KubeApi, MutableMapping[str, list[Find]]] = WeakKeyDictionary()


@contextmanager
def holding(api: KubeApi, collection: str, find: Find) -> Iterator[None]:
    """Let others find what a watch of this path knows, for as long as the block runs. None: it is not believed now."""
    finds = _held.setdefault(api, defaultdict(list))[collection]
    finds.append(find)
    try:
        yield
    finally:
        finds.remove(find)


def copy_of(api: KubeApi, path: str) -> JsonObject | None:
    """Give a copy of the object at this path; None: no watch of ours has one. A watch sees one namespace, or all."""
    collection, _, name = path.rpartition("/")
    base, _, inside = collection.partition("/namespaces/")
    namespace, _, plural = inside.partition("/")
    collections = _held.get(api, {})
    for where in (collection, f"{base}/{plural}"):
        for find in collections.get(where, ()):
            if (found := find(ObjectKey(namespace, name))) is not None:
                return found
    return None

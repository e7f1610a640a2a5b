"""The state of one emulated cluster, and what those who answer requests on it need of the whole."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from reactor.demo.kube.call import ApiRequest
from reactor.demo.kube.crds import Catalog
from reactor.demo.kube.faults import Faults, WatchEffect
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.store import ObjectStore
from reactor.demo.kube.writelog import WriteLog

WORLD = "world"
"""Field manager of what the demo and tests change in process: the world's doing, not the reactor's."""


class OpenWatch(Protocol):
    """A watch that a client has open."""

    @property
    def call(self) -> ApiRequest:
        """The request that opened it."""

    def interrupt(self, effect: WatchEffect) -> None:
        """End it in this way."""

    def forget(self) -> None:
        """Send nothing of what has changed before now."""


class EmulatedState(ABC):
    """An API server's objects, kinds, faults and open watches."""

    def __init__(
        self,
        name: str,
        *,
        now: Callable[[], datetime],
        log: WriteLog,
        version: str,
        token: str,
        history: int,
        bookmark_seconds: float,
    ) -> None:
        self.name = name
        self.now = now
        self.log = log
        self.version = version
        self.token = token
        self.bookmark_seconds = bookmark_seconds
        self.store = ObjectStore(history)
        self.catalog = Catalog()
        self.faults = Faults()
        self.watches: set[OpenWatch] = set()
        self.watch_lag = 0.0
        """Seconds that each event of a watch takes to be sent."""
        self.late_changes: dict[int, float] = {}
        """Moments, on the event loop's clock, at which the changes of these versions are sent."""
        self.events_flow = asyncio.Event()
        """Cleared: watches stay open and send nothing, bookmarks neither; set again, they send all that has come."""
        self.events_flow.set()

    def monotonic(self) -> float:
        """Give the event loop's time, which the write log is stamped with."""
        return asyncio.get_running_loop().time()

    @abstractmethod
    def get(self, resource: str, name: str, namespace: str = "") -> JsonObject:
        """Give an object; 404 is an ApiError. `resource` is a plural, with its group where two share it."""

    @abstractmethod
    def list(self, resource: str, namespace: str = "", *, labels: str = "") -> list[JsonObject]:
        """Give all objects of a kind that a label selector selects."""

    @abstractmethod
    def apply(self, obj: JsonObject, *, manager: str = WORLD, status: bool = False) -> JsonObject:
        """Apply an object server-side and by force; `status`: apply its status instead."""

    @abstractmethod
    def patch(
        self, resource: str, name: str, patch: Any, namespace: str = "", *, manager: str = WORLD, status: bool = False
    ) -> JsonObject:
        """Merge a patch (a dict) into an object or its status, or carry out a JSON patch (a list)."""

    @abstractmethod
    def ensure_namespace(self, name: str) -> None:
        """Create the namespace where it is missing."""

    @abstractmethod
    def empty_namespace(self, name: str) -> None:
        """Take everything in a namespace away with it; the real server does the same, only later."""

    @abstractmethod
    def withdraw(self, definition: JsonObject) -> None:
        """Stop serving a definition's kinds, and forget their objects."""

"""The objects of one collection as they are known, and what a LIST or an event of a watch changes about them.

Objects are kept small: `project` says what of each is kept. What has the resourceVersion that is known, and a page of a
LIST that is byte for byte the one before, is not looked at again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from reactor.clients.changes import ChangeType, ObjectChange, ObjectKey, is_earlier, key_of, version_of
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject

log = logging.getLogger(__name__)

Project = Callable[[JsonObject], JsonObject | Awaitable[JsonObject]]


class _Stored(NamedTuple):
    version: str
    object: JsonObject


@dataclass(slots=True)
class Listing:
    """One LIST, as far as its pages were read; nothing that is known changes before its end."""

    found: dict[ObjectKey, _Stored] = field(default_factory=dict)
    changes: list[ObjectChange] = field(default_factory=list)
    """Objects that were added, or that are different now."""
    pages: dict[bytes, tuple[ObjectKey, ...]] = field(default_factory=dict)
    """The keys on each page, by the digest of the page."""


class ObjectCopy:
    """Objects by key, projected. `where`: what is listed, for messages.

    `project` makes an object small before it is kept; it must take any JSON object, and may take its time: an awaitable
    is awaited.
    """

    def __init__(self, where: str, project: Project) -> None:
        self._where = where
        self._project = project
        self._stored: dict[ObjectKey, _Stored] = {}
        self._pages: dict[bytes, tuple[ObjectKey, ...]] = {}
        """The keys on each page of the last LIST, by the digest of the page, while nothing has changed since."""

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def keys(self) -> Set[ObjectKey]:
        """The objects that exist."""
        return self._stored.keys()

    @property
    def objects(self) -> Mapping[ObjectKey, JsonObject]:
        """Objects that exist, projected."""
        return {key: stored.object for key, stored in self._stored.items()}

    def get(self, key: ObjectKey) -> JsonObject | None:
        """Give an object, projected; None where there is none."""
        stored = self._stored.get(key)
        return stored.object if stored is not None else None

    def must_be_newer(self, found: JsonObject) -> None:
        """Raise ApiUnavailable where an event is of an earlier time than what is known of its object.

        The server's cache lags behind, or it was restored: only a LIST tells, which follows.
        """
        key = key_of(found)
        known = self._stored.get(key) if key is not None else None
        if known is not None and is_earlier(version := version_of(found), known.version):
            raise ApiUnavailable(f"{self._where}: {key} was sent as of version {version}, after {known.version}")

    async def take_event(self, kind: str, found: JsonObject, *, unbroken: bool) -> list[ObjectChange]:
        """Give the change that an event brings: none for a bookmark, and none for an object without a name."""
        if kind == "BOOKMARK":
            return []
        self._pages = {}
        key = key_of(found)
        if key is None:
            self._skip(found)
        elif kind == ChangeType.DELETED:
            known = self._stored.pop(key, None)
            gone = known.object if known else await self._projected(found)
            return [ObjectChange(ChangeType.DELETED, gone, unbroken=unbroken)]
        elif kind in (ChangeType.ADDED, ChangeType.MODIFIED):
            self._stored[key] = _Stored(version_of(found), await self._projected(found))
            return [ObjectChange(ChangeType(kind), self._stored[key].object, unbroken=unbroken)]
        return []

    def take_known_page(self, digest: bytes, listing: Listing) -> bool:
        """Take a page that the last LIST had too, whose items need not be parsed. False: it had none such."""
        keys = self._pages.get(digest)
        if keys is None:
            return False
        listing.pages[digest] = keys
        listing.found |= {key: self._stored[key] for key in keys}
        return True

    async def take_page(self, digest: bytes, items: Iterable[object], listing: Listing) -> None:
        """Take the items of a page of a LIST. `digest`: empty where it is not known."""
        before = len(listing.found)
        for item in items:
            await self._take(item, listing)
        if digest:
            listing.pages[digest] = tuple(islice(listing.found, before, None))

    async def _take(self, item: object, listing: Listing) -> None:
        key = key_of(item)
        if key is None or not isinstance(item, dict):
            self._skip(item)
            return
        known, version = self._stored.get(key), version_of(item)
        if known is not None and known.version == version:
            listing.found[key] = known
            return
        listing.found[key] = stored = _Stored(version, await self._projected(item))
        kind = ChangeType.MODIFIED if known else ChangeType.ADDED
        listing.changes.append(ObjectChange(kind, stored.object, unbroken=False))

    def take_list(self, listing: Listing, kept: Set[ObjectKey]) -> list[ObjectChange]:
        """Become as listed, with `kept`, which the LIST lacks. Gives the difference to what was known."""
        for key, stored in self._stored.items():
            if key in kept:
                listing.found[key] = stored
            elif key not in listing.found:
                listing.changes.append(ObjectChange(ChangeType.DELETED, stored.object, unbroken=False))
        self._stored, self._pages = listing.found, listing.pages
        return listing.changes

    async def _projected(self, found: JsonObject) -> JsonObject:
        small = self._project(found)
        return await small if isinstance(small, Awaitable) else small

    def _skip(self, found: object) -> None:
        log.warning("left out an object without a name", extra={"where": self._where, "object": repr(found)[:200]})

"""Follow one route of a cluster through the Kubernetes API: the weights now, and after each change, without end.

Not by the reactor's own reflector: the gateway is the demo's witness, and a witness should not share the eyes of whom
it speaks about.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from reactor.clients.route_entries import Unreadable, entries
from reactor.clients.route_entries import weights_of as entry_weights
from rules.rulefile.route_kinds import ROUTE_KINDS

RETRY_SECONDS = 0.5
WATCH_SECONDS = 240
SILENCE_SECONDS = 90.0  # bookmarks come about once a minute

log = logging.getLogger(__name__)


class WatchEnded(Exception):
    """The API server has sent an error instead of an event: read everything again."""


@dataclass(frozen=True, slots=True)
class RouteName:
    """Kind, namespace and name of a route."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> RouteName:
        """Read `TrafficSplit/shop/checkout`. Raises ValueError."""
        kind, _, rest = text.partition("/")
        namespace, _, name = rest.partition("/")
        if kind not in ROUTE_KINDS or not namespace or not name or "/" in name:
            raise ValueError(
                f"{text!r} is not <kind>/<namespace>/<name> with one of the kinds {', '.join(ROUTE_KINDS)}"
            )
        return cls(kind, namespace, name)

    @property
    def path(self) -> str:
        """The path of its collection."""
        kind = ROUTE_KINDS[self.kind]
        return f"/apis/{kind.group}/{kind.versions[0]}/namespaces/{self.namespace}/{kind.plural}"


def weights_of(kind: str, route: dict[str, Any]) -> dict[str, int]:
    """Give the weights of a route, or of its first rule that has backends to choose from.

    {}: they are none that a reactor could move, and no service gets traffic.
    """
    described = ROUTE_KINDS[kind]
    try:
        found = entries(described, route)
        weights = entry_weights(described, found)
    except Unreadable as error:
        log.warning("the route cannot be read: %s", error)
        return {}
    return {entry.service: weight for entry, weight in zip(found, weights, strict=True)}


async def follow(session: aiohttp.ClientSession, api: str, route: RouteName) -> AsyncIterator[dict[str, int]]:
    """Give the weights, first as they are and then whenever they change; {} where the route is not there.

    An API server that is away is waited for: the reader keeps the last weights.
    """
    last: dict[str, int] | None = None
    while True:
        try:
            async for weights in _watched(session, api, route):
                if weights != last:
                    last = weights
                    yield weights
        except (aiohttp.ClientError, TimeoutError, json.JSONDecodeError, WatchEnded) as error:
            log.warning("the route is read again: %s", error or type(error).__name__)
        await asyncio.sleep(RETRY_SECONDS)


async def _watched(session: aiohttp.ClientSession, api: str, route: RouteName) -> AsyncIterator[dict[str, int]]:
    """List, then watch until the server ends it."""
    url, only = api + route.path, {"fieldSelector": f"metadata.name={route.name}"}
    async with session.get(url, params=only, raise_for_status=True) as answer:
        listed = await answer.json()
    items = listed["items"]
    yield weights_of(route.kind, items[0]) if items else {}
    version = listed["metadata"]["resourceVersion"]
    watch = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_SECONDS}
    silence = aiohttp.ClientTimeout(total=None, sock_read=SILENCE_SECONDS)
    async with session.get(url, params=only | watch, timeout=silence, raise_for_status=True) as events:
        async for line in events.content:
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise WatchEnded(event["object"].get("message", "ERROR"))
            if event["type"] != "BOOKMARK":
                yield {} if event["type"] == "DELETED" else weights_of(route.kind, event["object"])

"""Follow one route of a cluster through the Kubernetes API: the weights now, and after each change, for ever.

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

RETRY_SECONDS = 0.5
WATCH_SECONDS = 240
SILENCE_SECONDS = 90.0  # bookmarks come about once a minute
_PLURALS = {
    "TrafficSplit": "split.smi-spec.io/v1alpha2/{}/trafficsplits",
    "HTTPRoute": "gateway.networking.k8s.io/v1/{}/httproutes",
}

log = logging.getLogger(__name__)


class WatchEnded(Exception):
    """The API server has sent an error instead of an event: read everything again."""


@dataclass(frozen=True, slots=True)
class RouteName:
    """Which route."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> RouteName:
        """Read `TrafficSplit/shop/checkout`. Raises ValueError."""
        kind, _, rest = text.partition("/")
        namespace, _, name = rest.partition("/")
        if kind not in _PLURALS or not namespace or not name or "/" in name:
            raise ValueError(f"{text!r} is not {' or '.join(_PLURALS)}/<namespace>/<name>")
        return cls(kind, namespace, name)

    @property
    def path(self) -> str:
        """The path of its collection."""
        return f"/apis/{_PLURALS[self.kind].format(f'namespaces/{self.namespace}')}"


def weights_of(route: dict[str, Any]) -> dict[str, int]:
    """Give the weights of a TrafficSplit, or of the first rule of an HTTPRoute that has backends to choose from."""
    spec = route["spec"]
    if "backends" in spec:
        return {backend["service"]: _whole(backend["weight"]) for backend in spec["backends"]}
    rules = [rule.get("backendRefs") or [] for rule in spec.get("rules") or []]
    chosen = next((backends for backends in rules if len(backends) > 1), rules[0] if rules else [])
    return {backend["name"]: _whole(backend.get("weight", 1)) for backend in chosen}


def _whole(weight: object) -> int:
    """Quantities ("500m", SMI v1alpha1) are not for this gateway: whoever has one gets nothing."""
    return int(weight) if isinstance(weight, int | float) else 0


async def follow(session: aiohttp.ClientSession, api: str, route: RouteName) -> AsyncIterator[dict[str, int]]:
    """Give the weights, first as they are and then whenever they change; {} where the route is not there.

    An API server that is away is waited for: whoever reads keeps what was last said.
    """
    last: dict[str, int] | None = None
    while True:
        try:
            async for weights in _watched(session, api + route.path, route.name):
                if weights != last:
                    last = weights
                    yield weights
        except (aiohttp.ClientError, TimeoutError, json.JSONDecodeError, WatchEnded) as error:
            log.warning("the route is read again: %s", error or type(error).__name__)
        await asyncio.sleep(RETRY_SECONDS)


async def _watched(session: aiohttp.ClientSession, url: str, name: str) -> AsyncIterator[dict[str, int]]:
    """List, then watch until the server ends it."""
    only = {"fieldSelector": f"metadata.name={name}"}
    async with session.get(url, params=only, raise_for_status=True) as answer:
        listed = await answer.json()
    items = listed["items"]
    yield weights_of(items[0]) if items else {}
    version = listed["metadata"]["resourceVersion"]
    watch = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_SECONDS}
    silence = aiohttp.ClientTimeout(total=None, sock_read=SILENCE_SECONDS)
    async with session.get(url, params=only | watch, timeout=silence, raise_for_status=True) as events:
        async for line in events.content:
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise WatchEnded(event["object"].get("message", "ERROR"))
            if event["type"] != "BOOKMARK":
                yield {} if event["type"] == "DELETED" else weights_of(event["object"])

"""Asking for single objects that a LIST lacks: whether the server has them all the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set

from reactor.clients.changes import ObjectKey, key_of
from reactor.clients.hanging import ANSWER_SECONDS
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.errors import Retryable, Terminal

ASKED_MAX = 8
"""Most objects missing from a LIST that are read alone: they cost one round trip together."""

log = logging.getLogger(__name__)


async def found_alone(api: KubeApi, path: str, label_selector: str | None, lacking: Set[ObjectKey]) -> ObjectKey | None:
    """Give one of these objects of a collection that is there when it is read alone; of many, some are read."""
    some = sorted(lacking)[:ASKED_MAX]
    there = await asyncio.gather(*(_is_there(api, path, label_selector, key) for key in some))
    return next((key for key, is_there in zip(some, there, strict=True) if is_there), None)


async def _is_there(api: KubeApi, path: str, label_selector: str | None, key: ObjectKey) -> bool:
    """True if the server has it, and selects it. No answer in time is False: all that the LIST tells waits for it."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            if label_selector is None:
                await api.get(object_path(path, key))
                return True
            name = f"metadata.name={key.name}"
            return key in map(key_of, await api.list(path, label_selector=label_selector, field_selector=name))
    except (Retryable, Terminal, TimeoutError) as error:
        log.debug("not found alone", extra={"cluster": api.cluster, "path": path, "reason": str(error)})
        return False


def object_path(path: str, key: ObjectKey) -> str:
    """Give the path of one object of a collection of all namespaces, or of its own."""
    base, _, plural = path.rpartition("/")
    inside = f"/namespaces/{key.namespace}" if key.namespace and "/namespaces/" not in path else ""
    return f"{base}{inside}/{plural}/{key.name}"

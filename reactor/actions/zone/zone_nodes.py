"""The nodes of a zone: which they are, how they do, and how one of them is changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from reactor.actions.annotations import notes_of
from reactor.actions.conditional_write import ConditionalChange, Plan, conditional_write_object
from reactor.actions.outcomes import Declined
from reactor.actions.patches import escape
from reactor.actions.zone.isolation_context import IsolationContext
from reactor.actions.zone.zone_marks import ZONE_ID_LABEL, ZONE_LABEL
from reactor.clients.kubernetes_port import JsonObject, KubeApi, ObjectNotFound

PATH = "/api/v1/nodes"
AT_ONCE = 16  # writes to one API server at the same time: client-go's burst is 10, and a zone may have 1000 nodes
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")

Item = TypeVar("Item")
Result = TypeVar("Result")


async def in_zone(api: KubeApi, isolation: IsolationContext) -> Sequence[JsonObject]:
    """Give the zone's nodes by name. Raises Declined (Invalid) where zone or ID cannot be a label, or as KubeApi."""
    for value in (isolation.zone, isolation.mark):
        if not _LABEL_VALUE.fullmatch(value):
            raise Declined("Invalid", f"{value!r} cannot be a zone: it is no value of a Kubernetes label")
    found = await api.list(PATH, label_selector=f"{ZONE_LABEL}={isolation.zone}")
    return sorted(found, key=name_of)


async def elsewhere(api: KubeApi, isolation: IsolationContext) -> Sequence[JsonObject]:
    """Give all nodes of other zones. Raises as KubeApi does."""
    return await api.list(PATH, label_selector=f"{ZONE_LABEL}!={isolation.zone}")


async def unknown_zone(api: KubeApi, isolation: IsolationContext) -> Declined:
    """Say why there are no nodes: a zone that no node carries, or a zone's ID where its name belongs."""
    labels = [node["metadata"].get("labels") or {} for node in await api.list(PATH)]
    zones = sorted({one[ZONE_LABEL] for one in labels if ZONE_LABEL in one})
    if named := sorted({one.get(ZONE_LABEL, "?") for one in labels if one.get(ZONE_ID_LABEL) == isolation.zone}):
        return Declined(
            "ZoneNotFound", f"{isolation.zone} is the ID of the zone {', '.join(named)}: say so in the rule"
        )
    there = f"zones: {', '.join(zones) or 'none'}"
    return Declined("ZoneNotFound", f"no node of cluster {api.cluster} is in zone {isolation.zone}; {there}")


def mixed_up(nodes: Iterable[JsonObject], isolation: IsolationContext) -> Declined | None:
    """Say where nodes tell another ID of their zone than the rule does; None: none does."""
    told = {(node["metadata"].get("labels") or {}).get(ZONE_ID_LABEL) for node in nodes} - {None}
    if not isolation.action.zone_id or told <= {isolation.action.zone_id}:
        return None
    ids = ", ".join(sorted(str(one) for one in told))
    return Declined(
        "ZoneMismatch", f"the rule says that {isolation.zone} is {isolation.action.zone_id}, its nodes say {ids}: "
        "correct the rule's zones",
    )  # fmt: skip


async def change(api: KubeApi, node: JsonObject, plan: Plan) -> bool:
    """Make a node as planned, by one conditional patch. Gives whether it was written; one that is gone is as it may be.

    Raises as settle_object does.
    """
    path = f"{PATH}/{name_of(node)}"

    async def read() -> tuple[str, JsonObject]:
        return path, await api.get(path)

    wanted = ConditionalChange(plan=plan, as_asked=lambda obj: plan(obj) is None, written_by_us=lambda _: True)
    try:
        return await conditional_write_object(api, f"node {name_of(node)}", read, wanted) is not None
    except ObjectNotFound:
        return False


async def each(items: Iterable[Item], work: Callable[[Item], Awaitable[Result]]) -> list[Result]:
    """Do this for all of them, a few at a time. One that fails keeps no other back; then its error is raised."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(item: Item) -> Result:
        async with slots:
            return await work(item)

    answers = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    done: list[Result] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        done.append(answer)
    return done


def name_of(obj: JsonObject) -> str:
    return str(obj["metadata"]["name"])


def is_ready(node: JsonObject) -> bool:
    """True if its kubelet says that it is Ready; Unknown is not."""
    return _ready(node).get("status") == "True"


def not_ready_for(node: JsonObject, now: datetime) -> timedelta:
    """Time for which it has not been Ready; zero where it is, or where its begin is not known."""
    since = _ready(node).get("lastTransitionTime")
    return now - datetime.fromisoformat(since) if since and not is_ready(node) else timedelta(0)


def _ready(node: JsonObject) -> Mapping[str, Any]:
    conditions = (node.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == "Ready"), {})


def put_note(obj: JsonObject, key: str, value: str) -> list[JsonObject]:
    """Give the operations that write an annotation, onto what was read."""
    return put_notes(obj, {key: value})


def put_notes(obj: JsonObject, wanted: Mapping[str, str]) -> list[JsonObject]:
    """Give the operations that write these annotations, onto what was read; none where they are there."""
    notes = notes_of(obj)
    missing = {key: value for key, value in wanted.items() if notes.get(key) != value}
    if missing and not notes:
        return [_same(obj, "metadata", "annotations"), _add("/metadata/annotations", missing)]
    operations: list[JsonObject] = []
    for key, value in missing.items():
        at = f"/metadata/annotations/{escape(key)}"
        operations += [{"op": "test", "path": at, "value": notes.get(key)}, _add(at, value)]
    return operations


def drop_note(obj: JsonObject, key: str) -> list[JsonObject]:
    """Give the operations that take an annotation off; none where it is not there."""
    return drop(f"/metadata/annotations/{escape(key)}", notes_of(obj).get(key))


def drop(path: str, value: object) -> list[JsonObject]:
    """Remove the value at a path, only if it is what was read; no operation where nothing was."""
    return [] if value is None else [{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}]


def _same(obj: JsonObject, *path: str) -> JsonObject:
    value: Any = obj
    for step in path:
        value = (value or {}).get(step)
    return {"op": "test", "path": f"/{'/'.join(path)}", "value": value}


def _add(path: str, value: object) -> JsonObject:
    return {"op": "add", "path": path, "value": value}

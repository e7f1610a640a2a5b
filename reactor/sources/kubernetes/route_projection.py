"""Routes of all kinds as `bus.messages.Route`: pure, and total.

Whatever is odd about an object becomes its `problem`, in words for its owner; it is never an exception, so that one
malformed route among a hundred disturbs no other.
"""

from __future__ import annotations

from datetime import datetime

from bus.messages import Backend, Route, RouteKind
from reactor.clients.changes import ObjectKey, metadata_of, strings_of
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.route_entries import Unreadable, entries, weights_of
from rules.rulefile.route_kinds import ROUTE_KINDS, RouteFormat

ANNOTATION_CHARACTERS_MAX = 4096  # kubectl's last-applied-configuration can be 256 kB and says nothing that we read
PROBLEM_CHARACTERS = 500


def route_from(
    cluster: str, kind: RouteKind, found: JsonObject, rule: int | str | None, *, at: datetime,
    custom: tuple[str, RouteFormat] | None = None,
) -> Route:  # fmt: skip
    """Read a route; where its kind has rules one of them, by default the first with two or more backends.

    `custom`: name and description of a kind of the settings.
    """
    name, described = custom if custom is not None else ("", ROUTE_KINDS[kind])
    metadata = metadata_of(found)
    annotations = strings_of(metadata.get("annotations"))
    backends, problem = _backends(described, found, rule)
    return Route(
        cluster=cluster, kind=kind, custom_kind=name, rule=rule, observed_at=at, backends=tuple(backends),
        namespace=str(metadata.get("namespace")), name=str(metadata.get("name")), problem=problem[:PROBLEM_CHARACTERS],
        labels=strings_of(metadata.get("labels")), sum_to=described.sum_to if name else 0,
        all_zero=described.all_zero and bool(name),
        annotations={key: text for key, text in annotations.items() if len(text) <= ANNOTATION_CHARACTERS_MAX},
    )  # fmt: skip


def _backends(kind: RouteFormat, found: JsonObject, rule: int | str | None) -> tuple[list[Backend], str]:
    """Give the backends, or why there are none that can be used."""
    try:
        standing = entries(kind, found, rule)
        weights = weights_of(kind, standing)
    except Unreadable as odd:
        return [], str(odd)
    made = [Backend(service=entry.service, weight=weight) for entry, weight in zip(standing, weights, strict=True)]
    return made, "" if made else "the route has no backends"


def missing_route(
    cluster: str, kind: RouteKind, key: ObjectKey, rule: int | str | None, *, at: datetime, custom_kind: str = ""
) -> Route:
    """Say that a route is not there."""
    return Route(
        cluster=cluster, kind=kind, custom_kind=custom_kind, namespace=key.namespace, name=key.name, rule=rule,
        exists=False, observed_at=at,
    )  # fmt: skip

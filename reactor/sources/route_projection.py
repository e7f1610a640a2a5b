"""TrafficSplits, HTTPRoutes and GRPCRoutes as `bus.messages.Route`: pure, and total.

Whatever is odd about an object becomes its `problem`, in words for its owner; it is never an exception, so that one
malformed route among a hundred disturbs nobody but itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from bus.messages import Backend, Route
from reactor.clients.changes import Key, metadata_of, strings_of
from reactor.clients.port import JsonObject

RouteKind = Literal["TrafficSplit", "HTTPRoute", "GRPCRoute"]
WEIGHT_MAX = 1_000_000  # Gateway API's own limit
ANNOTATION_CHARACTERS_MAX = 4096  # kubectl's last-applied-configuration can be 256 kB and says nothing that we read
PROBLEM_CHARACTERS = 500
_DIGITS = re.compile(r"[0-9]{1,7}")


class _Odd(Exception):
    """The object cannot be used: says why, to its owner."""


def route_from_traffic_split(cluster: str, found: JsonObject, *, at: datetime) -> Route:
    """Read a TrafficSplit of any version."""
    try:
        backends = [
            _backend(entry, f"spec.backends[{index}]", namespace="", default_weight=None)
            for index, entry in enumerate(_list(_dict(found.get("spec"), "spec").get("backends"), "spec.backends"))
        ]
        return _route(cluster, "TrafficSplit", found, None, at=at, backends=_some(backends))
    except _Odd as odd:
        return _route(cluster, "TrafficSplit", found, None, at=at, problem=str(odd))


def route_from_gateway_route(
    cluster: str, kind: RouteKind, found: JsonObject, rule: int | str | None, *, at: datetime
) -> Route:
    """Read one rule of an HTTPRoute or GRPCRoute; None is the first rule with two or more backendRefs, else rule 0."""
    namespace = str(metadata_of(found).get("namespace") or "")
    try:
        rules = _list(_dict(found.get("spec"), "spec").get("rules"), "spec.rules")
        index = _rule_index(rules, rule)
        where = f"spec.rules[{index}].backendRefs"
        refs = _list(_dict(rules[index], f"spec.rules[{index}]").get("backendRefs"), where)
        backends = [
            _backend(_service_ref(ref, f"{where}[{place}]"), f"{where}[{place}]", namespace=namespace, default_weight=1)
            for place, ref in enumerate(refs)
            if _is_service(ref)
        ]
        return _route(cluster, kind, found, rule, at=at, backends=_some(backends))
    except _Odd as odd:
        return _route(cluster, kind, found, rule, at=at, problem=str(odd))


def missing_route(cluster: str, kind: RouteKind, key: Key, rule: int | str | None, *, at: datetime) -> Route:
    """Say that a route is not there."""
    return Route(
        cluster=cluster, kind=kind, namespace=key.namespace, name=key.name, rule=rule, exists=False, observed_at=at
    )


def _route(
    cluster: str, kind: RouteKind, found: JsonObject, rule: int | str | None, *, at: datetime,
    backends: Sequence[Backend] = (), problem: str = "",
) -> Route:  # fmt: skip
    metadata = metadata_of(found)
    annotations = strings_of(metadata.get("annotations"))
    return Route(
        cluster=cluster, kind=kind, rule=rule, observed_at=at, backends=tuple(backends),
        namespace=str(metadata.get("namespace")), name=str(metadata.get("name")), problem=problem[:PROBLEM_CHARACTERS],
        labels=strings_of(metadata.get("labels")),
        annotations={key: text for key, text in annotations.items() if len(text) <= ANNOTATION_CHARACTERS_MAX},
    )  # fmt: skip


def _rule_index(rules: list[Any], rule: int | str | None) -> int:
    if isinstance(rule, int):
        if rule >= len(rules):
            raise _Odd(f"there is no rule {rule}, the route has {len(rules)}")
        return rule
    if isinstance(rule, str):
        for index, candidate in enumerate(rules):
            if isinstance(candidate, dict) and candidate.get("name") == rule:
                return index
        raise _Odd(f"there is no rule named {rule!r}")
    if not rules:
        raise _Odd("the route has no rules")
    for index, candidate in enumerate(rules):
        refs = candidate.get("backendRefs") if isinstance(candidate, dict) else None
        if isinstance(refs, list) and len(refs) > 1:
            return index
    return 0


def _is_service(ref: object) -> bool:
    """Only Services have a name that rules can mean; backendRefs of other kinds keep the weight that they have."""
    return not isinstance(ref, dict) or (ref.get("group") or "", ref.get("kind") or "Service") == ("", "Service")


def _service_ref(ref: object, where: str) -> JsonObject:
    """Give a backendRef in the form of a TrafficSplit's backend."""
    entry = _dict(ref, where)
    return {"service": entry.get("name"), "namespace": entry.get("namespace"), "weight": entry.get("weight")}


def _backend(found: object, where: str, *, namespace: str, default_weight: int | None) -> Backend:
    entry = _dict(found, where)
    service, elsewhere = entry.get("service"), entry.get("namespace")
    if not isinstance(service, str) or not 0 < len(service) <= 253:
        raise _Odd(f"{where} names no Service")
    if isinstance(elsewhere, str) and elsewhere and elsewhere != namespace:
        service = f"{elsewhere}/{service}"
        if len(service) > 253:
            raise _Odd(f"{where}: the name {service[:80]}... is too long")
    weight = entry.get("weight")
    return Backend(service=service, weight=_weight(default_weight if weight is None else weight, f"{where}.weight"))


def _weight(found: object, where: str) -> int:
    """Give a whole number. v1alpha1 of TrafficSplit takes quantities: `1` and `"1"` are, `"500m"` is not."""
    if found is None:
        raise _Odd(f"{where} is missing")
    whole = found
    if isinstance(found, str) and _DIGITS.fullmatch(found):
        whole = int(found)
    if isinstance(found, float) and found.is_integer():
        whole = int(found)
    if isinstance(whole, bool) or not isinstance(whole, int) or not 0 <= whole <= WEIGHT_MAX:
        raise _Odd(f"{where} is {_short(found)}, it has to be a whole number from 0 to {WEIGHT_MAX}")
    return whole


def _some(backends: list[Backend]) -> list[Backend]:
    if not backends:
        raise _Odd("the route has no backends")
    return backends


def _dict(found: object, where: str) -> JsonObject:
    if not isinstance(found, dict):
        raise _Odd(f"{where} is {_short(found)}, it has to be an object")
    return found


def _list(found: object, where: str) -> list[Any]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise _Odd(f"{where} is {_short(found)}, it has to be a list")
    return found


def _short(found: object) -> str:
    return "missing" if found is None else repr(found)[:80]

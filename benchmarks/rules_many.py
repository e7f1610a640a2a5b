"""What one event costs by the number of rules: 10, 1,000 and 10,000 of each kind, each with a target of its own.

The events speak of ten targets, whatever the number of rules, so that what grows is the search alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

from benchmarks.measure import Result
from bus.messages import Backend, Fact, Health, Observation, Route, Workload
from rules.catalog import AnyRule
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from rules.rulefile.sources import Quorum

COUNTS = (10, 1000, 10_000)
TARGETS = 10
EVENTS = 2000
_RULE: TypeAdapter[Any] = TypeAdapter(AnyRule)
_SPLIT = {"cluster": "east", "kind": "TrafficSplit"}

Keys = dict[str, Any]


def _traffic(n: int) -> Keys:
    backends = [{"service": f"app{n}"}, {"service": f"app{n}-west", "target": f"service/west/shop/app{n}"}]
    route = {**_SPLIT, "namespace": "shop", "name": f"app{n}"}
    return {"kind": "TrafficFailover", "route": route, "primary": f"app{n}", "backends": backends}


def _without_backends(n: int) -> Keys:
    return {"kind": "TrafficFailover", "route": {**_SPLIT, "namespace": "shop", "name": f"app{n}"}}


def _selecting(n: int) -> Keys:
    route = {**_SPLIT, "namespace": "shop", "selector": f"app=app{n}"}
    return {"kind": "TrafficFailover", "route": route}


def _notification(n: int) -> Keys:
    return {"kind": "Notification", "match": f"service/*/shop/app{n}"}


def _workload(n: int) -> Keys:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": f"app{n}"}
    placement = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
    return {"kind": "WorkloadFailover", "resourceSelectors": [selector], "placement": placement}


def _taint(n: int) -> Keys:
    return {"kind": "ClusterTaint", "match": f"cluster/app{n}", "taints": [{"key": "bad", "effect": "NoExecute"}]}


def _zone(n: int) -> Keys:
    zones = [{"name": name, "id": f"{name}-id"} for name in ("a", "b", "c")]
    return {"kind": "ZoneIsolation", "cluster": f"app{n}", "zones": zones, "signals": ["one", "two"]}


def _guarded(n: int) -> Keys:
    guards = {"maxUnhealthy": "50%", "rounding": "Down", "peers": f"service/*/shop/app{n}"}
    return {**_traffic(n), "guards": guards}


KINDS: Mapping[str, tuple[Callable[[int], Keys], str]] = {
    "TrafficFailover": (_traffic, "service/east/shop/app{n}"),
    "TrafficFailover without backends": (_without_backends, "service/east/shop/app{n}"),
    "TrafficFailover with selectors": (_selecting, "service/east/shop/app{n}"),
    "TrafficFailover with guards": (_guarded, "service/east/shop/app{n}"),
    "Notification": (_notification, "service/east/shop/app{n}"),
    "WorkloadFailover": (_workload, "workload/m1/shop/Deployment/app{n}"),
    "ClusterTaint": (_taint, "cluster/app{n}"),
    "ZoneIsolation": (_zone, "zone/app{n}/a"),
    "Quorum": (_notification, "service/east/shop/app{n}"),
}
"""The rule of a number, and the target that it hears of."""


def many_rules() -> Result:
    """Microseconds to find the partitions of one event, and to fold it in and decide, by kind and number of rules."""
    figures: dict[str, Any] = {}
    for kind in KINDS:
        rows = [_measured(kind, count) for count in COUNTS]
        for what, row in zip(("route", "decide"), zip(*rows, strict=True), strict=True):
            figures[f"{kind}: {what}"] = {
                **{f"{count}": round(cost, 1) for count, cost in zip(COUNTS, row, strict=True)},
                "growth": round(row[-1] / row[0], 2),
            }
    what = f"one event by the number of rules ({', '.join(map(str, COUNTS))}), in microseconds"
    return Result("many-rules", what, figures, {"growth": "≤ 1.5"})


def _measured(kind: str, count: int) -> tuple[float, float]:
    make, template = KINDS[kind]
    common = {"mode": "Enforce", "tolerationSeconds": 3600}
    rules = [_RULE.validate_json(json.dumps({"name": f"r{n}", **common, **make(n)})) for n in range(count)]
    quorums = [_quorum(n) for n in range(count)] if kind == "Quorum" else []
    routing = Routing([] if kind == "Quorum" else rules, (), quorums)
    group_store = GroupStore(routing)
    numbers = range(0, count, count // TARGETS)
    for n in numbers:
        group_store.apply([*_inventory(kind, n)], at(0))
    events = [
        Observation(
            target=template.format(n=numbers[n % TARGETS]), signal="one", stale_seconds=90,
            status=Health.HEALTHY if n // TARGETS % 7 else Health.UNHEALTHY,
            observed_at=at(1) + timedelta(milliseconds=n),
        )
        for n in range(EVENTS)
    ]  # fmt: skip
    for event in events[:TARGETS]:
        group_store.apply([event], event.observed_at)
    return _each(routing.homes, events), _each(lambda event: group_store.apply([event], event.observed_at), events)


def _each(act: Callable[[Observation], object], events: Sequence[Observation]) -> float:
    """The median of ten rounds, each of some of the events."""
    rounds = []
    for start in range(0, len(events), len(events) // 10):
        some = events[start : start + len(events) // 10]
        began, done = time.perf_counter(), 0
        for event in some:
            act(event)
            done += 1
            if time.perf_counter() - began > 1:  # slow enough to know how slow
                break
        rounds.append((time.perf_counter() - began) / done * 1e6)
    return sorted(rounds)[len(rounds) // 2]


def _inventory(kind: str, n: int) -> Sequence[Fact]:
    if kind.startswith("TrafficFailover"):
        backends = (Backend(service=f"app{n}", weight=1), Backend(service=f"app{n}-west", weight=0))
        return [
            Route(
                cluster="east", kind="TrafficSplit", namespace="shop", name=f"app{n}", backends=backends,
                labels={"app": f"app{n}"}, observed_at=at(0),
            )
        ]  # fmt: skip
    if kind == "WorkloadFailover":
        return [
            Workload(
                namespace="shop", kind="Deployment", name=f"app{n}", replicas=2, clusters={"m1": 2}, observed_at=at(0)
            )
        ]
    return ()


def _quorum(n: int) -> Quorum:
    keys = {"name": f"q{n}", "kind": "Quorum", "target": f"custom/app{n}", "members": f"service/*/shop/app{n}"}
    return Quorum.model_validate_json(json.dumps({**keys, "unhealthyAt": 1}))

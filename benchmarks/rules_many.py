"""Cost of one event by the number of rules: 10, 1,000 and 10,000 of each kind and form, over thousands of targets.

Rules that name one thing have one target each. Those that select have the same thousands between them, whatever their
number: with ten rules each has a tenth. Beside the cost it counts in how many partitions an event is stored.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import mean, median
from typing import Any

from pydantic import TypeAdapter

from benchmarks.measure import Result
from bus.messages import Backend, Fact, Health, Observation, Route, Workload
from bus.testing.memory import MemoryBus
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from rules.catalog import AnyRule
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from rules.rulefile.sources import Quorum

COUNTS = (10, 1000, 10_000)
TARGETS = 5_000
"""Targets of the events, in turn. A router that has passed on one of a target knows the partitions of the next."""
EVENTS = 10_000
PARTITIONS = 64
SECONDS_MAX = 1.0
"""Most seconds for one tenth of the events: what is slow is known to be slow after few."""
_RULE: TypeAdapter[Any] = TypeAdapter(AnyRule)
_SPLIT = {"cluster": "east", "kind": "TrafficSplit"}
_PLACEMENT = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}

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


def _selecting_namespaces(n: int) -> Keys:
    return {"kind": "TrafficFailover", "route": {**_SPLIT, "namespace": f"shop{n}", "selector": "failover=yes"}}


def _notification(n: int) -> Keys:
    return {"kind": "Notification", "match": f"service/*/shop/app{n}"}


def _notification_of_many(n: int) -> Keys:
    return {"kind": "Notification", "match": f"service/*/shop{n}/*"}


def _workload(n: int) -> Keys:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": f"app{n}"}
    return {"kind": "WorkloadFailover", "resourceSelectors": [selector], "placement": _PLACEMENT}


def _workload_labels(n: int) -> Keys:
    labels = {"matchLabels": {"app": f"app{n}"}}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "labelSelector": labels}
    return {"kind": "WorkloadFailover", "resourceSelectors": [selector], "placement": _PLACEMENT}


def _taint(n: int) -> Keys:
    return {"kind": "ClusterTaint", "match": f"cluster/app{n}", "taints": [{"key": "bad", "effect": "NoExecute"}]}


def _zone(n: int) -> Keys:
    zones = [{"name": name, "id": f"{name}-id"} for name in ("a", "b", "c")]
    return {"kind": "ZoneIsolation", "cluster": f"app{n}", "zones": zones, "signals": ["one", "two"]}


def _guarded(n: int) -> Keys:
    guards = {"maxUnhealthy": "50%", "rounding": "Down", "peers": f"service/*/shop/app{n}"}
    return {**_traffic(n), "guards": guards}


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of rule, in one of the forms that it can be written in."""

    rule: Callable[[int], Keys]
    """Gives a rule by its number."""
    target: str = "service/east/{namespace}/app{n}"
    """Template of the targets of events."""
    selects: bool = False
    """True if a rule has a namespace, with its share of all targets."""


KINDS: Mapping[str, Form] = {
    "TrafficFailover": Form(_traffic),
    "TrafficFailover without backends": Form(_without_backends),
    "TrafficFailover with selectors": Form(_selecting),
    "TrafficFailover with selectors, a namespace each": Form(_selecting_namespaces, selects=True),
    "TrafficFailover with guards": Form(_guarded),
    "Notification": Form(_notification),
    "Notification of a namespace": Form(_notification_of_many, selects=True),
    "WorkloadFailover": Form(_workload, "workload/m1/shop/Deployment/app{n}"),
    "WorkloadFailover with label selectors": Form(_workload_labels, "workload/m1/shop/Deployment/app{n}"),
    "ClusterTaint": Form(_taint, "cluster/app{n}"),
    "ZoneIsolation": Form(_zone, "zone/app{n}/a"),
    "Quorum": Form(_notification),
}


def many_rules() -> Result:
    """Microseconds to pass one event on, and to fold it in and decide, by form and number of rules."""
    figures: dict[str, Any] = {}
    for name, form in KINDS.items():
        routed, decided, stored = zip(*(_measured(name, form, count) for count in COUNTS), strict=True)
        whole = [route + decide for route, decide in zip(routed, decided, strict=True)]
        figures[name] = {
            "route": _by_count(routed), "decide": _by_count(decided), "partitions": _by_count(stored),
            "growth": round(whole[-1] / whole[0], 2),
        }  # fmt: skip
        print(f"  {name}: {figures[name]}", file=sys.stderr, flush=True)
    figures["growth_max"] = max(one["growth"] for one in figures.values())
    what = f"one event by the number of rules ({', '.join(map(str, COUNTS))}), in microseconds"
    return Result("many-rules", what, figures, {"growth_max": "≤ 1.5"})


def _by_count(figures: Sequence[float]) -> dict[str, float]:
    return {str(count): round(figure, 1) for count, figure in zip(COUNTS, figures, strict=True)}


def _measured(name: str, form: Form, count: int) -> tuple[float, float, float]:
    """Give the microseconds to route and to decide on one event, and in how many partitions it is stored."""
    common = {"mode": "Enforce", "tolerationSeconds": 3600}
    rules = [_RULE.validate_json(json.dumps({"name": f"r{n}", **common, **form.rule(n)})) for n in range(count)]
    quorums = [_quorum(n) for n in range(count)] if name == "Quorum" else []
    routing = Routing([] if name == "Quorum" else rules, (), quorums)
    group_store = GroupStore(routing)
    things = TARGETS if form.selects else min(count, TARGETS)
    places = [(f"shop{n % count}" if form.selects else "shop", n) for n in range(things)]
    for namespace, n in places:
        group_store.apply([*_inventory(name, namespace, n)], at(0))
    events = [
        Observation(
            target=form.target.format(namespace=namespace, n=n), signal="one", stale_seconds=7200,
            status=Health.HEALTHY if turn % 7 else Health.UNHEALTHY,
            observed_at=at(1) + timedelta(milliseconds=turn * things + n),
        )
        for turn in range(-(-EVENTS // things) + 1)
        for namespace, n in places
    ]  # fmt: skip
    first, events = events[:things], events[things : things + EVENTS]
    for event in first:
        group_store.apply([event], event.observed_at)
    clock = Clock()
    publisher = FactPublisher(MemoryBus(clock.now), routing, PARTITIONS, clock, source="/bench")
    stored = mean(len(publisher.messages(one, "id", body=b"{}")) for one in first)
    decided = _each(lambda event: group_store.apply([event], event.observed_at), events)
    return _each(lambda event: publisher.messages(event, "id", body=b"{}"), events), decided, stored


def _each(act: Callable[[Observation], object], events: Sequence[Observation]) -> float:
    """The microseconds of the processor for one of them: the median of ten rounds, each of some of the events."""
    rounds = []
    for start in range(0, len(events), len(events) // 10):
        some = events[start : start + len(events) // 10]
        began, done = time.process_time(), 0
        for event in some:
            act(event)
            done += 1
            if time.process_time() - began > SECONDS_MAX:
                break
        rounds.append((time.process_time() - began) / done * 1e6)
    return median(rounds)


def _inventory(name: str, namespace: str, n: int) -> Sequence[Fact]:
    if name.startswith("TrafficFailover"):
        backends = (Backend(service=f"app{n}", weight=1), Backend(service=f"app{n}-west", weight=0))
        return [
            Route(
                cluster="east", kind="TrafficSplit", namespace=namespace, name=f"app{n}", backends=backends,
                labels={"app": f"app{n}", "failover": "yes"}, observed_at=at(0),
            )
        ]  # fmt: skip
    if name.startswith("WorkloadFailover"):
        return [
            Workload(
                namespace="shop", kind="Deployment", name=f"app{n}", labels={"app": f"app{n}"}, replicas=2,
                clusters={"m1": 2}, observed_at=at(0),
            )
        ]  # fmt: skip
    return ()


def _quorum(n: int) -> Quorum:
    keys = {"name": f"q{n}", "kind": "Quorum", "target": f"custom/app{n}", "members": f"service/*/shop/app{n}"}
    return Quorum.model_validate_json(json.dumps({**keys, "unhealthyAt": 1}))

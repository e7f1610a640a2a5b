"""Cost of one event by the number of rules: 10, 1,000 and 10,000 of each kind and form, over thousands of targets.

Rules that name one thing have one target each. Those that select have the same thousands between them, whatever their
number: with ten rules each has a tenth. Each type of fact that rules of a form hear is timed by itself. Beside the cost
it counts in how many partitions an event is stored.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

from pydantic import TypeAdapter

from benchmarks.heard_facts import CLUSTER, COPY, ROUTE, TAINTING, TAINTS, WORKLOAD, ZONES, Heard, Moment, look
from benchmarks.measure import Result
from bus.messages import Fact
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
GROWTH_MAX = 1.5
"""Most that an event may cost with 10,000 rules, as a multiple of what it costs with ten."""
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
    """Template of the targets of observations."""
    heard: Mapping[str, Heard] = field(default_factory=dict)
    """Further facts that its rules hear, by name. Inventory that each group needs is first."""
    selects: bool = False
    """True if a rule has a namespace, with its share of all targets."""

    @property
    def facts(self) -> Mapping[str, Heard]:
        """All facts that its rules hear, by name."""
        return {"Observation": look(self.target), **self.heard}


_ROUTE = {"Route": ROUTE}
_WORKLOADS = {
    "Workload": WORKLOAD, "WorkloadCopy": COPY, "Cluster": CLUSTER, "ClusterTaints": TAINTS,
    "Observation of a cluster": look("cluster/m2", by_all=True),
}  # fmt: skip
_COPIES = "workload/m1/shop/Deployment/app{n}"
KINDS: Mapping[str, Form] = {
    "TrafficFailover": Form(_traffic, heard=_ROUTE),
    "TrafficFailover without backends": Form(_without_backends, heard=_ROUTE),
    "TrafficFailover with selectors": Form(_selecting, heard=_ROUTE),
    "TrafficFailover with selectors, a namespace each": Form(_selecting_namespaces, heard=_ROUTE, selects=True),
    "TrafficFailover with guards": Form(_guarded, heard=_ROUTE),
    "Notification": Form(_notification),
    "Notification of a namespace": Form(_notification_of_many, selects=True),
    "WorkloadFailover": Form(_workload, _COPIES, _WORKLOADS),
    "WorkloadFailover with label selectors": Form(_workload_labels, _COPIES, _WORKLOADS),
    "ClusterTaint": Form(_taint, "cluster/app{n}"),
    "ZoneIsolation": Form(_zone, "zone/app{n}/a", {"Zones": ZONES}),
    "Quorum": Form(_notification),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one event."""

    route: float
    """Microseconds to find its partitions."""
    decide: float
    """Microseconds to fold it in and decide."""
    partitions: float
    """Number of partitions in which it is stored."""


def many_rules() -> Result:
    """Microseconds to pass one event on, and to fold it in and decide, by form, type of fact and number of rules."""
    figures: dict[str, Any] = {}
    growth: dict[bool, list[float]] = {False: [], True: []}
    for name, form in KINDS.items():
        by_count = [_measured(name, form, count) for count in COUNTS]
        for fact, heard in form.facts.items():
            costs = [found[fact] for found in by_count]
            figures[f"{name}: {fact}"] = _of_all(costs) if heard.by_all else _of_some(costs)
            growth[heard.by_all].append(figures[f"{name}: {fact}"]["growth"])
            print(f"  {name}: {fact}: {figures[f'{name}: {fact}']}", file=sys.stderr, flush=True)
    figures |= {"growth_max": max(growth[False]), "growth_of_each_max": max(growth[True])}
    what = f"one event by the number of rules ({', '.join(map(str, COUNTS))}), in microseconds"
    return Result("many-rules", what, figures, {"growth_max": f"≤ {GROWTH_MAX}"})


def _of_some(costs: Sequence[Cost]) -> dict[str, Any]:
    """Figures of a fact that concerns as many groups whatever the number of rules."""
    whole = [one.route + one.decide for one in costs]
    return {**_figures(costs), "growth": round(whole[-1] / whole[0], 2)}


def _of_all(costs: Sequence[Cost]) -> dict[str, Any]:
    """Figures of a fact that concerns every rule: `growth` is that of the time for each of them."""
    each = [(one.route + one.decide) / count for one, count in zip(costs, COUNTS, strict=True)]
    return {**_figures(costs), "each": _by_count(each), "growth": round(each[-1] / each[0], 2)}


def _figures(costs: Sequence[Cost]) -> dict[str, Any]:
    return {
        "route": _by_count([one.route for one in costs]), "decide": _by_count([one.decide for one in costs]),
        "partitions": _by_count([one.partitions for one in costs]),
    }  # fmt: skip


def _by_count(figures: Sequence[float]) -> dict[str, float]:
    return {str(count): round(figure, 1) for count, figure in zip(COUNTS, figures, strict=True)}


def routing_of(name: str, form: Form, count: int) -> Routing:
    """Give the routing of so many rules of a form."""
    common = {"mode": "Enforce", "tolerationSeconds": 3600}
    rules = [_RULE.validate_json(json.dumps({"name": f"r{n}", **common, **form.rule(n)})) for n in range(count)]
    if "ClusterTaints" in form.facts:  # what it says counts while the rule is there
        rules.append(_RULE.validate_json(json.dumps({"name": TAINTING, **common, **_taint(0), "match": "cluster/m2"})))
    quorums = [_quorum(n) for n in range(count)] if name == "Quorum" else []
    return Routing([] if name == "Quorum" else rules, (), quorums)


def _measured(name: str, form: Form, count: int) -> dict[str, Cost]:
    """Give the cost of one event by the type of fact."""
    routing = routing_of(name, form, count)
    group_store = GroupStore(routing)
    things = TARGETS if form.selects else min(count, TARGETS)
    places = [(f"shop{n % count}" if form.selects else "shop", n) for n in range(things)]
    for heard in form.heard.values():  # what is listed first
        some = places[:2] if heard.by_all else places
        group_store.apply([heard.fact(Moment(namespace, n, 0, 0)) for namespace, n in some], at(0))
    clock = Clock()
    publisher = FactPublisher(MemoryBus(clock.now), routing, PARTITIONS, clock, source="/bench")
    return {fact: _cost(group_store, publisher, heard, places) for fact, heard in form.facts.items()}


def _cost(group_store: GroupStore, publisher: FactPublisher, heard: Heard, places: Sequence[tuple[str, int]]) -> Cost:
    """Give the cost of one event of this type: first one of each thing, then those that are timed."""
    things = len(places)
    events = [
        heard.fact(Moment(namespace, n, turn, 1 + turn * things + n))
        for turn in range(-(-EVENTS // things) + 1)
        for namespace, n in places
    ]
    first, events = events[: 2 if heard.by_all else things], events[things : things + EVENTS]
    for event in first:
        group_store.apply([event], event.observed_at)
    stored = mean(len(publisher.messages(one, "id", body=b"{}")) for one in first)
    decide = _each(lambda event: group_store.apply([event], event.observed_at), events)
    return Cost(_each(lambda event: publisher.messages(event, "id", body=b"{}"), events), decide, stored)


def _each(act: Callable[[Fact], object], events: Sequence[Fact]) -> float:
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


def _quorum(n: int) -> Quorum:
    keys = {"name": f"q{n}", "kind": "Quorum", "target": f"custom/app{n}", "members": f"service/*/shop/app{n}"}
    return Quorum.model_validate_json(json.dumps({**keys, "unhealthyAt": 1}))

"""The index of facts finds the rules that asking every rule in turn finds, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from bus.messages import (
    AcquireReply,
    AcquireRequest,
    Approve,
    Backend,
    Cluster,
    ClusterTaints,
    Command,
    Fact,
    FailbackTraffic,
    FailbackZone,
    FailoverTraffic,
    Health,
    IsolateZone,
    Observation,
    Outcome,
    Pause,
    Reject,
    ReleaseTraffic,
    Resume,
    RetryZone,
    Route,
    RouteKind,
    Workload,
    WorkloadCopy,
    Zones,
)
from rules.catalog import AnyRule, kind_of
from rules.core.index import Index, pattern_of
from rules.core.interests import path_of
from rules.engine.groups import GroupStore
from rules.engine.routing import Address, Home, Routing
from rules.kinds.traffic.model import OnAllDown, TrafficFailover
from rules.kinds.traffic.route_fleet import namespace_in
from rules.kinds.traffic.route_interests import explicit_targets, named_ref
from rules.loader import RuleSet
from rules.rehearsal.simulation import at
from rules.rulefile.guards import FileGuard
from rules.rulefile.sources import Quorum
from rules.rulefile.targets import matches
from tests.examples import many
from tests.unit.rules.builders import rule_set

CLUSTERS, NAMESPACES, NAMES = ("east", "m1", "m2"), ("shop", "pay"), ("a", "b", "ab")
words = st.sampled_from(NAMES)
clusters = st.sampled_from(CLUSTERS)
namespaces = st.sampled_from(NAMESPACES)
globs = st.sampled_from(("*", "?", "a*", "*b", "a*b", "[ab]", "[ab]*", "s*p", "m?", "??", "*a*"))
targets = st.one_of(
    st.builds("service/{}/{}/{}".format, clusters, namespaces, words),
    st.builds("cluster/{}".format, clusters),
    st.builds("zone/{}/{}".format, clusters, words),
    st.builds("workload/{}/{}/Deployment/{}".format, clusters, namespaces, words),
    st.builds("custom/{}/{}".format, clusters, words),
)


@st.composite
def patterns(draw: st.DrawFn, kinds: Sequence[str] = ("service", "cluster", "zone", "workload", "custom")) -> str:
    """A target of which some segments became wild, or all behind one of them."""
    wanted = tuple(kinds)
    segments = draw(targets.filter(lambda target: target.split("/")[0] in wanted)).split("/")
    for place in range(1, len(segments)):
        segments[place] = draw(st.one_of(st.just(segments[place]), globs))
    if draw(st.integers(0, 4)) == 0:
        place = draw(st.integers(1, len(segments) - 1))
        segments[place : draw(st.integers(place, len(segments)))] = ["**"]
    return "/".join(segments)


def _maybe(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


GUARDS = st.one_of(
    st.builds(lambda peers: {"maxUnhealthy": 1, "peers": peers}, patterns()), st.just({"maxUnhealthy": 1}),
    st.just({"maxConcurrent": 1}), st.just({"cooldownSeconds": 1}),
)  # fmt: skip
COMMON = _maybe(guards=GUARDS, signals=st.just(["one", "two"]))


@st.composite
def traffic(draw: st.DrawFn) -> dict[str, Any]:
    route: dict[str, Any] = {"cluster": draw(clusters), "kind": draw(st.sampled_from(("TrafficSplit", "HTTPRoute")))}
    selects = draw(st.booleans())
    if selects:
        route |= {"selector": "app=web"} | draw(_maybe(namespace=namespaces))
    else:
        route |= {"namespace": draw(namespaces), "name": draw(words)}
    if route["kind"] == "HTTPRoute" and draw(st.booleans()):
        route["rule"] = draw(st.integers(0, 1))
    rule: dict[str, Any] = {"kind": "TrafficFailover", "route": route}
    if route["kind"] == "TrafficSplit" and draw(st.booleans()):
        rule["onAllDown"] = "Zero"
    if draw(st.booleans()):
        pool = [{"service": name} for name in NAMES] + [{"service": "x", "target": draw(targets)}]
        if selects:
            templates = ("service/west/{namespace}/{name}", "custom/far/{name}-x", "custom/{namespace}/a{name}")
            pool.append({"service": "{name}-west", "target": draw(st.sampled_from(templates))})
        chosen = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique_by=lambda one: one["service"]))
        rule |= {"backends": chosen}
    return rule


def _workload(named: bool, word: str, namespace: str) -> dict[str, Any]:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    if named:
        selector |= {"namespace": namespace, "name": word}
    placement = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
    return {"kind": "WorkloadFailover", "resourceSelectors": [selector], "placement": placement}


def _taint(match: str) -> dict[str, Any]:
    return {"kind": "ClusterTaint", "match": match, "taints": [{"key": "bad", "effect": "NoExecute"}]}


def _zone(cluster: str) -> dict[str, Any]:
    zones = [{"name": name, "id": f"{name}-id"} for name in NAMES]
    return {"kind": "ZoneIsolation", "cluster": cluster, "zones": zones, "signals": ["one", "two"]}


RULES = st.one_of(
    traffic(), st.builds(_workload, st.booleans(), words, namespaces), st.builds(_zone, clusters),
    st.builds(lambda match: {"kind": "Notification", "match": match}, patterns()),
    st.builds(_taint, patterns(("cluster",))),
)  # fmt: skip


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    """Rules of every kind, with sources that deciders carry out, and guards that several rules share."""
    rules, zones = [], set()
    for number, (rule, more) in enumerate(draw(st.lists(st.tuples(RULES, COMMON), min_size=1, max_size=8))):
        if rule["kind"] == "ZoneIsolation":
            if rule["cluster"] in zones:
                continue
            zones.add(rule["cluster"])
            more = {}
        rules.append({"name": f"r{number}", "mode": "Enforce"} | rule | more)
    members = draw(st.lists(patterns(), max_size=2))
    quorums = [
        {"name": f"q{n}", "kind": "Quorum", "target": f"custom/q{n}", "members": one, "unhealthyAt": 1}
        for n, one in enumerate(members)
    ]
    guard = {"name": "g", "rules": [draw(st.sampled_from(("*", "r1", "r?")))], **draw(GUARDS)}
    # Without the checks of what is seldom meant: routing has to be right for it too.
    return RuleSet(
        tuple(TypeAdapter(AnyRule).validate_json(json.dumps(rule)) for rule in rules),
        tuple(Quorum.model_validate_json(json.dumps(source)) for source in quorums),
        (FileGuard.model_validate_json(json.dumps(guard)),),
    )


NOW = at(10)
ROUTES: tuple[RouteKind, ...] = ("TrafficSplit", "HTTPRoute")
COMMAND: dict[str, Any] = {"by": "ann", "reason": "x", "observed_at": NOW}
RULE_NAMES = ("r0", "r1", "@rule.r0", "gone")
OBJECTS = ("east/shop/TrafficSplit/a", "m1/pay/TrafficSplit/b", "shop/Deployment/a", "m1/a", "*")
TARGETS = (
    *map("/".join, product(("service",), CLUSTERS, NAMESPACES, (*NAMES, "a-x"))),
    *map("/".join, product(("workload",), CLUSTERS, NAMESPACES, ("Deployment",), NAMES)),
    *map("/".join, product(("zone", "custom"), CLUSTERS, NAMES)), *map("cluster/{}".format, CLUSTERS),
    "custom/far/a-x", "custom/shop/ab", "service/west/shop/a",
)  # fmt: skip


def _facts() -> Iterator[Fact]:
    """Of every sort, everything that a small world may hold."""
    for target, signal in product(TARGETS, ("one", "other")):
        yield Observation(target=target, status=Health.UNHEALTHY, signal=signal, observed_at=NOW)
    for cluster, kind, namespace, name in product(CLUSTERS, ROUTES, NAMESPACES, NAMES):
        for rule in (None, 0, "0"):
            yield Route(
                cluster=cluster, kind=kind, namespace=namespace, name=name, rule=rule, observed_at=NOW,
                backends=(Backend(service="a"),), labels={"app": "web"},
            )  # fmt: skip
    for cluster in CLUSTERS:
        yield Cluster(name=cluster, observed_at=NOW)
        yield ClusterTaints(cluster=cluster, rule="r0", taints=(), observed_at=NOW)
        yield Zones(cluster=cluster, zones={}, observed_at=NOW)
    for namespace, name in product(NAMESPACES, NAMES):
        workload: dict[str, Any] = {"namespace": namespace, "kind": "Deployment", "name": name, "observed_at": NOW}
        yield Workload(**workload)
        yield WorkloadCopy(**workload, cluster="m1")
    for name in RULE_NAMES:
        for guard in ("guard.g", "rule.r0", "evictions", "clusters"):
            yield AcquireRequest(guard=guard, rule=name, object="x", generation=0, observed_at=NOW)
        yield from (kind(rule=name, zone="a", **COMMAND) for kind in (IsolateZone, FailbackZone, RetryZone))
        for sort in (Pause, Resume, FailoverTraffic, FailbackTraffic, ReleaseTraffic):
            yield sort(rule=name, **COMMAND)
        for about in OBJECTS:
            yield from (kind(rule=name, object=about, **COMMAND) for kind in (Approve, Reject))
            yield Outcome(action="a/1", rule=name, object=about, status="Done", observed_at=NOW)
            yield AcquireReply(guard="guard.g", rule=name, object=about, generation=0, granted=True, observed_at=NOW)


FACTS = tuple(_facts())


def plain(routing: Routing, fact: Fact) -> Iterator[Address]:
    """Ask every rule in turn, as the router did before it had an index."""
    for name, rule in routing.rules.items():
        kind = kind_of(rule)
        if isinstance(rule, TrafficFailover):
            yield from ((name, scope) for scope in _of_traffic(rule, fact))
        elif not routing.is_skipped(rule, fact):
            yield from ((name, kind.scope(rule, object_)) for object_ in kind.objects(rule, fact))


def _of_traffic(rule: TrafficFailover, fact: Fact) -> Iterator[str]:
    ref, route = named_ref(rule), rule.route
    shares = ref is None or rule.backends is None or rule.on_all_down is OnAllDown.ZERO
    home = None if ref is None else f"{ref.cluster}/{ref.namespace}" if shares else ref.object
    if isinstance(fact, Route):
        same = (fact.cluster, fact.called, fact.rule) == (route.cluster, route.called, route.rule)
        if same and route.namespace in (None, fact.namespace) and route.name in (None, fact.name):
            yield home or f"{fact.cluster}/{fact.namespace}"
    elif isinstance(fact, Observation):
        if ref is not None and home is not None and fact.target in (explicit_targets(rule, ref) or ()):
            yield home
        for backend in (rule.backends or ()) if ref is None else ():
            found = namespace_in(backend.target, fact.target) if backend.target is not None else None
            if found is not None and route.namespace in (None, found or route.namespace):
                yield f"{route.cluster}/{found or route.namespace}"
        kind, *path = fact.target.split("/")
        if shares and kind == "service" and path[0] == route.cluster and route.namespace in (None, path[1]):
            yield "/".join(path[:2])


@many(60)
@given(rule_sets())
def test_the_index_finds_what_asking_every_rule_finds(rules: RuleSet) -> None:
    routing = Routing.of(rules)
    for fact in FACTS:
        found = routing.addresses(fact)
        if isinstance(fact, Pause | Resume | Outcome | AcquireReply | Approve | Reject | FailoverTraffic
                      | FailbackTraffic | ReleaseTraffic):  # fmt: skip
            assert {name for name, _ in found} <= {fact.rule}  # these name their rule: nothing is searched
        else:
            assert set(found) == set(plain(routing, fact)), fact
        assert len(found) == len(set(found))
        assert set(routing.homes(fact)) == {routing.home(*address) for address in found}


@settings(max_examples=40, deadline=None)
@given(rule_sets(), st.lists(st.sampled_from(FACTS), min_size=1, max_size=20))
def test_what_a_reader_decides_is_in_a_home_to_which_the_fact_goes(rules: RuleSet, some: Sequence[Fact]) -> None:
    routing = Routing.of(rules)
    group_store = GroupStore(routing)
    for fact in some:
        touched = {(decision.group.rule, decision.group.object) for decision in group_store.apply([fact], NOW)}
        homes = set(routing.homes(fact))
        if not isinstance(fact, Command):  # these name their rule, or all of them
            for name, object_ in touched:
                rule = routing.rules[name]
                stirred = kind_of(rule).shared_object is not None  # they follow their census, which is in their home
                assert stirred or routing.home(name, kind_of(rule).scope(rule, object_)) in homes


@many(40)
@given(rule_sets())
def test_inventory_of_one_thing_has_the_same_homes_whatever_else_it_says(rules: RuleSet) -> None:
    """A publisher of facts finds their partitions once for each path."""
    routing = Routing.of(rules)
    homes: dict[Sequence[str], set[Home]] = {}
    for fact in FACTS:
        if isinstance(fact, Route | Workload | WorkloadCopy | Cluster | ClusterTaints):
            others: list[dict[str, Any]] = [{"labels": {"app": "other"}}, {"labels": {}}, {"exists": False}]
            there = [other for other in others if other.keys() <= type(fact).model_fields.keys()]
            for one in (fact, *(fact.model_copy(update=other) for other in there)):
                found = set(routing.homes(one))
                assert homes.setdefault(path_of(one), found) == found, one


@many(400)
@given(patterns(), targets)
def test_an_index_finds_every_pattern_that_fits(pattern: str, target: str) -> None:
    found = Index([(pattern_of(pattern), pattern)]).find(target.split("/"))
    assert found == (pattern,) or not matches(pattern, target)


def test_an_index_does_not_look_at_patterns_of_other_names() -> None:
    index = Index((pattern_of(f"service/*/shop/cart-{number}*"), number) for number in range(100))
    assert index.find(("service", "east", "shop", "cart-17")) == (1, 17)  # `cart-1*` and `cart-17*`


def test_every_fact_has_a_path_and_is_tried_here() -> None:
    assert {type(fact) for fact in FACTS} == set(get_args(Fact))


@pytest.mark.parametrize("rule", [{}, {"route": {"cluster": "east", "kind": "TrafficSplit", "selector": "app=web"}}])
def test_what_is_said_in_a_namespace_is_stored_once_for_all_rules_that_take_their_backends_from_routes(
    rule: dict[str, Any],
) -> None:
    def named(n: int) -> dict[str, Any]:
        route = {"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": f"web{n}"}
        return {"name": f"web{n}", "kind": "TrafficFailover", "mode": "Enforce", "route": route} | rule

    routing = Routing.of(rule_set(*map(named, range(100))))
    fact = Observation(target="service/east/shop/web7", status=Health.HEALTHY, observed_at=NOW)
    assert len(routing.addresses(fact)) == 100
    assert len(set(routing.homes(fact))) == 1

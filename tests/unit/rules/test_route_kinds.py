"""Rules for each kind of route, and their demands on those whose weights add up to a sum."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Hold, RouteKind, SetWeights
from rules.core.errors import InvalidFiles
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_state import route_ref, summed
from rules.kinds.traffic.state import RouteState
from rules.rehearsal.simulation import at
from rules.rulefile.route_kinds import CUSTOM, ROUTE_KINDS
from tests.unit.rules.builders import (
    Event,
    failover,
    healthy,
    holds,
    moves,
    route,
    rule_set,
    said,
    the_rule,
    unhealthy,
)

PERCENT = ("VirtualService", "ServiceSplitter")
RATIO = tuple(kind for kind in ROUTE_KINDS if kind not in PERCENT)
WELL = [healthy(service, at=0) for service in ("a", "b", "c")]


def three(**keys: Any) -> dict[str, Any]:
    return failover(primary="a", backends=[{"service": one} for one in ("a", "b", "c")]) | keys


def of_kind(kind: str, **more: Any) -> dict[str, Any]:
    return {"cluster": "east", "kind": kind, "namespace": "shop", "name": "web"} | more


def route_of_kind(kind: str, weights: dict[str, int], *, at: float = 0, **more: Any) -> Event:
    return route(weights, at=at, kind=kind, **more)


def test_every_kind_that_rules_can_name_is_described() -> None:
    assert {*get_args(RouteKind)} == {*ROUTE_KINDS, CUSTOM}


@pytest.mark.parametrize("kind", RATIO)
def test_where_the_ratio_counts_weights_are_asked_for_as_they_are(kind: str) -> None:
    events = [route_of_kind(kind, {"a": 1, "b": 0, "c": 0}), *WELL, unhealthy("a", at=5), healthy("a", at=9)]
    assert moves(three(route=of_kind(kind)), *events) == [(5, {"a": 0, "b": 1, "c": 1}), (9, {"a": 1, "b": 0, "c": 0})]


@pytest.mark.parametrize("kind", PERCENT)
def test_percentages_add_up_by_largest_remainder(kind: str) -> None:
    events = [route_of_kind(kind, {"a": 100, "b": 0, "c": 0}), *WELL, unhealthy("a", at=5), healthy("a", at=9)]
    there, back = {"a": 0, "b": 50, "c": 50}, {"a": 100, "b": 0, "c": 0}
    assert moves(three(route=of_kind(kind)), *events) == [(5, there), (9, back)]
    weighted = [{"service": "a"}, {"service": "b", "weight": 2}, {"service": "c", "weight": 1}]
    rule = three(route=of_kind(kind), backends=weighted, distribution="Proportional")
    assert moves(rule, *events[:-1]) == [(5, {"a": 0, "b": 67, "c": 33})]


@pytest.mark.parametrize("kind", PERCENT)
def test_a_route_that_no_history_lists_has_all_of_it_at_the_primary(kind: str) -> None:
    assert moves(three(route=of_kind(kind)), *WELL, unhealthy("a", at=5)) == [(5, {"a": 0, "b": 50, "c": 50})]


@pytest.mark.parametrize("kind", PERCENT)
def test_what_others_have_stays_theirs(kind: str) -> None:
    events = [route_of_kind(kind, {"a": 80, "b": 0, "c": 0, "x": 20}), *WELL, unhealthy("a", at=5)]
    assert moves(three(route=of_kind(kind)), *events) == [(5, {"a": 0, "b": 40, "c": 40})]
    taken = [route_of_kind(kind, {"a": 0, "b": 0, "c": 0, "x": 100}), *WELL]
    held = [one.what for one in said(three(route=of_kind(kind)), *taken) if isinstance(one.what, Hold)]
    assert [(one.held, "x, no backends of the rule" in one.detail) for one in held] == [("RouteUnusable", True)]


@pytest.mark.parametrize("kind", PERCENT)
def test_a_trial_and_steps_are_percentages_as_they_are(kind: str) -> None:
    rule = three(route=of_kind(kind), steps=[{"percent": 10, "pauseSeconds": 5}])
    events = [route_of_kind(kind, {"a": 100, "b": 0, "c": 0}), *WELL, unhealthy("a", at=5), healthy("a", at=9)]
    asked = moves(rule, *events)
    assert [weights for _, weights in asked[1:]] == [{"a": 10, "b": 45, "c": 45}, {"a": 100, "b": 0, "c": 0}]


@pytest.mark.parametrize("kind", PERCENT)
def test_a_hand_edit_of_percentages_is_drift(kind: str) -> None:
    home = {"a": 100, "b": 0, "c": 0}
    events = [route_of_kind(kind, home), *WELL, route_of_kind(kind, {"a": 90, "b": 10, "c": 0}, at=50)]
    things = [one.what for one in said(three(route=of_kind(kind)), *events) if isinstance(one.what, SetWeights)]
    assert [(dict(one.weights), one.because) for one in things] == [(home, "Drift")]


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.lists(st.integers(0, 100), max_size=3),
    st.integers(1, 1000),
)  # fmt: skip
def test_the_sum_always_holds(wanted: list[int], others: list[int], whole: int) -> None:
    names = [f"s{index}" for index in range(len(wanted))]
    backends = (*((name, 0) for name in names), *((f"o{index}", weight) for index, weight in enumerate(others)))
    state = RouteState(backends, at(0), sum_to=whole)
    rule = the_rule(route=of_kind(CUSTOM, customKind="Pool"))
    assert isinstance(rule, TrafficFailover)
    found = summed(route_ref(rule, "east/shop/Pool/web"), state, dict(zip(names, wanted, strict=True)))
    if not any(wanted):
        assert found is not None
        assert not any(found.values())
    elif sum(others) >= whole:
        assert found is None
    else:
        assert found is not None
        assert sum(found.values()) + sum(others) == whole
        assert all(found[name] == 0 for name, weight in zip(names, wanted, strict=True) if weight == 0)


# --- kinds of the settings ---------------------------------------------------------------------------------------


def pool(weights: dict[str, int], *, at: float = 0, **more: Any) -> Event:
    return route_of_kind(CUSTOM, weights, at=at, custom_kind="Pool", **more)


def custom(**keys: Any) -> dict[str, Any]:
    return three(route=of_kind(CUSTOM, customKind="Pool"), **keys)


def test_a_kind_of_the_settings_says_with_its_inventory_what_it_adds_up_to() -> None:
    events = [pool({"a": 1000, "b": 0, "c": 0}, sum_to=1000), *WELL, unhealthy("a", at=5)]
    assert moves(custom(), *events) == [(5, {"a": 0, "b": 500, "c": 500})]
    (one,) = [one.what for one in said(custom(), *events) if isinstance(one.what, SetWeights)]
    assert (one.object, one.route.kind, one.route.custom_kind) == ("east/shop/Pool/web", "Custom", "Pool")


def test_another_kind_of_the_settings_with_the_same_name_is_another_route() -> None:
    events = [route_of_kind(CUSTOM, {"a": 1, "b": 0, "c": 0}, custom_kind="Other"), *WELL, unhealthy("a", at=5)]
    assert moves(custom(backends=None, primary=None) | {"name": "web"}, *events) == []


def test_all_zero_is_held_where_the_kind_does_not_allow_it() -> None:
    down = [unhealthy(service, at=5) for service in ("a", "b", "c")]
    rule = custom(onAllDown="Zero")
    stood = {"a": 1, "b": 0, "c": 0}
    assert moves(rule, pool(stood, all_zero=True), *WELL, *down) == [(5, {"a": 0, "b": 0, "c": 0})]
    assert (5, "AllZero") in holds(rule, pool(stood), *WELL, *down)


def test_a_host_of_a_virtual_service_is_its_service_wherever_it_is_written() -> None:
    host = "{}.{}.svc.cluster.local"
    hosts = {"a": host.format("a", "shop"), "b": host.format("b", "west"), "c": "c"}
    rule = three(
        route=of_kind("VirtualService"), primary=hosts["a"], backends=[{"service": one} for one in hosts.values()]
    )
    there = healthy("service/east/west/b", at=0)
    listed = route_of_kind("VirtualService", {hosts["a"]: 100, hosts["b"]: 0, "c": 0})
    moved = [(5, {"a": 0, "west/b": 50, "c": 50})]
    assert moves(rule, listed, *WELL, there, unhealthy("a", at=5)) == moved
    assert moves(rule, *WELL, there, unhealthy("a", at=5)) == moved
    other = three(route=of_kind("HTTPRoute"), primary=hosts["a"], backends=[{"service": one} for one in hosts.values()])
    (loaded,) = rule_set(other).rules
    assert isinstance(loaded, TrafficFailover)
    assert loaded.primary == hosts["a"], "elsewhere a name is a name"


# --- checks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"route": of_kind("ServiceSplitter", rule=1)}, "rule: a ServiceSplitter has no rules: remove it"),
        ({"route": of_kind("TraefikService", rule="x")}, "rule: a TraefikService has no rules: remove it"),
        ({"route": of_kind("HTTPProxy", rule="x")}, "rule: the rules of an HTTPProxy have no names: write an index"),
        ({"route": of_kind("VirtualService"), "onAllDown": "Zero"}, "a VirtualService is never left with all weights"),
        ({"route": of_kind(CUSTOM)}, "customKind: required with kind Custom"),
        ({"route": of_kind("HTTPRoute", customKind="x")}, "customKind: only goes with kind Custom: remove it"),
        ({"route": of_kind(CUSTOM, customKind="HTTPProxy")}, "customKind: built in: write `kind: HTTPProxy`"),
        (
            {
                "route": {"cluster": "east", "kind": "VirtualService", "selector": "x"},
                "primary": "{name}",
                "backends": [
                    {"service": "{name}", "target": "service/east/{namespace}/{name}"},
                    {"service": "{name}.west.svc.cluster.local", "target": "service/west/{namespace}/{name}"},
                ],
            },
            "backends[1].service: a Service is named without its domain: write west/{name}",
        ),
        ({"route": of_kind("Ingress")}, "route.kind: must be 'TrafficSplit'"),
    ],
)
def test_what_does_not_go_with_a_kind_is_told_at_its_place(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidFiles) as error:
        rule_set(failover(**keys))
    assert says in str(error.value)

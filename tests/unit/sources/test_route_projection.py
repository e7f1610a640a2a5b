"""Routes as they are in a cluster, odd ones among them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Route
from reactor.clients.changes import ObjectKey
from reactor.sources.kubernetes.route_projection import missing_route, route_from

AT = datetime(2026, 1, 1, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def metadata(**more: Any) -> dict[str, Any]:
    return {"name": "checkout", "namespace": "shop", **more}


def split(*backends: Any, **more: Any) -> Route:
    found = {"metadata": metadata(**more), "spec": {"service": "checkout", "backends": list(backends)}}
    return route_from("east", "TrafficSplit", found, None, at=AT)


def http_route(*rules: Any, rule: int | str | None = None) -> Route:
    found = {"metadata": metadata(), "spec": {"rules": list(rules)}}
    return route_from("east", "HTTPRoute", found, rule, at=AT)


def refs(*backends: Any, name: str | None = None) -> dict[str, Any]:
    return {"backendRefs": list(backends)} | ({"name": name} if name else {})


def weights(route: Route) -> dict[str, int]:
    assert not route.problem
    return {backend.service: backend.weight for backend in route.backends}


def test_a_split_is_told_with_its_weights_in_order() -> None:
    route = split({"service": "b", "weight": 0}, {"service": "a", "weight": 5}, labels={"x": "y"})
    assert [(b.service, b.weight) for b in route.backends] == [("b", 0), ("a", 5)]
    assert (route.object, route.labels, route.exists) == ("east/shop/TrafficSplit/checkout", {"x": "y"}, True)


@pytest.mark.parametrize(("weight", "whole"), [(1, 1), ("1", 1), (3.0, 3), (0, 0), (1_000_000, 1_000_000)])
def test_whole_weights_of_every_version_are_read(weight: Any, whole: int) -> None:
    assert weights(split({"service": "a", "weight": weight})) == {"a": whole}


@pytest.mark.parametrize("weight", ["500m", 0.5, -1, "-1", True, None, [], 1_000_001, "1k", "99999999", "٣"])
def test_a_weight_that_is_no_whole_number_is_told_as_a_problem(weight: Any) -> None:
    route = split({"service": "a", "weight": 1}, {"service": "b", "weight": weight})
    assert route.problem.startswith("spec.backends[1].weight is ")
    assert route.backends == ()
    assert route.exists


def test_large_annotations_are_left_out() -> None:
    route = split({"service": "a", "weight": 1}, annotations={"small": "1", "last-applied": "x" * 5000})
    assert route.annotations == {"small": "1"}


def test_the_first_rule_with_several_backends_is_meant_by_default() -> None:
    route = http_route(refs({"name": "only"}), refs({"name": "a"}, {"name": "b", "weight": 0}))
    assert weights(route) == {"a": 1, "b": 0}
    assert route.rule is None


def test_a_route_without_such_a_rule_is_meant_by_its_first() -> None:
    assert weights(http_route(refs({"name": "only"}), refs({"name": "other"}))) == {"only": 1}


@pytest.mark.parametrize("rule", [1, "canary"])
def test_a_rule_is_found_by_index_and_by_name(rule: int | str) -> None:
    route = http_route(refs({"name": "a"}, {"name": "b"}), refs({"name": "c"}, name="canary"), rule=rule)
    assert weights(route) == {"c": 1}
    assert route.object == f"east/shop/HTTPRoute/checkout#{rule}"


@pytest.mark.parametrize(
    ("rule", "problem"), [(2, "there is no rule 2, the route has 1"), ("x", "there is no rule named 'x'")]
)
def test_a_rule_that_is_not_there_is_told(rule: int | str, problem: str) -> None:
    assert http_route(refs({"name": "a"}), rule=rule).problem == problem


def test_a_service_elsewhere_is_told_with_its_namespace() -> None:
    route = http_route(refs({"name": "a", "namespace": "shop"}, {"name": "a", "namespace": "west"}))
    assert weights(route) == {"a": 1, "west/a": 1}


def test_backends_that_are_no_services_are_left_alone() -> None:
    imported = {"group": "multicluster.x-k8s.io", "kind": "ServiceImport", "name": "a"}
    route = http_route(refs(imported, {"name": "b"}))
    assert ([backend.service for backend in route.backends], route.problem) == (["b"], "")


def test_a_service_that_is_there_twice_is_told_twice() -> None:
    route = http_route(refs({"name": "a", "port": 1}, {"name": "a", "port": 2, "weight": 3}))
    assert [(backend.service, backend.weight) for backend in route.backends] == [("a", 1), ("a", 3)]


@pytest.mark.parametrize(
    "spec", [None, 7, {}, {"backends": None}, {"backends": 7}, {"backends": [7]}, {"backends": [{}]}]
)
def test_a_malformed_split_is_told_as_one_that_cannot_be_used(spec: Any) -> None:
    route = route_from("east", "TrafficSplit", {"metadata": metadata(), "spec": spec}, None, at=AT)
    assert route.exists
    assert route.problem


@given(JSON, st.none() | st.integers(0, 3) | st.text(max_size=3))
def test_any_spec_gives_a_route(spec: Any, rule: int | str | None) -> None:
    found = {"metadata": metadata(), "spec": spec}
    for route in (
        route_from("east", "TrafficSplit", found, None, at=AT),
        route_from("east", "GRPCRoute", found, rule, at=AT),
    ):
        assert bool(route.problem) != bool(route.backends)


def test_a_missing_route_does_not_exist() -> None:
    route = missing_route("east", "HTTPRoute", ObjectKey("shop", "checkout"), 1, at=AT)
    assert (route.exists, route.object) == (False, "east/shop/HTTPRoute/checkout#1")

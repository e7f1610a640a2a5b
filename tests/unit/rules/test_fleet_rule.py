"""One rule for a fleet: its backends contain names of the route."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Hold
from rules.core.errors import InvalidFiles
from rules.engine.routing import Routing
from tests.unit.rules.builders import Event, failover, healthy, moves, route, rule_set, said, unhealthy

WEST = "service/west/shop/{}"


def fleet(**keys: Any) -> dict[str, Any]:
    given = {
        "route": {"cluster": "east", "kind": "TrafficSplit", "selector": "x"}, "primary": "{name}",
        "backends": [{"service": "{name}"}, {"service": "{name}-west", "target": "service/west/{namespace}/{name}"}],
    }  # fmt: skip
    return failover(**(given | keys))


def split(name: str, *services: str) -> Event:
    weights = {service: int(not index) for index, service in enumerate(services)}
    return route(weights, name=name, labels={"x": "y"})


def well(name: str) -> list[Event]:
    return [healthy(name, at=0), healthy(WEST.format(name), at=0)]


def test_each_route_has_backends_of_its_own_name_in_another_cluster() -> None:
    two = [split("cart", "cart", "cart-west"), split("pay", "pay", "pay-west"), *well("cart"), *well("pay")]
    assert moves(fleet(), *two, unhealthy("cart", at=10)) == [(10, {"cart": 0, "cart-west": 1})]
    dead = unhealthy(WEST.format("pay"), at=5)
    held = [one.what for one in said(fleet(), *two, dead, unhealthy("pay", at=10)) if isinstance(one.what, Hold)]
    assert [(one.object, one.held) for one in held] == [("east/shop/TrafficSplit/pay", "NoHealthySecondary")]


def test_a_name_that_the_route_lacks_or_that_is_too_long_holds_that_one_only() -> None:
    long = "a" * 60
    odd = [split("odd", "odd", "other"), split(long, long, f"{long}-west"), split("cart", "cart", "cart-west")]
    events = [*odd, *well("odd"), *well(long), *well("cart"), *(unhealthy(n, at=10) for n in ("odd", long, "cart"))]
    things = said(fleet(), *events)
    held = {one.what.object: one.what.detail for one in things if isinstance(one.what, Hold)}
    assert "has no backend odd-west" in held["east/shop/TrafficSplit/odd"]
    assert "has 65 characters, and may have 63" in held[f"east/shop/TrafficSplit/{long}"]
    assert moves(fleet(), *events) == [(10, {"cart": 0, "cart-west": 1})]


def test_an_observation_goes_to_the_namespace_that_its_target_names() -> None:
    routing = Routing(rule_set(fleet()).rules)
    assert routing.addresses(healthy(WEST.format("cart"), at=0)[1]) == [("web", "east/shop")]
    assert routing.addresses(healthy("service/north/shop/cart", at=0)[1]) == []
    fixed = fleet(
        route={"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "selector": "x"},
        backends=[{"service": "{name}"}, {"service": "{name}-far", "target": "custom/far/{name}"}],
    )
    assert Routing(rule_set(fixed).rules).addresses(healthy("custom/far/cart", at=0)[1]) == [("web", "east/shop")]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"backends": [{"service": "a"}], "primary": None}, "backends are read from each route"),
        ({"backends": [{"service": "{name}", "target": "custom/x/{name}"}]}, "needs {namespace} as a segment"),
        (
            {"backends": [{"service": "{name}", "target": "service/a/{namespace}/{shop}"}]},
            "{shop} is nothing of a route",
        ),
        (
            {
                "route": {"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "web"},
                "backends": [{"service": "a", "target": "service/a/b/{name}"}],
            },
            "only goes with a selector",
        ),
    ],
)
def test_what_cannot_be_filled_is_told(keys: dict[str, Any], says: str) -> None:
    given = {key: value for key, value in fleet(**keys).items() if value is not None}
    with pytest.raises(InvalidFiles) as error:
        rule_set(given)
    assert says in str(error.value)

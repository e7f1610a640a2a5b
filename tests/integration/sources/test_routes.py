"""The inventory of routes, from clusters that differ."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from bus.messages import Route
from reactor.clients.api_versions import served
from reactor.clients.clusters import Clusters
from reactor.clients.kubernetes_port import NotFound
from reactor.demo.kube import CutWatch, EmulatedCluster, Fault, Forbid, JsonObject, StatusFault
from reactor.sources.kubernetes import route_inventory
from reactor.sources.source_context import SourceContext
from rules.kinds.traffic.model import RouteSelection
from rules.rulefile.route_kinds import ROUTE_KINDS
from tests.integration.sources.conftest import Heard, Running


def wanted(name: str | None = "checkout", kind: str = "TrafficSplit", **more: Any) -> RouteSelection:
    given = {"cluster": "east", "kind": kind, "namespace": "shop", "name": name, **more}
    return RouteSelection.model_validate(given)


def split(name: str = "checkout", primary: Any = 1, **labels: str) -> JsonObject:
    return {
        "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {
            "service": name,
            "backends": [{"service": name, "weight": primary}, {"service": f"{name}-west", "weight": 0}],
        },
    }  # fmt: skip


def http_route(name: str = "checkout") -> JsonObject:
    refs = [{"name": name, "port": 80, "weight": 1}, {"name": f"{name}-west", "port": 80, "weight": 0}]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "shop"}, "spec": {"rules": [{"backendRefs": refs}]},
    }  # fmt: skip


def weights(route: Route | None) -> dict[str, int]:
    assert route is not None
    return {backend.service: backend.weight for backend in route.backends}


def last(heard: Heard, object_: str) -> Route | None:
    return next((route for route in reversed(heard.routes) if route.object == object_), None)


def is_told(heard: Heard, object_: str, holds: Callable[[Route], bool]) -> Callable[[], bool]:
    def told() -> bool:
        route = last(heard, object_)
        return route is not None and holds(route)

    return told


CHECKOUT = "east/shop/TrafficSplit/checkout"


async def test_a_named_route_is_told_with_its_weights_and_when_they_change(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(split())
    east.create(split("unrelated"))
    async with running(route_inventory.run([wanted()], world)):
        await heard.until(lambda: last(heard, CHECKOUT) is not None)
        assert weights(last(heard, CHECKOUT)) == {"checkout": 1, "checkout-west": 0}
        east.patch("trafficsplits", "checkout", split(primary=7), "shop")
        await heard.until(is_told(heard, CHECKOUT, lambda route: weights(route)["checkout"] == 7))
    assert {route.object for route in heard.routes} == {CHECKOUT}


async def test_a_named_route_that_is_not_there_is_told_so_until_it_is(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    async with running(route_inventory.run([wanted()], world)):
        await heard.until(is_told(heard, CHECKOUT, lambda route: not route.exists))
        east.create(split())
        await heard.until(is_told(heard, CHECKOUT, lambda route: route.exists))
        east.delete("trafficsplits", "checkout", "shop")
        await heard.until(is_told(heard, CHECKOUT, lambda route: not route.exists))


async def test_every_route_with_the_label_is_told(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    for name in ("a", "b"):
        east.create(split(name, failover="yes"))
    east.create(split("c"))
    selection = wanted(None, selector="failover=yes", namespace=None)
    async with running(route_inventory.run([selection], world)):
        await heard.until(lambda: len(heard.routes) == 2)
        east.patch("trafficsplits", "a", {"metadata": {"labels": {"failover": "no"}}}, "shop")
        # It is there, only not for this rule: another selector may still mean it.
        await heard.until(is_told(heard, "east/shop/TrafficSplit/a", lambda route: route.labels == {"failover": "no"}))
        east.delete("trafficsplits", "b", "shop")
        await heard.until(is_told(heard, "east/shop/TrafficSplit/b", lambda route: not route.exists))
    assert {route.name for route in heard.routes} == {"a", "b"}


async def test_a_route_that_has_left_its_selector_is_looked_for_until_it_can_be_seen(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(split("a", failover="yes"))
    async with running(route_inventory.run([wanted(None, selector="failover=yes")], world)):
        await heard.until(lambda: len(heard.routes) == 1)
        outage = east.faults.add(Fault(StatusFault(503), verb="get", count=2))
        east.delete("trafficsplits", "a", "shop")
        await heard.until(is_told(heard, "east/shop/TrafficSplit/a", lambda route: not route.exists))
        assert outage.hits == 2


async def test_one_malformed_route_among_a_hundred_disturbs_no_other(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        east.create(split(f"good{number}", failover="yes"))
    east.create(split("bad", primary=0.5, failover="yes"))
    async with running(route_inventory.run([wanted(None, selector="failover=yes")], world)):
        await heard.until(lambda: len(heard.routes) == 101)
    odd = [route for route in heard.routes if route.problem]
    assert [route.name for route in odd] == ["bad"]
    assert [record.message for record in caplog.records].count("a route cannot be used") == 1


async def test_two_rules_of_one_route_are_two_facts(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(http_route())
    selections = [wanted(kind="HTTPRoute"), wanted(kind="HTTPRoute", rule=0), wanted(kind="HTTPRoute", rule=5)]
    async with running(route_inventory.run(selections, world)):
        await heard.until(lambda: len(heard.routes) == 3)
    path = "east/shop/HTTPRoute/checkout"
    assert weights(last(heard, path)) == weights(last(heard, f"{path}#0")) == {"checkout": 1, "checkout-west": 0}
    missing = last(heard, f"{path}#5")
    assert missing is not None
    assert missing.problem == "there is no rule 5, the route has 1"


async def test_the_current_state_is_told_again(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_inventory, "REFRESH_SECONDS", 0.1)
    east.create(split())
    async with running(route_inventory.run([wanted()], world)):
        await heard.until(lambda: bool(heard.routes) and heard.routes[-1].observed_at > heard.routes[0].observed_at)
    first, again = heard.routes[0], heard.routes[-1]
    assert again.model_copy(update={"observed_at": first.observed_at}) == first


async def test_a_change_during_an_outage_is_told_afterwards(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(split())
    async with running(route_inventory.run([wanted()], world)):
        await heard.until(lambda: last(heard, CHECKOUT) is not None)
        east.cut_watches(CutWatch())
        east.compact()
        east.patch("trafficsplits", "checkout", split(primary=3), "shop")
        await heard.until(is_told(heard, CHECKOUT, lambda route: weights(route)["checkout"] == 3))


@pytest.mark.parametrize("why", ["no such kind", "no permission"])
async def test_where_routes_cannot_be_seen_nothing_is_told_until_they_can(
    world: SourceContext,
    heard: Heard,
    east: EmulatedCluster,
    running: Running,
    caplog: pytest.LogCaptureFixture,
    why: str,
) -> None:
    name = "trafficsplits.split.smi-spec.io"
    definition = east.get("customresourcedefinitions", name)
    forbidden = None
    if why == "no such kind":
        east.delete("customresourcedefinitions", name)
    else:
        forbidden = east.faults.add(Fault(Forbid(), resource="trafficsplits"))
    async with running(route_inventory.run([wanted()], world)):
        async with asyncio.timeout(60):
            while not any(record.levelno == logging.WARNING for record in caplog.records):
                await asyncio.sleep(0.01)
        assert heard.routes == []
        if forbidden is not None:
            forbidden.remove()
        else:
            for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
                definition["metadata"].pop(key, None)
            east.install(definition)
        east.create(split())
        await heard.until(is_told(heard, CHECKOUT, lambda route: route.exists))
    assert sum(record.levelno == logging.WARNING for record in caplog.records) == 1


async def test_the_version_that_the_cluster_serves_is_used(east: EmulatedCluster, clusters: Clusters) -> None:
    api = await clusters.get("east")
    assert await served(api, ROUTE_KINDS["TrafficSplit"]) == "/apis/split.smi-spec.io/v1alpha2"
    assert await served(api, ROUTE_KINDS["GRPCRoute"]) == "/apis/gateway.networking.k8s.io/v1"
    definition = east.get("customresourcedefinitions", "trafficsplits.split.smi-spec.io")
    old = [version for version in definition["spec"]["versions"] if version["name"] == "v1alpha1"]
    definition["metadata"] = {"name": "trafficsplits.split.smi-spec.io"}
    definition["spec"]["versions"] = [old[0] | {"storage": True}]
    east.install(definition)
    assert await served(api, ROUTE_KINDS["TrafficSplit"]) == "/apis/split.smi-spec.io/v1alpha1"
    east.delete("customresourcedefinitions", "httproutes.gateway.networking.k8s.io")
    with pytest.raises(NotFound, match=r"east: serves httproutes\.gateway\.networking\.k8s\.io in none of"):
        await served(api, ROUTE_KINDS["HTTPRoute"])


async def test_a_version_that_is_served_no_more_is_looked_for_again(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.clients.reflector.WATCH_SECONDS", 2.0)
    east.create(split())
    name = "trafficsplits.split.smi-spec.io"
    definition = east.get("customresourcedefinitions", name)
    async with running(route_inventory.run([wanted()], world)):
        await heard.until(is_told(heard, CHECKOUT, lambda route: route.exists))
        other = next(version for version in definition["spec"]["versions"] if version["name"] == "v1alpha2")
        definition["metadata"] = {"name": name}
        definition["spec"]["versions"] = [other | {"name": "v1alpha4", "storage": True}]
        east.install(definition)
        east.create(split(primary=7) | {"apiVersion": "split.smi-spec.io/v1alpha4"})
        await heard.until(is_told(heard, CHECKOUT, lambda route: weights(route).get("checkout") == 7))


def test_named_routes_of_one_namespace_share_a_watch() -> None:
    selections = [wanted("a"), wanted("b"), wanted("c", namespace="other"), wanted(None, selector="x=y")]
    found = route_inventory.scopes(selections)
    assert sorted((scope.namespace, scope.selector, len(group)) for scope, group in found.items()) == [
        ("other", "", 1), ("shop", "", 2), ("shop", "x=y", 1),
    ]  # fmt: skip

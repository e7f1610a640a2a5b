"""Readiness of Services, from a cluster that has its bad days."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bus.messages import Fact, Health
from reactor.demo.kube import CutWatch, EmulatedCluster, Fault, Forbid, JsonObject, Reset, StatusFault
from reactor.sources.kubernetes import endpoints_watch
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import EndpointsWatch
from tests.integration.sources.conftest import Heard, Repeats, Running

CHECKOUT = "service/east/shop/checkout"


def source(**more: Any) -> EndpointsWatch:
    return EndpointsWatch(name="readiness", kind="EndpointsWatch", cluster="east", **more)


def endpoints(*ready: bool) -> list[JsonObject]:
    return [{"addresses": [f"10.0.0.{n}"], "conditions": {"ready": flag}} for n, flag in enumerate(ready)]


def slice_(name: str, *ready: bool, service: str = "checkout", namespace: str = "shop", **labels: str) -> JsonObject:
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service, **labels}
        },
        "endpoints": endpoints(*ready),
    }  # fmt: skip


def service(name: str, namespace: str = "shop", **spec: Any) -> JsonObject:
    metadata = {"name": name, "namespace": namespace, "labels": {"team": "pay"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}


async def test_a_service_is_healthy_while_one_endpoint_is_ready(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(service("checkout"))
    east.create(slice_("checkout-1", True, False))
    async with running(endpoints_watch.run(source(), world)):
        said = await heard.status(CHECKOUT, Health.HEALTHY)
        assert said.detail == "1 of 2 endpoints ready"
        assert said.signal == "readiness"
        east.patch("endpointslices", "checkout-1", {"endpoints": endpoints(False, False)}, "shop")
        said = await heard.status(CHECKOUT, Health.UNHEALTHY)
        assert said.detail == "0 of 2 endpoints ready"
    assert heard.statuses(CHECKOUT) == [Health.HEALTHY, Health.UNHEALTHY]


async def test_how_many_are_ready_is_said_at_once_where_it_changes_by_five_points(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("checkout-1", *[True] * 25))
    async with running(endpoints_watch.run(source(), world)):
        assert (await heard.status(CHECKOUT, Health.HEALTHY)).healthy_percent == 100
        for ready in (24, 23):  # 96 and 92 %: the first is told with the next refresh only
            some = [*[True] * ready, *[False] * (25 - ready)]
            east.patch("endpointslices", "checkout-1", {"endpoints": endpoints(*some)}, "shop")
        await heard.until(lambda: heard.observations[-1].healthy_percent == 92)
    assert [one.healthy_percent for one in heard.observations if one.target == CHECKOUT] == [100, 92]


async def test_all_slices_of_a_service_count_together(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("a", False))
    east.create(slice_("b", False, True))
    async with running(endpoints_watch.run(source(), world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        east.delete("endpointslices", "b", "shop")
        await heard.status(CHECKOUT, Health.UNHEALTHY)
        east.delete("endpointslices", "a", "shop")
        await heard.until(lambda: len(heard.statuses(CHECKOUT)) == 2)


async def test_a_service_whose_slices_are_all_gone_is_unhealthy(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("a", True))
    east.create(service("other"))
    async with running(endpoints_watch.run(source(), world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        await heard.status("service/east/shop/other", Health.UNHEALTHY)  # so Services are listed by now
        east.delete("endpointslices", "a", "shop")
        said = await heard.status(CHECKOUT, Health.UNHEALTHY)
    assert said.detail == "the Service is gone"


async def test_a_service_that_never_had_an_endpoint_is_unhealthy(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(service("checkout"))
    east.create(service("elsewhere", type="ExternalName", externalName="example.com"))
    east.create(slice_("cart-1", True, service="cart"))
    async with running(endpoints_watch.run(source(), world)):
        said = await heard.status(CHECKOUT, Health.UNHEALTHY)
        await heard.status("service/east/shop/cart", Health.HEALTHY)
    assert said.detail == "0 of 0 endpoints ready"
    assert heard.last("service/east/shop/elsewhere") is None


async def test_as_many_endpoints_as_are_wanted_have_to_be_ready(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("a", True, True, False))
    async with running(endpoints_watch.run(source(min_ready=3), world)):
        said = await heard.status(CHECKOUT, Health.UNHEALTHY)
        assert said.detail == "2 of 3 endpoints ready, 3 wanted"
        east.patch("endpointslices", "a", {"endpoints": endpoints(True, True, True)}, "shop")
        await heard.status(CHECKOUT, Health.HEALTHY)


async def test_only_the_namespace_and_the_selector_that_are_asked_for_are_seen(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("a", True, app="shop"))
    east.create(slice_("b", True, service="other", app="other"))
    east.create(slice_("c", True, service="far", namespace="far", app="shop"))
    async with running(endpoints_watch.run(source(namespace="shop", selector="app=shop"), world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        east.patch("endpointslices", "a", {"endpoints": []}, "shop")
        await heard.status(CHECKOUT, Health.UNHEALTHY)
    assert {observation.target for observation in heard.observations} == {CHECKOUT}


async def test_a_template_may_use_the_labels_of_a_service(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(service("checkout"))
    east.create(slice_("a", True, team="pay"))
    east.create(slice_("b", True, service="nobodys"))
    async with running(endpoints_watch.run(source(target="custom/{team}/{service}"), world)):
        await heard.status("custom/pay/checkout", Health.HEALTHY)
    assert {observation.target for observation in heard.observations} == {"custom/pay/checkout"}


@pytest.mark.parametrize("team", ["risk", None], ids=["another team", "no team"])
async def test_a_target_that_a_changed_label_has_left_is_unknown(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, team: str | None
) -> None:
    east.create(service("checkout"))
    east.create(slice_("a", True, team="pay"))
    async with running(endpoints_watch.run(source(target="custom/team/{team}", refresh_seconds=1), world)):
        await heard.status("custom/team/pay", Health.HEALTHY)
        east.patch("services", "checkout", {"metadata": {"labels": {"team": team}}}, "shop")
        await heard.status("custom/team/pay", Health.UNKNOWN)
        if team:
            await heard.status("custom/team/risk", Health.HEALTHY)
        told = len(heard.observations)
        east.patch("endpointslices", "a", {"endpoints": endpoints(False)}, "shop")
        if team:
            await heard.status("custom/team/risk", Health.UNHEALTHY)
        east.create(service("other"))
        await heard.status("custom/team/pay", Health.UNHEALTHY)
        assert Health.HEALTHY not in [one.status for one in heard.observations[told:] if one.target.endswith("pay")]


async def test_of_several_services_of_one_target_the_worst_speaks(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("a", False, service="a", team="pay"))
    east.create(slice_("b", True, service="b", team="pay"))
    async with running(endpoints_watch.run(source(target="custom/team/{team}"), world)):
        await heard.status("custom/team/pay", Health.UNHEALTHY)
        east.patch("endpointslices", "a", {"endpoints": endpoints(True)}, "shop")
        await heard.status("custom/team/pay", Health.HEALTHY)
        east.patch("endpointslices", "b", {"endpoints": endpoints(False)}, "shop")
        await heard.status("custom/team/pay", Health.UNHEALTHY)
    assert heard.statuses("custom/team/pay") == [Health.UNHEALTHY, Health.HEALTHY, Health.UNHEALTHY]


async def test_nothing_is_said_before_the_whole_list_is_known(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(service("checkout"))
    east.create(slice_("a", True))
    outage = east.faults.add(Fault(StatusFault(503), resource="endpointslices"))
    async with running(endpoints_watch.run(source(), world)):
        async with asyncio.timeout(60):
            while outage.hits < 3:
                await asyncio.sleep(0.01)
        assert heard.observations == []
        outage.remove()
        await heard.status(CHECKOUT, Health.HEALTHY)
    assert heard.statuses(CHECKOUT) == [Health.HEALTHY]


async def test_without_the_permission_to_see_services_their_slices_still_speak(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.faults.add(Fault(Forbid(), resource="services"))
    east.create(slice_("a", True))
    async with running(endpoints_watch.run(source(), world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        east.delete("endpointslices", "a", "shop")
        await heard.status(CHECKOUT, Health.UNHEALTHY)


async def test_a_cut_watch_catches_up_without_a_word_in_between(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("a", True))
    async with running(endpoints_watch.run(source(), world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        east.cut_watches(CutWatch())
        east.compact()
        # A new slice first, then the old one away: what a relist tells as one difference is never half seen.
        east.create(slice_("b", True))
        east.delete("endpointslices", "a", "shop")
        east.create(slice_("other", True, service="cart"))
        await heard.status("service/east/shop/cart", Health.HEALTHY)
    assert heard.statuses(CHECKOUT) == [Health.HEALTHY]


async def test_a_lost_watch_is_silent_and_not_healthy(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, monkeypatch: pytest.MonkeyPatch,
    repeats: Repeats,
) -> None:  # fmt: skip
    monkeypatch.setattr("reactor.clients.reflector.GRACE_SECONDS", 0.3)
    monkeypatch.setattr("reactor.sources.republisher.TICKS_PER_PERIOD", 10)
    east.create(slice_("a", True))
    async with running(endpoints_watch.run(source(refresh_seconds=1), world)):
        await heard.until(lambda: len(heard.observations) >= 2)  # said again while the watch holds
        outage = east.faults.add(Fault(Reset()))
        east.cut_watches()
        await repeats.more(5)  # more than the grace
        told = len(heard.observations)
        await repeats.more(13)  # more than the period in which each is said again
        assert len(heard.observations) == told
        outage.remove()
        await heard.until(lambda: len(heard.observations) > told)


async def test_a_service_that_is_long_gone_is_forgotten(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.sources.kubernetes.endpoints_watch.GONE_SECONDS", 0.2)
    east.create(slice_("a", True))
    made = endpoints_watch.ServiceWatcher(source(), world, await world.clusters.get("east"))
    async with running(made.run()):
        await heard.status(CHECKOUT, Health.HEALTHY)
        east.delete("endpointslices", "a", "shop")
        await heard.status(CHECKOUT, Health.UNHEALTHY)
        async with asyncio.timeout(60):
            while made.publisher._standing.keys:
                await asyncio.sleep(0.01)


async def test_what_was_seen_in_one_look_is_dated_then_however_slowly_the_bus_takes_it(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    names = [f"shop-{number}" for number in range(5)]
    for name in names:
        east.create(slice_(f"{name}-1", True, service=name))

    async def slowly(fact: Fact) -> None:
        await asyncio.sleep(0.2)
        await heard.tell(fact)

    async with running(endpoints_watch.run(source(), replace(world, tell=slowly))):
        await heard.until(lambda: len(heard.observations) == len(names))
    dates = [observation.observed_at for observation in heard.observations]
    # One after the other it would take the bus 0.8 s from the first to the last.
    assert max(dates) - min(dates) < timedelta(seconds=0.2)

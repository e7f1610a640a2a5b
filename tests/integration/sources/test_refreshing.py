"""Sources that are asked how their targets are now, and what they prove by their answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from bus.messages import Fact, Health, Observation, RefreshRequest, WorkloadCopy
from bus.subjects import refresh
from bus.testing.memory import MemoryBus
from reactor.clients.clusters import Clusters
from reactor.clients.instant_queries import Sample
from reactor.clients.list_page import ListPage
from reactor.demo.kube import EmulatedCluster, FailWatch, Fault, JsonObject, Reset, StatusFault
from reactor.sources.kubernetes import endpoints_watch, lease_watch, node_watch, route_inventory, workload_watch
from reactor.sources.kubernetes.service_looks import ALONE_MAX, NAMES_MAX
from reactor.sources.prometheus import prometheus_query
from reactor.sources.refresh import RefreshRequests
from reactor.sources.source_context import SourceContext
from rules.kinds.traffic.model import RouteSelection
from rules.rulefile.sources import EndpointsWatch, LeaseWatch, NodeWatch, PrometheusQuery, WorkloadWatch
from tests.integration.sources.conftest import Heard, Running
from tests.integration.sources.test_endpoints_watch import CHECKOUT, slice_

CART = "service/east/shop/cart"


class Lists:
    """Counts the LISTs of a cluster, and empties them for as long as it is told to."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.empty = False
        self.paths: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def get_cluster(self, _: str) -> Any:
        return self

    async def page(self, path: str, query: Mapping[str, str]) -> ListPage:
        self.paths.append(path)
        page: ListPage = await self._api.page(path, query)
        return ListPage(json.dumps({"metadata": page.metadata, "items": []}).encode()) if self.empty else page

    def of(self, plural: str) -> int:
        return sum(path.endswith(plural) for path in self.paths)


class Counting:
    """The clusters, with LISTs counted."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    async def get(self, _: str) -> Any:
        return self._lists


@pytest.fixture
def bus(world: SourceContext) -> MemoryBus:
    return MemoryBus(world.clock.now)


@pytest.fixture
async def lists(clusters: Clusters) -> Lists:
    return Lists(await clusters.get("east"))


@pytest.fixture
def asked_world(world: SourceContext, bus: MemoryBus, lists: Lists) -> SourceContext:
    return replace(world, requests=RefreshRequests(bus, world.clock).hear, clusters=cast("Any", Counting(lists)))


async def ask(bus: MemoryBus, source: str, moment: datetime, *targets: str) -> None:
    await bus.notify(refresh(source), RefreshRequest(targets=targets, not_before=moment).model_dump_json().encode())


async def answer(heard: Heard, target: str, moment: datetime) -> Observation:
    def answered() -> bool:
        last = heard.last(target)
        return last is not None and last.observed_at >= moment

    await heard.until(answered)
    last = heard.last(target)
    assert last is not None
    return last


async def _watched(east: EmulatedCluster, watches: int) -> None:
    while len(east.watches) < watches:
        await asyncio.sleep(0.01)


def endpoints(**more: Any) -> EndpointsWatch:
    return EndpointsWatch(name="readiness", kind="EndpointsWatch", cluster="east", **more)


async def test_a_watch_that_has_just_heard_an_event_answers_from_its_copy(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    east.bookmark_seconds = 60
    east.create(slice_("a", True))
    east.create(slice_("b", True, service="cart"))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        standing = await heard.status(CART, Health.HEALTHY)
        east.patch("endpointslices", "a", {"endpoints": []}, "shop")
        bad = await heard.status(CHECKOUT, Health.UNHEALTHY)
        before = lists.of("endpointslices")
        await ask(bus, "readiness", bad.observed_at, CART)
        good = await answer(heard, CART, bad.observed_at)
        assert (good.observed_at, good.since, good.status) == (bad.observed_at, standing.since, Health.HEALTHY)
        assert lists.of("endpointslices") == before


async def test_an_event_that_comes_late_answers_for_no_other_service(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    """The watches of a server may be seconds behind what it has stored."""
    east.create(slice_("a", True))
    east.create(slice_("b", False, service="cart"))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        await heard.status(CART, Health.UNHEALTHY)
        await heard.status(CHECKOUT, Health.HEALTHY)
        await _watched(east, 2)
        east.watch_lag = 0.2
        east.patch("endpointslices", "a", {"endpoints": []}, "shop")
        east.watch_lag = 60
        east.patch("endpointslices", "b", {"endpoints": [{"addresses": ["10.0.0.1"]}]}, "shop")
        moment = asked_world.clock.now()
        assert (await heard.status(CHECKOUT, Health.UNHEALTHY)).observed_at > moment
        await ask(bus, "readiness", moment, CART)
        assert (await answer(heard, CART, moment)).status is Health.HEALTHY


async def test_who_asks_from_the_moment_of_a_recovery_is_answered_by_the_server(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    """A rule with a window that has waited for a secondary: its primary may have recovered, unknown to a late watch."""
    east.create(slice_("a", False))
    east.create(slice_("b", False, service="cart"))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        await heard.status(CART, Health.UNHEALTHY)
        await heard.status(CHECKOUT, Health.UNHEALTHY)
        await _watched(east, 2)
        east.watch_lag = 0.2
        east.patch("endpointslices", "a", {"endpoints": [{"addresses": ["10.0.0.1"]}]}, "shop")
        east.watch_lag = 60
        east.patch("endpointslices", "b", {"endpoints": [{"addresses": ["10.0.0.2"]}]}, "shop")
        moment = (await heard.status(CHECKOUT, Health.HEALTHY)).observed_at
        await ask(bus, "readiness", moment, CART)
        assert (await answer(heard, CART, moment)).status is Health.HEALTHY


async def test_an_event_that_changes_no_health_does_not_prove_it(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    east.create(slice_("a", False))
    async with running(endpoints_watch.run(endpoints(refresh_seconds=1), asked_world)):
        bad = await heard.status(CHECKOUT, Health.UNHEALTHY)
        await _watched(east, 2)
        east.patch("endpointslices", "a", {"metadata": {"annotations": {"seen": "late"}}}, "shop")
        await heard.until(lambda: heard.observations[-1].version != bad.version)
    said = heard.observations[-1]
    assert said.valid_seconds is not None
    assert said.observed_at + timedelta(seconds=said.valid_seconds) == bad.observed_at


async def test_a_quiet_watch_answers_all_requests_of_a_moment_by_one_list(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    east.bookmark_seconds = 60
    targets = [f"service/east/shop/s{number}" for number in range(ALONE_MAX + 1)]
    for number in range(ALONE_MAX + 1):
        east.create(slice_(f"s{number}-1", True, service=f"s{number}"))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        for target in targets:
            first = await heard.status(target, Health.HEALTHY)
        before, moment = lists.of("endpointslices"), asked_world.clock.now()
        for target in targets:
            await ask(bus, "readiness", moment, target)
        answers = [await answer(heard, target, moment) for target in targets]
        assert lists.paths[-1] == "/apis/discovery.k8s.io/v1/endpointslices"
        assert lists.of("endpointslices") == before + 1
    assert {one.since for one in answers} == {first.since}
    assert len({one.observed_at for one in answers}) == 1
    assert len({one.version for one in answers}) == len(targets)


async def test_a_quiet_watch_reads_few_services_alone(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    east.bookmark_seconds = 60
    east.create(slice_("a", True, team="pay"))
    east.create(slice_("b", False, service="cart", team="pay"))
    async with running(endpoints_watch.run(endpoints(selector="team=pay"), asked_world)):
        standing = await heard.status(CART, Health.UNHEALTHY)
        await heard.status(CHECKOUT, Health.HEALTHY)
        lists.paths.clear()
        moment = asked_world.clock.now()
        await ask(bus, "readiness", moment, CART, CHECKOUT)
        answers = [await answer(heard, target, moment) for target in (CART, CHECKOUT)]
    assert [one.status for one in answers] == [Health.UNHEALTHY, Health.HEALTHY]
    assert answers[0].since == standing.since
    assert lists.paths == ["/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"]


async def test_many_services_are_read_alone_by_names_that_fit_into_an_address(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    east.bookmark_seconds = 60
    targets = [f"service/east/shop/s{number}" for number in range(NAMES_MAX + 1)]
    for number in range(NAMES_MAX + 1):
        east.create(slice_(f"s{number}-1", True, service=f"s{number}"))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        for target in targets:
            await heard.status(target, Health.HEALTHY)
        lists.paths.clear()
        moment = asked_world.clock.now()
        await ask(bus, "readiness", moment, *targets)
        answers = [await answer(heard, target, moment) for target in targets]
    assert lists.paths == ["/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"] * 2
    assert {one.status for one in answers} == {Health.HEALTHY}


async def test_what_is_otherwise_than_the_watch_has_shown_is_listed(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    east.bookmark_seconds = 60
    east.create(slice_("a", True))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        east.watch_lag = 60
        lists.paths.clear()
        east.patch("endpointslices", "a", {"endpoints": []}, "shop")
        await ask(bus, "readiness", asked_world.clock.now(), CHECKOUT)
        await heard.status(CHECKOUT, Health.UNHEALTHY)
    assert lists.paths[:2] == [
        "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices",
        "/apis/discovery.k8s.io/v1/endpointslices",
    ]


async def test_a_service_that_is_not_answered_for_alone_is_listed_with_all(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    east.bookmark_seconds = 60
    east.create(slice_("a", True))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        east.faults.add(Fault(Reset(), verb="list", resource="endpointslices", namespace="shop"))
        moment = asked_world.clock.now()
        await ask(bus, "readiness", moment, CHECKOUT)
        assert (await answer(heard, CHECKOUT, moment)).status is Health.HEALTHY


async def test_what_was_not_watched_restarts_if_it_changed_and_goes_on_if_not(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(slice_("a", False))
    east.create(slice_("b", False, service="cart"))
    async with running(endpoints_watch.run(endpoints(refresh_seconds=1), asked_world)):
        first = {target: await heard.status(target, Health.UNHEALTHY) for target in (CHECKOUT, CART)}
        assert all(one.since == one.observed_at and one.source == "readiness" for one in first.values())
        outage = east.faults.add(Fault(Reset()))
        east.cut_watches()
        while east.watches:
            await asyncio.sleep(0.01)
        back = asked_world.clock.now()
        east.patch("endpointslices", "a", {"endpoints": [{"addresses": ["10.0.0.1"]}]}, "shop")
        east.patch("endpointslices", "a", {"endpoints": []}, "shop")
        east.compact()
        outage.remove()
        said = await answer(heard, CHECKOUT, back)
        same = await answer(heard, CART, back)
    assert said.since is not None
    assert said.since >= back
    assert said.version != first[CHECKOUT].version
    assert (same.since, same.version) == (first[CART].since, first[CART].version)


async def test_a_request_while_the_server_is_away_is_answered_when_it_is_back(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    east.create(slice_("a", True))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        await heard.status(CHECKOUT, Health.HEALTHY)
        outage = east.faults.add(Fault(Reset()))
        east.cut_watches()
        moment = asked_world.clock.now()
        await ask(bus, "readiness", moment, CHECKOUT)
        before = outage.hits
        async with asyncio.timeout(60):
            while outage.hits < before + 3:  # it is asked again and again, and answers nothing
                await asyncio.sleep(0.01)
        assert len(heard.observations) == 1
        outage.remove()
        await answer(heard, CHECKOUT, moment)


async def test_a_request_for_what_a_doubtful_list_lacks_is_told_how_it_was_and_that_it_is_in_doubt(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    east.bookmark_seconds = 60
    for number in range(3):
        east.create(slice_(f"s{number}-1", True, service=f"s{number}"))
    async with running(endpoints_watch.run(endpoints(), asked_world)):
        await heard.until(lambda: len(heard.observations) == 3)
        lists.empty = True
        async with asyncio.timeout(60):
            while not any(one.doubted for one in heard.observations):  # asked again until it answers, as by a decider
                await ask(bus, "readiness", asked_world.clock.now(), "service/east/shop/s0")
                await asyncio.sleep(0.1)
        assert lists.of("endpointslices") >= 2
        doubted = [one for one in heard.observations if one.doubted]
        assert {(one.target, one.status) for one in doubted} == {("service/east/shop/s0", Health.HEALTHY)}
        assert all(one.valid_seconds is not None and one.valid_seconds < 0 for one in doubted)
        assert len(heard.observations) == 3 + len(doubted)
        # There with nothing ready is believed at once, and so is what the watch says is gone.
        east.patch("endpointslices", "s1-1", {"endpoints": []}, "shop")
        await heard.status("service/east/shop/s1", Health.UNHEALTHY)
        east.delete("endpointslices", "s2-1", "shop")
        await heard.status("service/east/shop/s2", Health.UNHEALTHY)
        lists.empty, moment = False, asked_world.clock.now()
        await ask(bus, "readiness", moment, "service/east/shop/s0")
        await answer(heard, "service/east/shop/s0", moment)
    assert heard.statuses("service/east/shop/s0") == [Health.HEALTHY]


async def test_an_empty_list_makes_no_routes_vanish(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, lists: Lists
) -> None:

    def create(name: str) -> None:
        east.create(
            {
                "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
                "metadata": {"name": name, "namespace": "shop"},
                "spec": {"service": name, "backends": [{"service": f"{name}-east", "weight": 1}]},
            }
        )  # fmt: skip

    create("a")
    create("b")
    wanted = [RouteSelection(cluster="east", kind="TrafficSplit", namespace="shop", name=name) for name in ("a", "b")]
    async with running(route_inventory.run(wanted, asked_world)):
        await heard.until(lambda: len(heard.routes) == 2)
        lists.empty = True
        while not east.watches:
            await asyncio.sleep(0.01)
        before = lists.of("trafficsplits")
        east.cut_watches(FailWatch(410))
        async with asyncio.timeout(60):
            while lists.of("trafficsplits") < before + 2:  # what the first of them lacked has been looked at
                await asyncio.sleep(0.01)
    assert all(route.exists for route in heard.routes)


def node(name: str, zone: str = "z1", ready: str = "True") -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }  # fmt: skip


async def test_nodes_and_their_zone_are_confirmed(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    east.bookmark_seconds = 60
    for number in range(3):
        east.create(node(f"n{number}"))
    source = NodeWatch(name="nodes", kind="NodeWatch", cluster="east")
    async with running(node_watch.run(source, asked_world)):
        await heard.status("zone/east/z1", Health.HEALTHY)
        await heard.status("node/east/n0", Health.HEALTHY)
        moment = asked_world.clock.now()
        await ask(bus, "nodes", moment, "zone/east/z1", "node/east/n0")
        zone, first = await answer(heard, "zone/east/z1", moment), await answer(heard, "node/east/n0", moment)
    assert zone.source == first.source == "nodes"
    assert zone.version
    assert first.version
    assert zone.version != first.version


async def test_an_event_that_comes_late_answers_for_no_other_zone(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    east.create(node("n1"))
    east.create(node("n2", "z2", "False"))
    source = NodeWatch(name="nodes", kind="NodeWatch", cluster="east")
    async with running(node_watch.run(source, asked_world)):
        await heard.status("zone/east/z2", Health.UNHEALTHY)
        await heard.status("zone/east/z1", Health.HEALTHY)
        await _watched(east, 4)
        east.watch_lag = 0.2
        east.set_condition("nodes", "n1", kind="Ready", status="False")
        east.watch_lag = 60
        east.set_condition("nodes", "n2", kind="Ready", status="True")
        moment = asked_world.clock.now()
        assert (await heard.status("zone/east/z1", Health.UNHEALTHY)).observed_at > moment
        await ask(bus, "nodes", moment, "zone/east/z2")
        assert (await answer(heard, "zone/east/z2", moment)).status is Health.HEALTHY


async def test_a_zone_that_changed_while_a_list_was_doubted_is_told_after_the_next_one(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus, lists: Lists
) -> None:
    for name in ("n1", "n2"):
        east.create(node(name, ready="False"))
    source = NodeWatch(name="nodes", kind="NodeWatch", cluster="east")
    async with running(node_watch.run(source, asked_world)):
        await heard.status("zone/east/z1", Health.UNHEALTHY)
        lists.empty = True
        async with asyncio.timeout(60):
            while not any(one.doubted for one in heard.observations):
                await ask(bus, "nodes", asked_world.clock.now(), "node/east/n2")
                await asyncio.sleep(0.1)
        east.set_condition("nodes", "n1", kind="Ready", status="True")
        await heard.status("node/east/n1", Health.HEALTHY)
        lists.empty = False
        await ask(bus, "nodes", asked_world.clock.now(), "node/east/n2")
        await heard.status("zone/east/z1", Health.HEALTHY)


async def test_workloads_are_confirmed(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    east.bookmark_seconds = 60
    east.create(
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
    )  # fmt: skip
    target = "workload/east/shop/Pod/web"
    source = WorkloadWatch(name="workloads", kind="WorkloadWatch", cluster="east", kinds=("Pod", "Deployment"))
    async with running(workload_watch.run(source, asked_world)):
        first = await heard.status(target, Health.HEALTHY)
        moment = asked_world.clock.now()
        await ask(bus, "workloads", moment, target)
        said = await answer(heard, target, moment)
    assert (said.since, said.version, said.source) == (first.since, first.version, "workloads")
    assert said.version


def _gone(fact: Fact) -> bool:
    return isinstance(fact, WorkloadCopy) and (fact.name, fact.exists) == ("old", False)


def _pod(name: str) -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "web", "image": "web"}]}, "status": {"phase": "Running"},
    }  # fmt: skip


async def test_a_copy_that_was_removed_while_nothing_watched_is_said_to_be_gone_when_it_is_asked_for(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    """Else a decider counts with it, and may take a copy from where it is for one too many."""
    east.create(_pod("web"))
    source = WorkloadWatch(name="workloads", kind="WorkloadWatch", cluster="east", kinds=("Pod",))
    async with running(workload_watch.run(source, asked_world)):
        await heard.heard(lambda fact: isinstance(fact, WorkloadCopy) and fact.name == "web")
        moment = asked_world.clock.now()
        await ask(bus, "workloads", moment, "workload/east/shop/Pod/old")
        await heard.heard(_gone)
        said = await answer(heard, "workload/east/shop/Pod/old", moment)
    assert (said.status, said.gone) == (Health.UNKNOWN, True)


async def test_only_an_answer_that_there_is_none_says_that_a_copy_is_gone(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, bus: MemoryBus
) -> None:
    east.create(_pod("web"))
    source = WorkloadWatch(name="workloads", kind="WorkloadWatch", cluster="east", kinds=("Pod",), namespace="shop")
    elsewhere = ("workload/west/shop/Pod/old", "workload/east/bank/Pod/old", "workload/east/shop/Deployment/old")
    async with running(workload_watch.run(source, asked_world)):
        await heard.heard(lambda fact: isinstance(fact, WorkloadCopy) and fact.name == "web")
        away = east.faults.add(Fault(StatusFault(503), verb="get", resource="pods"))
        moment = asked_world.clock.now()
        await ask(bus, "workloads", moment, "workload/east/shop/Pod/old", *elsewhere)
        while not away.hits:
            await asyncio.sleep(0.01)
        east.watch_lag = 60
        east.create(_pod("new"))  # the watch has not shown it yet
        away.remove()
        await ask(bus, "workloads", moment, "workload/east/shop/Pod/new", "workload/east/shop/Pod/web")
        await answer(heard, "workload/east/shop/Pod/web", moment)
        assert not any(isinstance(fact, WorkloadCopy) and not fact.exists for fact in heard.inventory)
        await ask(bus, "workloads", moment, "workload/east/shop/Pod/old")
        await heard.heard(_gone)
    assert [fact.name for fact in heard.inventory if isinstance(fact, WorkloadCopy) and not fact.exists] == ["old"]


async def test_heartbeats_prove_themselves_and_bridge_less_than_the_grace(
    asked_world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "m1", "namespace": "karmada-cluster"},
        "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"},
    }  # fmt: skip
    east.create(lease)
    source = LeaseWatch(name="beats", kind="LeaseWatch", cluster="east", grace_seconds=7)
    async with running(lease_watch.run(source, asked_world)):
        while not east.watches:
            await asyncio.sleep(0.01)
        renewed = {"spec": {"renewTime": "2026-01-01T00:00:01.000000Z"}}
        east.patch("leases", "m1", renewed, "karmada-cluster")
        said = await heard.status("cluster/m1", Health.HEALTHY)
    assert (said.source, said.version, said.resolution_seconds) == ("beats", "", 7)


class Prometheus:
    """Answers with what is put in, and counts how often."""

    def __init__(self) -> None:
        self.queries = 0
        self.answer: list[Sample] = []

    async def query(self, promql: str, *, at: datetime | None = None) -> list[Sample]:  # noqa: ARG002 - the port's
        self.queries += 1
        return self.answer


async def test_a_query_that_is_asked_is_made_once_more(
    asked_world: SourceContext, heard: Heard, running: Running, bus: MemoryBus
) -> None:
    prometheus = Prometheus()
    source = PrometheusQuery(
        name="errors", kind="PrometheusQuery", prometheus="main", query="up == 0", target=CHECKOUT, every_seconds=600
    )
    world = replace(asked_world, prometheus={"main": prometheus})
    async with running(prometheus_query.run(source, world)):
        first = await heard.status(CHECKOUT, Health.HEALTHY)
        moment = world.clock.now()
        await ask(bus, "errors", moment, CHECKOUT)
        said = await answer(heard, CHECKOUT, moment)
    assert (said.since, prometheus.queries) == (first.since, 2)
    assert said.resolution_seconds == 630


async def test_an_answer_out_of_a_cache_answers_no_request(
    asked_world: SourceContext, heard: Heard, running: Running, bus: MemoryBus
) -> None:
    """A query frontend that kept its answer confirmed failures that were over: windows ended on it."""
    prometheus = Prometheus()
    source = PrometheusQuery(
        name="errors", kind="PrometheusQuery", prometheus="main", query="up == 0", target=CHECKOUT, every_seconds=600
    )
    world = replace(asked_world, prometheus={"main": prometheus})
    prometheus.answer = [Sample({}, 1, world.clock.now().timestamp())]
    async with running(prometheus_query.run(source, world)):
        first = await heard.status(CHECKOUT, Health.UNHEALTHY)
        await ask(bus, "errors", world.clock.now(), CHECKOUT)
        async with asyncio.timeout(60):
            while prometheus.queries < 2:
                await asyncio.sleep(0.01)
        moment = world.clock.now()
        prometheus.answer = [Sample({}, 1, moment.timestamp())]
        await ask(bus, "errors", moment, CHECKOUT)
        await answer(heard, CHECKOUT, moment)
    assert [said for said in heard.observations if first.observed_at < said.observed_at < moment] == []

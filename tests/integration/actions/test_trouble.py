"""Clusters that refuse, fail, hang and lie, and actions that do not fit the world."""

from __future__ import annotations

import pytest

from bus.messages import RouteRef
from reactor.actions.traffic.route_weights import carry_out
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import (
    Delay,
    EmulatedCluster,
    Emulator,
    Fault,
    Forbid,
    Hang,
    Html,
    LoseAnswer,
    Reset,
    StatusFault,
)
from reactor.demo.kube.faults import FaultEffect
from reactor.runtime.clock import Clock
from tests.integration.actions.conftest import Connect
from tests.integration.actions.meddling import Overruled
from tests.integration.actions.scene import FAILOVER, STANDS, our_writes, standing
from tests.unit.actions.builders import http_route, refs, route, set_weights, split


@pytest.mark.parametrize(
    ("effect", "verb", "reason"),
    [
        pytest.param(Forbid(), "get", "Forbidden", id="may not read"),
        pytest.param(Forbid(), "patch", "Forbidden", id="may not write"),
        pytest.param(StatusFault(422), "patch", "Invalid", id="rejected"),
        pytest.param(StatusFault(500), "patch", "ApiUnavailable", id="500"),
        pytest.param(StatusFault(503), "get", "ApiUnavailable", id="503"),
        pytest.param(Html(502), "patch", "ApiUnavailable", id="a proxy's page"),
        pytest.param(Reset(), "get", "ApiUnavailable", id="reset"),
        pytest.param(StatusFault(429, retry_after=30), "patch", "ApiUnavailable", id="sent away for 30 s"),
        pytest.param(StatusFault(409), "patch", "Conflict", id="always somebody quicker"),
    ],
)
async def test_a_refusal_is_reported_and_no_event_claims_success(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi, effect: FaultEffect, verb: str, reason: str
) -> None:
    east.create(split(STANDS))
    east.faults.add(Fault(effect, verb=verb, resource="trafficsplits"))
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", reason, False)
    assert (our_writes(emulator), east.list("events", "shop")) == (0, [])


async def test_a_missing_permission_names_what_to_grant(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    east.faults.add(Fault(Forbid(), verb="patch"))
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert "'patch'" in outcome.detail
    assert "'trafficsplits'" in outcome.detail


async def test_a_server_that_says_no_for_good_is_asked_once(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    forbidden = east.faults.add(Fault(Forbid(), verb="patch"))
    await carry_out(api, set_weights(FAILOVER), Clock())
    assert forbidden.hits == 1


async def test_a_server_that_stays_busy_is_asked_five_times(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    busy = east.faults.add(Fault(StatusFault(503), verb="patch"))
    await carry_out(api, set_weights(FAILOVER), Clock())
    assert busy.hits == 5


@pytest.mark.parametrize(
    "effect", [StatusFault(409), StatusFault(503), StatusFault(429, retry_after=0), Reset(), Html(502)]
)
async def test_trouble_that_passes_is_waited_for(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi, effect: FaultEffect
) -> None:
    east.create(split(STANDS))
    east.faults.add(Fault(effect, verb="patch", resource="trafficsplits", count=2))
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.wrote, our_writes(emulator)) == ("Done", True, 1)


async def test_a_route_that_is_gone_is_said_to_be(east: EmulatedCluster, api: KubeApi) -> None:
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.reason) == ("Failed", "RouteNotFound")


async def test_a_cluster_without_the_kind_says_so(emulator: Emulator, connected: Connect) -> None:
    emulator.cluster("bare", crds=[])
    outcome = await carry_out(await connected("bare"), set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.reason) == ("Failed", "RouteNotFound")
    assert "trafficsplits.split.smi-spec.io" in outcome.detail


async def test_a_name_with_a_slash_leads_to_no_other_object(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    outcome = await carry_out(api, set_weights(FAILOVER, route(name="x/../checkout")), Clock())
    assert (outcome.status, standing(east)) == ("Failed", STANDS)


async def test_a_write_whose_answer_is_lost_is_found_done(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(split(STANDS))
    east.faults.add(Fault(LoseAnswer(), verb="patch", resource="trafficsplits", count=1))
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.wrote, outcome.detail) == ("Done", True, "p 1→0, s 0→1")
    assert (our_writes(emulator), len(east.list("events", "shop"))) == (1, 1)


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_a_server_that_hangs_is_given_up(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    east.create(split(STANDS))
    hang = east.faults.add(Fault(Hang(), verb=verb, resource="trafficsplits"))
    with monkeypatch.context() as impatient:
        impatient.setattr("reactor.actions.conditional_write.SETTLE_SECONDS", 0.5)
        outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.reason, our_writes(emulator)) == ("Failed", "ApiUnavailable", 0)
    hang.remove()
    assert (await carry_out(api, set_weights(FAILOVER), Clock())).wrote


async def test_a_write_that_took_effect_after_we_gave_up_is_not_doubled(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    east.create(split(STANDS))
    east.faults.add(Fault(Delay(5, answered_late=True), verb="patch", resource="trafficsplits", count=1))
    with monkeypatch.context() as impatient:
        impatient.setattr("reactor.actions.conditional_write.SETTLE_SECONDS", 3.0)
        first = await carry_out(api, set_weights(FAILOVER), Clock())
    again = await carry_out(api, set_weights(FAILOVER), Clock())
    assert [(first.status, first.wrote), (again.status, again.wrote)] == [("Failed", False), ("Done", False)]
    assert our_writes(emulator) == 1


async def test_a_write_that_the_cluster_changes_is_not_called_done(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))

    async def overrule() -> None:
        weights = [{"op": "replace", "path": "/spec/backends/1/weight", "value": 3}]
        east.patch("trafficsplits", "checkout", weights, "shop", manager="webhook")

    outcome = await carry_out(Overruled(api, after_write=overrule), set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.reason, east.list("events", "shop")) == ("Failed", "NotAsAsked", [])


@pytest.mark.parametrize(
    ("weights", "status", "reason"),
    [({"p": 0, "s": 0}, "Refused", "AllZero"), ({"p": 0, "ghost": 1}, "Failed", "BackendMissing")],
)
async def test_what_does_not_fit_the_route_writes_nothing(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi, weights: dict[str, int], status: str, reason: str
) -> None:
    east.create(http_route(refs(STANDS)))
    emulator.writes.clear()
    outcome = await carry_out(api, set_weights(weights, route("HTTPRoute")), Clock())
    assert (outcome.status, outcome.reason, len(emulator.writes)) == (status, reason, 0)


async def test_a_dry_run_touches_nothing(emulator: Emulator, east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    calls = east.faults.add(Fault(Delay(0)))
    outcome = await carry_out(api, set_weights(FAILOVER, mode="DryRun"), Clock())
    assert (outcome.status, outcome.reason, calls.hits) == ("Refused", "DryRun", 0)


async def test_a_kind_of_route_that_the_settings_lack_is_told_and_nothing_is_asked(api: KubeApi) -> None:
    ref = RouteRef(cluster="east", kind="Custom", custom_kind="Pool", namespace="shop", name="checkout")
    outcome = await carry_out(api, set_weights(FAILOVER, ref), Clock())
    assert (outcome.status, outcome.reason) == ("Failed", "UnknownRouteKind")
    assert outcome.detail == "routeKinds.Pool: a rule names this kind of route, the settings do not"

"""Requests that a cluster gets from us: each write's method, type, preconditions, and the Event after it."""

from __future__ import annotations

import pytest

from reactor.actions.traffic.route_weights import carry_out
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator, Fault, Hang, StatusFault
from reactor.runtime.clock import Clock
from reactor.runtime.telemetry import REGISTRY
from tests.integration.actions.conftest import Connect
from tests.integration.actions.scene import FAILOVER, STANDS
from tests.unit.actions.builders import RouteKind, http_route, refs, route, set_weights, split, weights_of


async def test_weights_move_by_one_conditional_json_patch(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    version = east.create(split(STANDS))["metadata"]["resourceVersion"]
    outcome = await carry_out(api, set_weights(FAILOVER, remember={"p": 1, "s": 0}), Clock())

    assert (outcome.status, outcome.wrote, outcome.detail) == ("Done", True, "p 1→0, s 0→1")
    [write] = emulator.writes.effective("trafficsplits", manager="alert-reactor")
    assert (write.verb, write.patch_type, write.before) == ("patch", "application/json-patch+json", version)
    assert write.body == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "test", "path": "/spec/backends/0/service", "value": "p"},
        {"op": "replace", "path": "/spec/backends/0/weight", "value": 0},
        {"op": "test", "path": "/spec/backends/1/service", "value": "s"},
        {"op": "replace", "path": "/spec/backends/1/weight", "value": 1},
        {
            "op": "add",
            "path": "/metadata/annotations",
            "value": {
                "reactor/decision": "checkout/east/shop/TrafficSplit/checkout/1",
                "reactor/epoch": "1",
                "reactor/healthy-weights": '{"p":1,"s":0}',
            },
        },
    ]


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute"])
async def test_gateway_routes_move(east: EmulatedCluster, api: KubeApi, kind: RouteKind) -> None:
    east.create(http_route(refs(STANDS), kind=kind))
    outcome = await carry_out(api, set_weights(FAILOVER, route(kind)), Clock())
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert weights_of(east.get(f"{kind.lower()}s", "checkout", "shop")) == [("p", 0), ("s", 1)]


async def test_a_route_that_already_has_the_weights_is_not_written(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(split([("p", 0), ("s", 1)]))
    emulator.writes.clear()
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.wrote, len(emulator.writes)) == ("Done", False, 0)


async def test_repeats_of_a_decision_write_once(emulator: Emulator, east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    wrote = [(await carry_out(api, set_weights(FAILOVER), Clock())).wrote for _ in range(3)]
    assert wrote == [True, False, False]
    assert len(emulator.writes.effective("trafficsplits", manager="alert-reactor")) == 1
    assert len(east.list("events", "shop")) == 1


async def test_the_event_says_what_moved_and_why(east: EmulatedCluster, api: KubeApi) -> None:
    stands = east.create(split(STANDS))
    action = set_weights(FAILOVER, detail="p: Unhealthy (HTTP 503)")
    await carry_out(api, action, Clock(), instance="reactor-7")
    [event] = east.list("events.events.k8s.io", "shop")
    assert event["reason"] == "Failover"
    assert event["type"] == "Normal"
    assert (event["reportingController"], event["reportingInstance"]) == ("alert-reactor", "reactor-7")
    assert event["note"] == (
        "p 1→0, s 0→1: PrimaryUnhealthy: p: Unhealthy (HTTP 503) (decision checkout/east/shop/TrafficSplit/checkout/1)"
    )
    assert event["regarding"]["uid"] == stands["metadata"]["uid"]


@pytest.mark.parametrize(
    ("because", "reason"),
    [("PrimaryHealthy", "Failback"), ("Returning", "Failback"), ("AllDown", "AllDown"), ("Drift", "Drift")],
)
async def test_the_events_reason_follows_the_rules(
    east: EmulatedCluster, api: KubeApi, because: str, reason: str
) -> None:
    east.create(split(STANDS))
    await carry_out(api, set_weights(FAILOVER, because=because), Clock())
    assert [event["reason"] for event in east.list("events", "shop")] == [reason]


async def test_a_long_story_is_cut_to_what_an_event_takes(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    await carry_out(api, set_weights(FAILOVER, detail="é" * 4000), Clock())
    [event] = east.list("events", "shop")
    assert 1020 <= len(event["message"].encode()) <= 1024


async def test_an_older_cluster_gets_a_core_event(east: EmulatedCluster, api: KubeApi) -> None:
    east.faults.add(Fault(StatusFault(404), verb="create", resource="events.events.k8s.io"))
    east.create(split(STANDS))
    await carry_out(api, set_weights(FAILOVER), Clock())
    [event] = east.list("events", "shop")
    assert (event["reason"], event["source"]["component"], event["count"]) == ("Failover", "alert-reactor", 1)


@pytest.mark.parametrize("effect", [StatusFault(403), StatusFault(500), Hang()])
async def test_an_event_that_cannot_be_written_fails_nothing(
    east: EmulatedCluster, api: KubeApi, effect: StatusFault | Hang, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.actions.events.EVENT_SECONDS", 0.2)
    before = _event_failures()
    east.create(split(STANDS))
    east.faults.add(Fault(effect, verb="create", resource="events.events.k8s.io"))
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.wrote, _event_failures() - before) == ("Done", True, 1)


def _event_failures() -> float:
    reasons = ("Forbidden", "ApiUnavailable")
    name = "reactor_kubernetes_event_failures_total"
    return sum(REGISTRY.get_sample_value(name, {"reason": reason}) or 0 for reason in reasons)


@pytest.mark.parametrize(
    ("served", "expected"),
    [(["v1alpha1"], "v1alpha1"), (["v1alpha1", "v1alpha2"], "v1alpha2"), (["v1alpha4"], "v1alpha4")],
)
async def test_the_version_that_the_cluster_serves_is_used(
    emulator: Emulator, east: EmulatedCluster, connected: Connect, served: list[str], expected: str
) -> None:
    west = emulator.cluster("west", crds=[_split_crd(east, served)])
    west.create(split(STANDS, version=served[0]))
    outcome = await carry_out(await connected("west"), set_weights(FAILOVER), Clock())
    assert outcome.status == "Done"
    [event] = west.list("events.events.k8s.io", "shop")
    assert event["regarding"]["apiVersion"] == f"split.smi-spec.io/{expected}"


async def test_a_version_that_goes_away_is_noticed(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    await carry_out(api, set_weights(FAILOVER), Clock())
    east.install(_split_crd(east, ["v1alpha4"]))
    east.create(split([("p", 0), ("s", 1)], version="v1alpha4"))
    outcome = await carry_out(api, set_weights({"p": 1, "s": 0}, generation=2), Clock())
    assert (outcome.status, outcome.wrote) == ("Done", True)


async def test_quantity_weights_become_integers(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split([("p", "500m"), ("s", "500m")], version="v1alpha1"))
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.detail) == ("Done", "p 500m→0, s 500m→1")
    assert weights_of(east.get("trafficsplits", "checkout", "shop")) == [("p", 0), ("s", 1)]


def _split_crd(east: EmulatedCluster, versions: list[str]) -> JsonObject:
    """The kind in these versions, all with v1alpha1's schema; the first one is stored."""
    spec = east.get("customresourcedefinitions", "trafficsplits.split.smi-spec.io")["spec"]
    [template] = [version for version in spec["versions"] if version["name"] == "v1alpha1"]
    listed = [{**template, "name": name, "storage": name == versions[0]} for name in versions]
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "trafficsplits.split.smi-spec.io"}, "spec": {**spec, "versions": listed},
    }  # fmt: skip

"""Nodes, their zones, and what a cluster needs of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health
from reactor.clients.object_fields import MalformedField
from reactor.clients.quantities import quantity
from reactor.sources.kubernetes import node_health, pod_requests, service_zones
from reactor.sources.kubernetes.node_health import Node, Tally, node_of, tally, verdict_of, zone_verdict
from reactor.sources.kubernetes.pod_requests import demand, quorum_members, requests
from reactor.sources.kubernetes.service_zones import single_zone_services

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
ZONE = "topology.kubernetes.io/zone"
CASES = json.loads((Path(__file__).parents[1] / "data/cluster_health.json").read_text())


def node(name: str, zone: str = "a", ready: str | None = "True", cpu: str = "4", **labels: str) -> Node:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    found = {
        "metadata": {"name": name, "labels": {ZONE: zone, **labels} if zone else labels},
        "status": {"conditions": conditions, "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }
    return node_of(node_health.project(found), ZONE)


def pod(cpu: str = "1", on: str = "", *, owner: str = "ReplicaSet", phase: str = "Running", **more: Any) -> Any:
    found = {
        "metadata": {"name": "p", "labels": more.get("labels", {}), "ownerReferences": [{"kind": owner}]},
        "spec": {"nodeName": on, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": more.get("ready", "True")}]},
    }
    return pod_requests.project(found)["pod"]


@pytest.mark.parametrize(("ready", "status"), [("True", H), ("False", U), ("Unknown", N), (None, N)])
def test_a_node_is_what_its_ready_condition_says(ready: str | None, status: Health) -> None:
    assert node("n", ready=ready).verdict.status is status


def test_a_node_says_by_an_annotation_that_its_cluster_is_maintained() -> None:
    def said(**notes: str) -> str:
        return node_of(node_health.project({"metadata": {"name": "n", "annotations": notes}}), ZONE).maintenance

    assert said(**{"reactor/maintenance": "kim: upgrade", "other": "x"}) == "node n: kim: upgrade"
    assert said(**{"reactor/maintenance": ""}) == "node n: reactor/maintenance"
    assert (said(other="x"), node("n").maintenance) == ("", "")


@pytest.mark.parametrize("odd", [{}, {"status": None}, {"status": {"conditions": "none"}}, {"status": []}])
def test_a_node_that_makes_no_sense_is_unknown(odd: dict[str, Any]) -> None:
    assert verdict_of(node_health.project(odd)).status is N


@pytest.mark.parametrize("case", CASES["zone_disruption_state_k8s"]["cases"], ids=lambda case: str(case["id"]))
def test_a_zone_is_unhealthy_where_kubernetes_calls_it_disrupted(case: dict[str, Any]) -> None:
    found = zone_verdict(Tally(case["ready"] + case["not_ready"], case["ready"]))
    assert found.status is (H if case["expect"] == "normal" else U)


@pytest.mark.parametrize(
    ("nodes_", "ready", "status"),
    [(1, 1, H), (1, 0, U), (2, 1, H), (2, 0, U), (3, 1, H), (3, 0, U), (4, 2, H), (4, 1, U), (5, 2, U), (5, 3, H),
     (20, 9, U), (20, 10, H), (100, 45, U), (100, 46, H)],
)  # fmt: skip
def test_one_bad_node_never_condemns_a_small_zone_that_has_another(nodes_: int, ready: int, status: Health) -> None:
    assert zone_verdict(Tally(nodes_, ready)).status is status


def test_nodes_that_are_excluded_or_without_a_zone_are_in_none() -> None:
    found = tally([
        node("a1"), node("a2", ready="Unknown"), node("b1", "b"), node("nowhere", ""),
        node("spot", ready="False", **{"node.kubernetes.io/exclude-disruption": "false"}),
    ])  # fmt: skip
    assert found == {"a": Tally(2, 1), "b": Tally(1, 1)}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_every_node_is_counted_once(given_: list[tuple[str, bool]]) -> None:
    found = tally(node(str(n), zone, "True" if ready else "False") for n, (zone, ready) in enumerate(given_))
    assert sum(zone.nodes for zone in found.values()) == len(given_)
    assert sum(zone.ready for zone in found.values()) == sum(ready for _, ready in given_)


@pytest.mark.parametrize(
    ("text", "value"),
    [("100m", 0.1), ("2", 2), (3, 3), ("1.5", 1.5), (".5", 0.5), ("1Ki", 1024), ("2Gi", 2 * 2**30), ("1e3", 1000),
     ("1E3", 1000), ("2E", 2e18), ("5k", 5000), ("-1", -1), ("100n", 1e-7)],
)  # fmt: skip
def test_quantities_are_read_as_the_api_writes_them(text: object, value: float) -> None:
    assert quantity(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "two", "1 Gi", "1KiB", None, [], "0x10", "1ee3"])
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(MalformedField):
        quantity(text)


def test_a_pod_asks_for_what_the_scheduler_reserves() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    assert requests({"containers": [container("1"), container("500m")]})["cpu"] == 1.5
    assert requests({"containers": [container("1")], "initContainers": [container("3")]})["cpu"] == 3
    sidecar = container("1", restartPolicy="Always")
    assert requests({"containers": [container("1")], "initContainers": [sidecar, container("1")]})["cpu"] == 2
    assert requests({"containers": [container("1")], "initContainers": [sidecar, container("3")]})["cpu"] == 4
    assert requests({"containers": [container("1")], "overhead": {"cpu": "250m"}})["cpu"] == 1.25
    assert requests({"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}})["cpu"] == 5
    assert requests({"containers": [{}]}) == {"cpu": 0, "memory": 0}


def test_demand_is_in_average_nodes_beside_what_belongs_to_each_node() -> None:
    here = [node("n1"), node("n2"), node("dead", ready="Unknown")]
    running = [pod("1", "n1", owner="DaemonSet"), pod("1", "n2", owner="DaemonSet")]
    assert demand(here, running) == 0
    assert demand(here, [*running, *[pod("1", "n1")] * 6]) == 2
    assert demand(here, [*running, *[pod("1", "n1")] * 6, pod("100m")]) == 3
    assert demand(here, [*running, *[pod("0")] * 111]) == 2  # 110 pods a node, less the daemon


def test_what_has_ended_asks_for_nothing() -> None:
    assert pod(phase="Succeeded") is None
    assert pod(phase="Failed") is None


def test_a_demand_that_cannot_be_known_is_not_made_up() -> None:
    assert demand([node("n1", ready="False")], [pod()]) is None
    assert demand([], [pod()]) is None
    assert demand([node("n1", cpu="lots")], [pod()]) is None
    assert demand([node("n1", cpu="1")], [pod("1", "n1", owner="DaemonSet"), pod()]) is None


@given(st.lists(st.integers(1, 4000), max_size=40), st.integers(1, 6))
def test_the_demand_is_what_fits_and_no_node_less(millicores: list[int], nodes_: int) -> None:
    here = [node(f"n{n}") for n in range(nodes_)]
    needed = demand(here, [pod(f"{one}m") for one in millicores])
    assert needed is not None
    assert needed * 4000 >= sum(millicores)
    assert (needed - 1) * 4000 < sum(millicores) or needed == 0


def test_ready_members_of_a_quorum_are_counted_by_zone() -> None:
    here = [node("n1"), node("n2", "b"), node("n3", "c", **{"node-role.kubernetes.io/control-plane": ""})]
    label = {"reactor/quorum-member": "true"}
    members = [pod(on="n1", labels=label), pod(on="n2", labels=label), pod(on="n2", labels=label, ready="False")]
    assert quorum_members(here, [*members, pod(on="n3")]) == ({"a": 1, "b": 1}, 3)
    assert quorum_members(here, [pod(on="n1", labels=label, ready="False"), pod(labels=label)]) == ({}, 2)


def test_without_labelled_pods_the_control_plane_is_the_quorum() -> None:
    role = {"node-role.kubernetes.io/control-plane": ""}
    here = [node("n1", **role), node("n2", "b", **role), node("n3", "c", "Unknown", **role), node("n4", "c")]
    assert quorum_members(here, [pod(on="n4")]) == ({"a": 1, "b": 1}, 3)


@pytest.mark.parametrize("odd", [
    {}, {"spec": []}, {"spec": {"containers": ["x"]}}, {"metadata": {"ownerReferences": ["x"]}}, {"status": 1},
    {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}},
])  # fmt: skip
def test_a_pod_that_makes_no_sense_breaks_nothing(odd: dict[str, Any]) -> None:
    found = pod_requests.project(odd)["pod"]
    assert found is None or found.requests["pods"] == 1


def slice_(service: str, *endpoints: dict[str, Any], **labels: str) -> Any:
    metadata = {"name": service, "namespace": "shop", "labels": {"kubernetes.io/service-name": service, **labels}}
    return service_zones.project({"metadata": metadata, "addressType": "IPv4", "endpoints": list(endpoints)})


def at(zone: str | None = None, node: str | None = None, *, ready: bool | None = True) -> dict[str, Any]:
    return {"addresses": ["10.0.0.1"], "conditions": {"ready": ready}, "zone": zone, "nodeName": node}


def test_services_with_all_ready_endpoints_in_one_zone_are_named_with_it() -> None:
    found = single_zone_services([
        slice_("one", at("a"), at("a"), at("b", ready=False)),
        slice_("two", at("a"), at("b")),
        slice_("by-node", at(node="n1"), at("ignored", "n1")),
        slice_("nobody", at("a", ready=False)), slice_("outside", at()), slice_("half-outside", at("a"), at()),
        slice_("chosen", at("a"), **{"reactor/single-zone": "allowed"}),
    ], {"n1": "c"})  # fmt: skip
    assert found == ("a:shop/one", "c:shop/by-node")


def test_all_slices_of_a_service_count_together() -> None:
    assert single_zone_services([slice_("s", at("a")), slice_("s", at("b", ready=None))], {}) == ()

"""Arranging clusters in process: scenes for the demo and for tests."""

from __future__ import annotations

import stat
from pathlib import Path

import aiohttp
import pytest
import yaml

from reactor.demo.kube import EmulatedCluster, Emulator, JsonObject, StatusError, write_kubeconfig
from tests.contract.kube.objects import budget, config_map, deployment, pod
from tests.kube.api import Api, Server


def traffic_split(name: str, version: str = "v1alpha2", weight: object = 100) -> JsonObject:
    return {
        "apiVersion": f"split.smi-spec.io/{version}",
        "kind": "TrafficSplit",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"service": name, "backends": [{"service": "a", "weight": weight}, {"service": "b", "weight": 0}]},
    }


def http_route(name: str) -> JsonObject:
    rules = [{"backendRefs": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "weight": 0}]}]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"parentRefs": [{"name": "gateway"}], "rules": rules},
    }


async def test_clusters_know_nothing_of_each_other(sim: Emulator) -> None:
    east, west = sim.cluster("east"), sim.cluster("west")
    east.create(config_map("a"))
    assert east.find("configmaps", "a", "default") is not None
    assert west.find("configmaps", "a", "default") is None
    assert sim.cluster("east") is east
    assert sim.url("east") != sim.url("west")


async def test_a_cluster_can_have_a_port_of_its_own(sim: Emulator) -> None:
    sim.cluster("east").create(config_map("a"))
    shared = sim.url("east")
    own = await sim.own_port("east")
    assert own == sim.url("east") != shared
    async with aiohttp.ClientSession() as session:
        for url in (own, shared):
            async with session.get(f"{url}/api/v1/namespaces/default/configmaps/a") as answer:
                assert answer.status == 200


async def test_an_unknown_cluster_is_not_found(sim: Emulator) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{sim.url('nowhere')}/version") as answer:
        assert answer.status == 404


async def test_a_cluster_with_a_token_lets_no_other_client_in(sim: Emulator) -> None:
    sim.cluster("east", token="sesame")
    async with aiohttp.ClientSession() as session:
        for given, code in (("", 401), ("Bearer no", 401), ("Bearer sesame", 200)):
            api = Api(session, Server("sim", sim.url("east"), {"Authorization": given}), "default")
            assert (await api.get("/version")).code == code


async def test_what_the_scene_sets_comes_with_its_status_and_namespace(east: EmulatedCluster) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"phase": "x"}}
    assert east.create(node)["status"] == {"phase": "x"}
    running = pod("web-0") | {"metadata": {"name": "web-0", "namespace": "new"}, "status": {"phase": "Running"}}
    assert east.create(running)["status"]["phase"] == "Running"
    assert east.get("namespaces", "new")["status"] == {"phase": "Active"}


async def test_an_object_of_the_store_is_out_of_its_readers_reach(east: EmulatedCluster) -> None:
    mine = config_map("a", color="red")
    east.create(mine)["data"]["color"] = "blue"
    mine["data"]["color"] = "green"
    east.get("configmaps", "a", "default")["data"]["color"] = "black"
    assert east.list("configmaps")[0]["data"] == {"color": "red"}


async def test_endpoints_follow_what_the_world_says(east: EmulatedCluster) -> None:
    for ready, not_ready in ((2, 0), (1, 1), (0, 2)):
        east.set_endpoints("shop", "web", ready=ready, not_ready=not_ready)
        (piece,) = east.list("endpointslices", "shop", labels="kubernetes.io/service-name=web")
        states = [endpoint["conditions"]["ready"] for endpoint in piece["endpoints"]]
        assert (states.count(True), states.count(False)) == (ready, not_ready)
    before = east.resource_version
    east.set_endpoints("shop", "web", ready=0, not_ready=2)
    assert east.resource_version == before


async def test_a_condition_keeps_its_time_until_its_status_changes(east: EmulatedCluster) -> None:
    east.create(deployment("web"))
    east.set_condition("deployments", "web", "default", kind="Progressing", status="True")
    east.set_condition("deployments", "web", "default", kind="Available", status="True", reason="First")
    first = east.get("deployments", "web", "default")["status"]["conditions"]
    east.set_condition("deployments", "web", "default", kind="Available", status="True", reason="Second")
    second = east.get("deployments", "web", "default")["status"]["conditions"]
    assert [one["type"] for one in second] == ["Progressing", "Available"]
    assert second[1]["reason"] == "Second"
    assert second[1]["lastTransitionTime"] == first[1]["lastTransitionTime"]


async def test_budgets_are_settled_from_their_pods(east: EmulatedCluster) -> None:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for number in range(3):
        east.create(pod(f"web-{number}", app="web") | {"status": ready if number else {"phase": "Running"}})
    east.create(budget("web", 1, app="web"))
    east.settle_budgets()
    status = east.get("poddisruptionbudgets", "web", "default")["status"]
    assert (status["disruptionsAllowed"], status["currentHealthy"], status["expectedPods"]) == (1, 2, 3)
    east.patch("poddisruptionbudgets", "web", {"spec": {"minAvailable": "50%"}}, "default")
    east.settle_budgets("default")
    status = east.get("poddisruptionbudgets", "web", "default")["status"]
    assert (status["disruptionsAllowed"], status["desiredHealthy"]) == (0, 2)


async def test_weights_are_what_each_version_of_a_traffic_split_says(east: EmulatedCluster) -> None:
    assert east.create(traffic_split("a", "v1alpha1", "500m"))["spec"]["backends"][0]["weight"] == "500m"
    assert east.create(traffic_split("b", "v1alpha2", 0.5))["spec"]["backends"][0]["weight"] == 0.5
    with pytest.raises(StatusError, match="must be of type number"):
        east.create(traffic_split("c", "v1alpha2", "500m"))


async def test_a_traffic_split_is_one_object_in_both_versions(east: EmulatedCluster, api: Api) -> None:
    east.create(traffic_split("a"))
    old = await api.get(api.path("trafficsplits", "a", "split.smi-spec.io/v1alpha1"))
    assert old.body["apiVersion"] == "split.smi-spec.io/v1alpha1"
    groups = {one["name"]: one for one in (await api.get("/apis")).body["groups"]}
    assert groups["split.smi-spec.io"]["preferredVersion"]["version"] == "v1alpha2"


async def test_a_route_gets_gateway_apis_defaults(east: EmulatedCluster) -> None:
    route = east.create(http_route("web"))
    backend = route["spec"]["rules"][0]["backendRefs"][0]
    assert backend == {"name": "a", "port": 80, "weight": 1, "kind": "Service", "group": ""}
    assert route["spec"]["rules"][0]["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    operations = [{"op": "replace", "path": "/spec/rules/0/backendRefs/0/weight", "value": 1_000_001}]
    with pytest.raises(StatusError, match="less than or equal to 1000000"):
        east.patch("httproutes", "web", operations, "shop")


async def test_a_namespace_takes_what_is_in_it_along(east: EmulatedCluster) -> None:
    east.create(traffic_split("a"))
    east.delete("namespaces", "shop")
    assert east.list("trafficsplits") == []


async def test_a_kubeconfig_is_for_its_owner_only(sim: Emulator, tmp_path: Path) -> None:
    sim.cluster("east", token="sesame")
    sim.cluster("west")
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o644)
    write_kubeconfig(path, sim, current="west")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = yaml.safe_load(path.read_text("utf-8"))
    assert written["current-context"] == "west"
    assert {one["name"]: one["cluster"]["server"] for one in written["clusters"]} == {
        "east": sim.url("east"),
        "west": sim.url("west"),
    }

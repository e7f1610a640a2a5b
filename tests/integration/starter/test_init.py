"""`reactor init` on emulated clusters: what it writes can be used as it is, and it writes nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.main import cli
from reactor.demo.kube import EmulatedCluster, Emulator, Fault, Forbid, JsonObject, Reset, StatusFault, write_kubeconfig
from reactor.runtime.clock import Clock

ZONE = "topology.kubernetes.io/zone"
Init = Callable[..., Coroutine[Any, Any, Result]]


def split(name: str = "checkout", *, west: int = 0, **annotations: str) -> JsonObject:
    return {
        "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
        "spec": {
            "service": name,
            "backends": [{"service": name, "weight": 1}, {"service": f"{name}-west", "weight": west}],
        },
    }  # fmt: skip


def http_route(name: str, *rules: list[str], kind: str = "HTTPRoute") -> JsonObject:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"},
        "spec": {"rules": [{"backendRefs": [{"name": ref, "port": 80} for ref in refs]} for refs in rules]},
    }  # fmt: skip


def workload(name: str, replicas: int, *, kind: str = "Deployment", namespace: str = "shop") -> JsonObject:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    spec |= {"serviceName": name} if kind == "StatefulSet" else {}
    return {
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec
    }  # fmt: skip


def node(name: str, zone: str | None) -> JsonObject:
    labels = {ZONE: zone} if zone else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator(clock=Clock().now) as running:
        yield running


@pytest.fixture
async def east(emulator: Emulator) -> EmulatedCluster:
    east = emulator.cluster("east")
    east.create(split())
    east.create(http_route("web", ["web", "web-west"]))
    east.create(workload("cart", 3))
    east.create(workload("mysql", 1, kind="StatefulSet"))
    east.create(workload("coredns", 2, namespace="kube-system"))
    for number, zone in enumerate("aab"):
        east.create(node(f"n{number}", f"eu-1{zone}"))
    return east


@pytest.fixture
async def west(emulator: Emulator, east: EmulatedCluster) -> EmulatedCluster:
    assert east.name == "east"
    west = emulator.cluster("west")
    west.create(workload("cart", 2))
    west.create(workload("coredns", 2, namespace="kube-system"))
    west.create(workload("alone", 2))
    west.create(node("w0", "us-1a"))
    return west


@pytest.fixture
def init(emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Init:
    """Run it in a folder of its own, with a kubeconfig of all clusters."""
    monkeypatch.chdir(tmp_path)
    for name in ("REACTOR_CONFIG", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)

    async def run(*words: str) -> Result:
        write_kubeconfig(tmp_path / "kubeconfig", emulator)
        given = [] if "-c" in words else ["--kubeconfig", "kubeconfig"]
        return await asyncio.to_thread(CliRunner().invoke, cli, ["init", *given, *words])

    return run


def rules(name: str = "rules.yaml") -> dict[str, dict[str, Any]]:
    found = yaml.safe_load(Path(name).read_text())
    return {rule["name"]: rule for rule in found["rules"]}


def proven(name: str = "rules") -> None:
    """Our own commands have nothing to say about what was written, but that zones want a second source."""
    done = CliRunner().invoke(cli, ["check", "-o", "json", f"{name}.yaml", f"{name}_test.yaml"])
    assert {found["hint"] for found in json.loads(done.stdout)} <= {"one-witness"}, done.output
    done = CliRunner().invoke(cli, ["test", f"{name}_test.yaml"])
    assert done.exit_code == 0, done.output


async def test_what_is_on_two_clusters_becomes_rules_that_can_be_used_as_they_are(
    init: Init, west: EmulatedCluster
) -> None:
    done = await init("--context", "east", "--context", "west")
    assert done.exit_code == 0, done.output
    assert done.stdout == "rules.yaml: 2 routes, 1 workload, 1 cluster with zones. Tests: rules_test.yaml\n"
    made = rules()
    assert {rule["mode"] for rule in made.values()} == {"DryRun"}
    assert {rule["kind"] for rule in made.values()} == {"TrafficFailover", "WorkloadFailover", "ZoneIsolation"}
    assert [zone["name"] for zone in made["east-zones"]["zones"]] == ["eu-1a", "eu-1b"]
    placement = made["shop-cart"]["placement"]["replicaScheduling"]["weightPreference"]["staticWeightList"]
    assert [one["weight"] for one in placement] == [3, 2]
    proven()
    assert west.name == "west"


async def test_clusters_are_only_read(init: Init, emulator: Emulator, west: EmulatedCluster) -> None:
    before = (len(emulator.writes), west.resource_version)
    assert (await init("--context", "east", "--context", "west")).exit_code == 0
    assert (len(emulator.writes), west.resource_version) == before


async def test_the_clusters_of_the_settings_are_looked_at(init: Init, tmp_path: Path, west: EmulatedCluster) -> None:
    entry = {"kubeconfig": str(tmp_path / "kubeconfig"), "context": "east"}
    clusters = {"shop-east": entry, "shop-west": entry | {"context": west.name}, "gone": entry | {"context": "no"}}
    (tmp_path / "reactor.yaml").write_text(yaml.safe_dump({"clusters": clusters}))
    done = await init("-c", "reactor.yaml", "--cluster", "shop-east", "--cluster", "shop-west")
    assert done.exit_code == 0, done.output
    assert rules()["shop-east-shop-checkout"]["route"]["cluster"] == "shop-east"
    proven()
    assert (await init("-c", "reactor.yaml", "--cluster", "other", "--output-file", "x.yaml")).exit_code == 2
    assert (await init("-c", "reactor.yaml", "--context", "east", "--output-file", "x.yaml")).exit_code == 2
    assert (await init("-c", "reactor.yaml", "--output-file", "x.yaml")).exit_code == 1  # no such context


async def test_what_is_said_on_the_command_line_beats_the_environment(
    init: Init, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_CONFIG", "not-there.yaml")
    done = await init("--cluster", east.name)
    assert done.exit_code == 0, done.output
    assert (await init("-c", "not-there.yaml", "--output-file", "other.yaml")).exit_code == 1


async def test_no_file_is_overwritten(init: Init, east: EmulatedCluster) -> None:
    for name in ("rules.yaml", "rules_test.yaml"):
        Path(name).write_text("mine\n")
        done = await init()
        assert (done.exit_code, Path(name).read_text()) == (1, "mine\n")
        assert f"{name} exists already" in done.stderr
        Path(name).unlink()
        assert not Path("rules.yaml").exists()
    assert east.name == "east"


async def test_what_we_may_not_see_is_told_and_the_rest_is_written(init: Init, east: EmulatedCluster) -> None:
    for resource in ("nodes", "deployments", "httproutes"):
        east.faults.add(Fault(Forbid(), resource=resource))
    done = await init("--cluster", "east")
    assert done.exit_code == 0, done.output
    for what, resource in (("Nodes", "nodes"), ("Deployments", "deployments"), ("HTTPRoutes", "httproutes")):
        assert f"east: {what} could not be read" in done.stderr
        assert f"grant the verb 'list' on resource '{resource}'" in done.stderr
    assert "could not be read" in Path("rules.yaml").read_text()
    assert [*rules()] == ["shop-checkout"]
    proven()


async def test_a_cluster_without_the_crds_is_told_and_the_rest_is_written(init: Init, emulator: Emulator) -> None:
    bare = emulator.cluster("bare", crds=[])
    bare.create(node("a", "za"))
    bare.create(node("b", "zb"))
    done = await init("--cluster", "bare")
    assert done.exit_code == 0, done.output
    assert "bare has no TrafficSplits: its API does not serve them" in done.stderr
    assert [*rules()] == ["bare-zones"]
    proven()


async def test_a_cluster_that_cannot_be_asked_is_told_once(init: Init, west: EmulatedCluster) -> None:
    west.faults.add(Fault(Reset()))
    done = await init("--context", "east", "--context", "west")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("west cannot be asked") == 1
    assert "shop-cart" not in rules()
    proven()


async def test_nothing_found_writes_nothing(init: Init, emulator: Emulator) -> None:
    empty = emulator.cluster("empty")
    empty.create(node("a", "za"))
    done = await init("--cluster", "empty")
    assert done.exit_code == 1
    assert "empty has one zone, za" in done.stderr
    assert "empty: nothing that a rule could move" in done.stderr
    assert not Path("rules.yaml").exists()


async def test_each_rule_of_a_route_that_divides_traffic_becomes_a_rule(init: Init, emulator: Emulator) -> None:
    cluster = emulator.cluster("east")
    cluster.create(http_route("api", ["a"], ["b", "b-west"], ["c", "c-west", "c-north"]))
    cluster.create(http_route("web", ["web"]))
    cluster.create(http_route("rpc", ["rpc", "rpc-west"], kind="GRPCRoute"))
    assert (await init("--cluster", "east")).exit_code == 0
    made = rules()
    assert {name: rule["route"].get("rule") for name, rule in made.items()} == {
        "shop-rpc": None, "shop-api-1": 1, "shop-api-2": 2
    }  # fmt: skip
    proven()


async def test_the_primary_is_the_annotated_one_else_the_heaviest(init: Init, emulator: Emulator) -> None:
    cluster = emulator.cluster("east")
    cluster.create(split("heavy", west=9))
    cluster.create(split("said", west=9, **{"failover.linkerd.io/primary-service": "said"}))
    cluster.create(split("wrong", west=9, **{"failover.linkerd.io/primary-service": "nobody"}))
    assert (await init("--cluster", "east")).exit_code == 0
    primaries = {name: rule["primary"] for name, rule in rules().items()}
    assert primaries == {"shop-heavy": "heavy-west", "shop-said": "said", "shop-wrong": "wrong-west"}
    assert "A canary?" in Path("rules.yaml").read_text()
    proven()


async def test_namespaces_narrow_what_is_looked_for(init: Init, west: EmulatedCluster) -> None:
    done = await init(
        "--context", "east", "--context", "west", "--namespace", "kube-system", "--output-file", "kube.yaml"
    )
    assert done.exit_code == 0, done.output
    assert [*rules("kube.yaml")] == ["kube-system-coredns", "east-zones"]
    proven("kube")
    assert west.name == "west"


async def test_an_odd_route_is_skipped(init: Init, east: EmulatedCluster) -> None:
    east.create(split("odd", west=0) | {"spec": {"service": "odd", "backends": [{"service": "odd", "weight": 0.5}]}})
    assert (await init("--cluster", "east")).exit_code == 0
    assert "shop-odd" not in rules()


async def test_an_error_of_the_server_is_told_and_what_was_read_is_written(init: Init, east: EmulatedCluster) -> None:
    east.faults.add(Fault(StatusFault(500), resource="nodes"))
    done = await init("--cluster", "east")
    assert "east cannot be asked" in done.stderr
    assert [*rules()] == ["shop-web", "shop-checkout"], "what had been read before is written"


@pytest.mark.parametrize(
    "words", [("--context", "a", "--context", "b", "--cluster", "x"), ("--context", "a/b", "--context", "a-b")]
)
async def test_names_that_do_not_fit_together_are_a_wrong_command_line(init: Init, words: tuple[str, ...]) -> None:
    assert (await init(*words)).exit_code == 2

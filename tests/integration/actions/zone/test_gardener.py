"""Carrier Gardener, against an emulated garden and seed whose controllers are the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.demo.kube.crds import load_definitions
from tests.integration.actions.conftest import Connect
from tests.integration.actions.zone.aws import Crash, Vpc
from tests.integration.actions.zone.scene import CrashingApi, Hurried, Reactor

ROOT = Path(__file__).resolve().parents[4]
ISOLATION = ROOT / "deploy/kustomize/components/zone-isolation-gardener/subnetisolations-crd.yaml"
ZONE_ANNOTATION, OPERATION = "shoot.gardener.cloud/isolated-zone", "gardener.cloud/operation"
UPDATES = {"kubernetesVersion": True, "machineImageVersion": False}
STEPS = ("Fence", "Evacuate", "CutNetwork", "Verify")
SHOOT = {"shoot": {"cluster": "garden", "namespace": "garden-x", "name": "prod"}}
SEED = SHOOT | {"seed": {"cluster": "seed", "namespace": "shoot--x--prod"}}


def definition(group: str, version: str, plural: str, kind: str) -> dict[str, Any]:
    """A kind that keeps whatever it is given: what neighbours' CRDs look like to us."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": version, "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }  # fmt: skip


SHOOTS = definition("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
WORKERS = definition("extensions.gardener.cloud", "v1alpha1", "workers", "Worker")


@pytest.fixture
async def garden(emulator: Emulator) -> EmulatedCluster:
    cluster = emulator.cluster("garden", crds=[SHOOTS])
    cluster.create({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "prod", "namespace": "garden-x", "annotations": {"a": "b"}},
        "spec": {"maintenance": {"autoUpdate": UPDATES, "timeWindow": {"begin": "220000+0000"}}},
    })  # fmt: skip
    return cluster


@pytest.fixture
async def seed(emulator: Emulator) -> EmulatedCluster:
    cluster = emulator.cluster("seed", crds=[WORKERS, *load_definitions([ISOLATION])])
    cluster.create({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker",
        "metadata": {"name": "prod", "namespace": "shoot--x--prod"}, "spec": {"pools": []},
    })  # fmt: skip
    return cluster


@pytest.fixture
async def apis(garden: EmulatedCluster, seed: EmulatedCluster, connected: Connect) -> dict[str, KubeApi]:
    return {"garden": await connected("garden"), "seed": await connected("seed")}


def reactor(apis: dict[str, KubeApi], settings: dict[str, Any], **more: Any) -> Reactor:
    return Reactor(apis, Hurried(), settings, steps=STEPS, carrier="Gardener", **more)


def shoot(garden: EmulatedCluster) -> tuple[dict[str, str], Any]:
    found = garden.get("shoots", "prod", "garden-x")
    return found["metadata"].get("annotations") or {}, found["spec"]["maintenance"]


def gardener_says(garden: EmulatedCluster, phase: str, status: str, code: str = "us-east-1a") -> None:
    said = {"isolatedZoneID": "use1-az6", "isolatedZoneCode": code, "phase": phase, "status": status}
    garden.patch("shoots", "prod", {"status": {"zoneIsolation": said}}, "garden-x", status=True)


def worker_is_reconciled(seed: EmulatedCluster, code: str | None) -> None:
    worker = seed.get("workers", "prod", "shoot--x--prod")
    generation = worker["metadata"]["generation"]
    seed.patch("workers", "prod", {"metadata": {"annotations": {OPERATION: None}}}, "shoot--x--prod")
    status = {"observedGeneration": generation, "isolatedZoneCode": code, "lastOperation": {"state": "Succeeded"}}
    seed.patch("workers", "prod", {"status": status}, "shoot--x--prod", status=True)


async def test_the_shoot_is_asked_and_waited_for(garden: EmulatedCluster, apis: dict[str, KubeApi]) -> None:
    us = reactor(apis, SHOOT)
    before = shoot(garden)
    await us.failover(["Fence"])
    notes, maintenance = shoot(garden)
    assert (notes[ZONE_ANNOTATION], notes[OPERATION]) == ("use1-az6", "reconcile")
    assert maintenance["autoUpdate"] == {"kubernetesVersion": False, "machineImageVersion": False}
    action = us.action("Evacuate")
    assert "does not know GEP-21" in (await us.once(action)).detail
    gardener_says(garden, "Failover", "InProgress")
    assert (await us.once(action)).detail == "the Shoot is at Failover/InProgress for use1-az6 (us-east-1a)"
    gardener_says(garden, "Failover", "Done")
    await us.failover()
    assert us.details[-1] == "Gardener has isolated use1-az6 (us-east-1a)"
    gardener_says(garden, "Failback", "Done")
    await us.failback()
    notes, maintenance = shoot(garden)
    assert ({**notes, OPERATION: ""}, maintenance) == ({**before[0], OPERATION: ""}, before[1])


async def test_a_failure_of_gardeners_is_told(garden: EmulatedCluster, apis: dict[str, KubeApi]) -> None:
    us = reactor(apis, SHOOT)
    await us.failover(["Fence"])
    gardener_says(garden, "Failover", "Failed")
    outcome = await us.once(us.action("Evacuate"))
    assert (outcome.status, outcome.reason) == ("Failed", "NotAsAsked")


async def test_id_and_code_that_do_not_belong_together_are_told(
    garden: EmulatedCluster, apis: dict[str, KubeApi]
) -> None:
    us = reactor(apis, SHOOT)
    await us.failover(["Fence"])
    gardener_says(garden, "Failover", "Done", code="us-east-1c")
    assert (await us.once(us.action("Verify"))).reason == "ZoneMismatch"


async def test_another_zone_is_not_put_in_the_place_of_the_one_that_is_isolated(
    garden: EmulatedCluster, apis: dict[str, KubeApi]
) -> None:
    us = reactor(apis, SHOOT)
    await us.failover(["Fence"])
    outcome = await us.once(us.action("Fence", zone="us-east-1b", zone_id="use1-az1"))
    assert (outcome.status, outcome.reason) == ("Failed", "ChangeRefused")
    assert shoot(garden)[0][ZONE_ANNOTATION] == "use1-az6"


async def test_updates_that_another_writer_switched_meanwhile_stay_so(
    garden: EmulatedCluster, apis: dict[str, KubeApi]
) -> None:
    us = reactor(apis, SHOOT)
    await us.failover(["Fence"])
    theirs = {"kubernetesVersion": True, "machineImageVersion": True}
    garden.patch("shoots", "prod", {"spec": {"maintenance": {"autoUpdate": theirs}}}, "garden-x")
    await us.failback()
    assert shoot(garden)[1]["autoUpdate"] == theirs


async def there(us: Reactor, seed: EmulatedCluster) -> None:
    await us.failover(["Fence"])
    worker_is_reconciled(seed, "us-east-1a")
    await us.failover()


async def back(us: Reactor, seed: EmulatedCluster) -> None:
    await us.until_done(us.action("CutNetwork", undo=True))
    action = us.action("Fence", undo=True)
    await us.once(action)
    worker_is_reconciled(seed, None)
    await us.until_done(action)


def pictured(garden: EmulatedCluster, seed: EmulatedCluster, vpc: Vpc) -> Any:
    notes, maintenance = shoot(garden)
    worker = seed.get("workers", "prod", "shoot--x--prod")
    isolations = [
        (one["metadata"]["name"], one["spec"], one["status"]["providerStatus"]["isolatedZoneCode"])
        for one in seed.list("subnetisolations")
    ]
    return (
        {name: note for name, note in notes.items() if name != OPERATION},
        maintenance,
        worker["spec"],
        isolations,
        vpc.picture(),
    )


async def test_with_a_seed_worker_and_subnet_isolation_are_ours(
    garden: EmulatedCluster, seed: EmulatedCluster, apis: dict[str, KubeApi], vpc: Vpc
) -> None:
    network = {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id}
    us = reactor(apis, SEED | {"network": network}, ec2=vpc.boto)
    before = pictured(garden, seed, vpc)
    await us.failover(["Fence"])
    outcome = await us.once(us.action("Evacuate"))
    assert (outcome.reason, outcome.detail) == ("InProgress", "Worker prod is Pending: not yet seen")
    await there(us, seed)
    _, _, spec, isolations, network_picture = pictured(garden, seed, vpc)
    assert spec == {"pools": [], "isolatedZoneID": "use1-az6"}
    assert isolations == [("isolate-use1-az6", {"isolatedZoneID": "use1-az6"}, "us-east-1a")]
    assert network_picture[0] == ["deny", "deny", "deny", "own-1"]
    await back(us, seed)
    assert pictured(garden, seed, vpc) == before


async def test_a_shoot_that_is_deleted_while_its_zone_is_isolated_gets_its_network_back_and_no_more_of_it(
    garden: EmulatedCluster, seed: EmulatedCluster, apis: dict[str, KubeApi], vpc: Vpc
) -> None:
    network = {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id}
    us = reactor(apis, SEED | {"network": network}, ec2=vpc.boto)
    open_ = pictured(garden, seed, vpc)[3:]
    await there(us, seed)
    garden.patch("shoots", "prod", {"metadata": {"finalizers": ["gardener"]}}, "garden-x")
    garden.delete("shoots", "prod", "garden-x")
    round_ = us.action("Verify", status="Done")  # the one that checks the isolation every minute
    for _ in range(2):
        outcome = await us.once(round_)
        assert (outcome.status, outcome.reason) == ("Failed", "ShootDeleted")
        assert "the Shoot is being deleted" in outcome.detail
        assert pictured(garden, seed, vpc)[3:] == open_
    for step in ("Fence", "Evacuate", "CutNetwork"):
        assert (await us.once(us.action(step))).reason == "ShootDeleted"
    assert pictured(garden, seed, vpc)[3:] == open_
    garden.patch("shoots", "prod", {"metadata": {"finalizers": None}}, "garden-x")
    assert garden.find("shoots", "prod", "garden-x") is None
    assert (await us.once(us.action("Fence", undo=True))).status == "Done"


async def test_an_annotation_that_another_writer_removes_is_told_and_never_put_back(
    garden: EmulatedCluster, seed: EmulatedCluster, apis: dict[str, KubeApi], vpc: Vpc
) -> None:
    network = {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id}
    us = reactor(apis, SEED | {"network": network}, ec2=vpc.boto)
    await there(us, seed)
    garden.patch("shoots", "prod", {"metadata": {"annotations": {ZONE_ANNOTATION: None}}}, "garden-x")
    before = pictured(garden, seed, vpc)
    for step in ("Evacuate", "CutNetwork", "Verify"):
        assert (await us.once(us.action(step))).reason == "AnnotationRemoved"
    for step in ("Fence", "Verify"):  # as it is checked while it is isolated
        assert (await us.once(us.action(step, status="Done"))).reason == "AnnotationRemoved"
    assert pictured(garden, seed, vpc) == before


async def test_a_provider_extension_is_waited_for(seed: EmulatedCluster, apis: dict[str, KubeApi]) -> None:
    us = reactor(apis, SEED)
    await us.failover(["Fence"])
    action = us.action("CutNetwork")
    assert (await us.once(action)).detail == "SubnetIsolation isolate-use1-az6 is Pending: not yet seen"
    operation = {"type": "Create", "progress": 100, "lastUpdateTime": "2026-01-01T00:00:00Z", "description": "no quota"}
    for state, provider in (("Error", {}), ("Succeeded", {"isolatedZoneCode": "us-east-1a"})):
        status = {"observedGeneration": 1, "lastOperation": operation | {"state": state}, "providerStatus": provider}
        seed.patch("subnetisolations", "isolate-use1-az6", {"status": status}, "shoot--x--prod", status=True)
        outcome = await us.once(action)
        assert outcome.status == ("Done" if state == "Succeeded" else "Failed"), outcome
    assert outcome.detail == "SubnetIsolation isolate-use1-az6 has cut use1-az6 (us-east-1a)"
    held = {"metadata": {"finalizers": ["extensions.gardener.cloud/aws"]}}
    seed.patch("subnetisolations", "isolate-use1-az6", held, "shoot--x--prod")
    undo = us.action("CutNetwork", undo=True)
    assert "still held by extensions.gardener.cloud/aws" in (await us.once(undo)).detail
    seed.patch("subnetisolations", "isolate-use1-az6", {"metadata": {"finalizers": None}}, "shoot--x--prod")
    assert (await us.once(undo)).status == "Done"


async def test_a_worker_that_does_not_know_the_field_is_told(
    emulator: Emulator, garden: EmulatedCluster, connected: Connect
) -> None:
    strict = definition("extensions.gardener.cloud", "v1alpha1", "workers", "Worker")
    version = strict["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object", "properties": {"pools": {"type": "array", "items": {"type": "object"}}}
    }  # fmt: skip
    old = emulator.cluster("seed", crds=[strict])
    old.create({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker",
        "metadata": {"name": "prod", "namespace": "shoot--x--prod"}, "spec": {"pools": []},
    })  # fmt: skip
    us = reactor({"garden": await connected("garden"), "seed": await connected("seed")}, SEED)
    outcome = await us.once(us.action("Fence"))
    assert (outcome.status, outcome.reason) == ("Failed", "WorkerUnaware")


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize("which", ["garden", "seed"])
@pytest.mark.parametrize("at", range(3))
async def test_a_crash_anywhere_changes_neither_end(
    garden: EmulatedCluster,
    seed: EmulatedCluster,
    apis: dict[str, KubeApi],
    vpc: Vpc,
    at: int,
    which: str,
    way: str,
    after: bool,
) -> None:
    settings = SEED | {"network": {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id}}
    calm = reactor(apis, settings, ec2=vpc.boto)
    crashing = reactor(apis | {which: CrashingApi(apis[which], at, after)}, settings, ec2=vpc.boto)
    before = pictured(garden, seed, vpc)
    crashed = 0
    for run in (there, back):
        try:
            await run(crashing if run.__name__ == way else calm, seed)
        except Crash:
            crashed += 1
            await run(calm, seed)
        if run is there:
            assert pictured(garden, seed, vpc)[3:] == (
                [("isolate-use1-az6", {"isolatedZoneID": "use1-az6"}, "us-east-1a")],
                (["deny", "deny", "deny", "own-1"], ["own-0", "own-1", "own-0", ""], 4),
            )
    assert pictured(garden, seed, vpc) == before
    writes = {"garden": 1, "seed": 3 if way == "there" else 2}[which]
    assert crashed == (at < writes)


@pytest.mark.parametrize(
    ("settings", "more", "reason"), [({}, {}, "SettingMissing"), (SHOOT, {"zone_id": ""}, "ZoneIdMissing")]
)
async def test_what_is_missing_in_the_rule_is_told(
    apis: dict[str, KubeApi], settings: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    us = reactor(apis, settings)
    outcome = await us.once(us.action("Fence", **more))
    assert (outcome.status, outcome.reason) == ("Failed", reason)

"""The Shoot is asked, and given back, under Gardener's own validation and admission."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.gardener.conftest import Shoot
from tests.gardener.garden import NAMESPACE
from tests.integration.actions.zone.scene import Hurried, Reactor

OPERATION = "gardener.cloud/operation"
"""Ours asks for a reconciliation. Gardener takes it away with the next write that leaves the spec alone."""
ISOLATED = "shoot.gardener.cloud/isolated-zone"
STEPS = ("Fence", "Evacuate", "CutNetwork", "Verify")


@pytest.fixture
def us(prod: Shoot) -> Reactor:
    settings = {"shoot": {"cluster": "garden", "namespace": NAMESPACE, "name": prod.name}}
    return Reactor({"garden": prod.api}, Hurried(), settings, steps=STEPS, carrier="Gardener")


def notes(shoot: Any) -> dict[str, str]:
    return {name: note for name, note in shoot["metadata"]["annotations"].items() if name != OPERATION}


def asked(shoot: Any) -> tuple[str | None, Any]:
    return shoot["metadata"]["annotations"].get(ISOLATED), shoot["spec"]["maintenance"]["autoUpdate"]


async def test_gardener_takes_what_asks_for_an_isolation_and_what_ends_it(prod: Shoot, us: Reactor) -> None:
    before = prod.read()
    assert asked(before) == (None, {"kubernetesVersion": True, "machineImageVersion": True})
    await us.failover(["Fence"])
    meanwhile = prod.read()
    assert asked(meanwhile) == ("use1-az6", {"kubernetesVersion": False, "machineImageVersion": False})
    assert meanwhile["metadata"]["generation"] > before["metadata"]["generation"], "what Gardener's controllers follow"
    await us.until_done(us.action("Fence", undo=True))
    after = prod.read()
    assert after["spec"] == before["spec"]
    assert notes(after) == notes(before)


async def test_where_nothing_else_changes_gardener_reconciles_all_the_same(prod: Shoot, us: Reactor) -> None:
    prod.patch({"spec": {"maintenance": {"autoUpdate": {"kubernetesVersion": False, "machineImageVersion": False}}}})
    before = prod.read()["metadata"]["generation"]
    await us.failover(["Fence"])
    assert prod.read()["metadata"]["generation"] > before
    assert OPERATION not in prod.read()["metadata"]["annotations"], "taken up"


async def test_what_is_asked_twice_is_written_once(prod: Shoot, us: Reactor) -> None:
    assert (await us.once(us.action("Fence"))).wrote
    stands = prod.read()["metadata"]["resourceVersion"]
    assert not (await us.once(us.action("Fence"))).wrote
    assert prod.read()["metadata"]["resourceVersion"] == stands


async def test_a_gardener_that_does_not_know_the_isolation_is_told_and_waited_for(prod: Shoot, us: Reactor) -> None:
    await us.failover(["Fence"])
    outcome = await us.once(us.action("Evacuate"))
    assert (outcome.status, outcome.reason) == ("Failed", "InProgress")
    assert "this Gardener does not know GEP-21" in outcome.detail


async def test_another_zone_is_not_put_in_the_place_of_the_one_that_is_isolated(prod: Shoot, us: Reactor) -> None:
    await us.failover(["Fence"])
    outcome = await us.once(us.action("Fence", zone="us-east-1b", zone_id="use1-az1"))
    assert (outcome.status, outcome.reason) == ("Failed", "ChangeRefused")
    assert asked(prod.read())[0] == "use1-az6"


async def test_an_annotation_that_another_writer_removes_is_told_and_never_put_back(prod: Shoot, us: Reactor) -> None:
    await us.failover(["Fence"])
    prod.patch({"metadata": {"annotations": {ISOLATED: None}}})
    assert (await us.once(us.action("Fence", status="Done"))).reason == "AnnotationRemoved"
    assert asked(prod.read())[0] is None


async def test_a_shoot_that_is_being_deleted_is_isolated_no_further(prod: Shoot, us: Reactor) -> None:
    await us.failover(["Fence"])
    confirmed = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}, "finalizers": ["gardener"]}
    prod.patch({"metadata": confirmed})
    prod.garden.server.request("DELETE", prod.path)
    outcome = await us.once(us.action("Evacuate"))
    assert (outcome.status, outcome.reason) == ("Failed", "ShootDeleted")

"""An action called off between its reads and its write is not written, by any carrier."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp
import pytest

from bus.messages import Action
from bus.messages.placements import Eviction
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.actions.execution import ExecutionContext
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.actions.outcomes import Declined, Waited
from reactor.actions.workload.templates import Templates
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.runtime.clock import Clock
from tests.contract.kube.memory import Memory
from tests.integration.actions.conftest import Connect
from tests.integration.actions.karmada.conftest import binding, definitions
from tests.integration.actions.zone.scene import furnish
from tests.unit.actions.builders import set_weights, split
from tests.unit.actions.workload.builders import deployment, evict, place, purge
from tests.unit.actions.zone.builders import zone_step

CLUSTERS = ("east", "member1", "member2", "prod", "karmada")
KARMADA: Mapping[str, Any] = {"carrier": "Karmada"}
LEAVES = Eviction.model_validate({"from": "member1", "purgeMode": "Gracefully"})
HAS_LEFT = {"fromCluster": "member4", "reason": "ClusterUnhealthy", "producer": "alert-reactor"}
ACTIONS: Mapping[str, Callable[[], Action]] = {
    "SetWeights": lambda: set_weights({"p": 0, "s": 1}),
    "Place": lambda: place({"member2": 3}, "member1"),
    "Evict": lambda: evict("member1"),
    "Purge": lambda: purge("member1"),
    "Fence": lambda: zone_step("Fence", decided_at=Clock().now()),
    "Evacuate": lambda: zone_step("Evacuate", decided_at=Clock().now()),
    "Place by Karmada": lambda: place(
        {"member2": 2, "member3": 3}, leaving=("member1",), evictions=(LEAVES,), **KARMADA
    ),
    "Evict by Karmada": lambda: evict("member1", **KARMADA),
    "Purge by Karmada": lambda: purge("member4", **KARMADA),
}


@pytest.fixture
async def world(emulator: Emulator, connected: Connect) -> AsyncIterator[CarrierContext]:
    """All that these actions change, as it is before them."""
    for name in CLUSTERS[:-1]:
        emulator.cluster(name).ensure_namespace("shop")
    karmada = emulator.cluster("karmada", crds=definitions("ours"))
    karmada.ensure_namespace("shop")
    karmada.create(binding(gracefulEvictionTasks=[HAS_LEFT]))
    emulator.cluster("east").create(split([("p", 1), ("s", 0)]))
    emulator.cluster("member1").create(deployment())
    furnish(emulator.cluster("prod"))
    apis = {name: await connected(name) for name in CLUSTERS}

    async def clusters(name: str) -> KubeApi:
        return apis[name]

    templates: Templates = Memory()
    async with aiohttp.ClientSession() as http:
        clock = Clock()
        plane = ControlPlane(clusters, clock)
        yield CarrierContext(clock, clusters, {}, http, templates=templates, karmada=plane)


@pytest.mark.parametrize("name", ACTIONS)
async def test_what_is_called_off_before_its_write_is_refused_and_not_written(
    name: str, world: CarrierContext, emulator: Emulator
) -> None:
    async def no() -> None:
        raise Declined("CalledOff", "the target is Healthy again")

    outcome = await carry_out(ACTIONS[name](), world, ExecutionContext(no))
    assert (outcome.status, outcome.reason) == ("Refused", "CalledOff")
    assert "the target is Healthy again" in outcome.detail
    assert emulator.writes.effective(manager="alert-reactor") == []


@pytest.mark.parametrize("name", ACTIONS)
async def test_without_the_deciders_answer_nothing_is_written_and_the_action_is_asked_for_again(
    name: str, world: CarrierContext, emulator: Emulator
) -> None:
    asked: list[str] = []

    async def silent() -> None:
        asked.append(name)
        raise Waited("the decider does not answer")

    outcome = await carry_out(ACTIONS[name](), world, ExecutionContext(silent))
    assert (outcome.status, outcome.reason) == ("Failed", "Waited")
    assert emulator.writes.effective(manager="alert-reactor") == []
    assert asked
    if name not in ("Fence", "Evacuate"):
        assert len(asked) == 1, "it is tried again by the decider's next word only"


async def test_the_event_of_a_write_that_was_made_is_told_without_a_question(
    world: CarrierContext, emulator: Emulator
) -> None:
    asked: list[int] = []

    async def once() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise Declined("CalledOff", "it is done")

    east: EmulatedCluster = emulator.cluster("east")
    outcome = await carry_out(ACTIONS["SetWeights"](), world, ExecutionContext(once))
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert len(east.list("events", "shop")) == 1

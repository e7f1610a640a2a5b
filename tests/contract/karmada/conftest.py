"""One fixture, `plane`, over both control planes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from bus.messages import Action, Outcome
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from tests.karmada.driven import driven
from tests.karmada.emulated import emulated
from tests.karmada.planes import Plane
from tests.karmada.real import Karmada, why_not

REQUIRED = os.environ.get("REACTOR_REQUIRE_KARMADA", "") == "1"


@pytest.fixture(scope="session")
def karmada() -> Iterator[Karmada]:
    """A real one, started once."""
    if why := why_not():
        pytest.fail(why) if REQUIRED else pytest.skip(why)
    running = Karmada()
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(params=["sim", "real"])
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    """A control plane with three members."""
    if request.param == "sim":
        async with emulated(tmp_path) as found:
            yield found
    else:
        async with driven(request.getfixturevalue("karmada")) as found:
            yield found


@dataclass
class Carrier:
    """Executor of actions."""

    world: CarrierContext

    async def do(self, action: Action) -> Outcome:
        """Carry out, and tell what became of it."""
        outcome = await carry_out(action, self.world)
        print(type(action).__name__, outcome.status, outcome.reason, outcome.detail)
        return outcome


@pytest.fixture
async def carrier(plane: Plane) -> AsyncIterator[Carrier]:
    """Ours."""

    async def clusters(_: str) -> KubeApi:
        return plane.api

    async with aiohttp.ClientSession() as http:
        clock = Clock()
        yield Carrier(CarrierContext(clock, clusters, {}, http, karmada=ControlPlane(clusters, clock)))

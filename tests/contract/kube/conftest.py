"""Fixtures of the contract tests: every API server there is, and an emulator for what only it can do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.runtime.clock import Clock
from tests.contract.kube.objects import Widgets
from tests.kube.api import Api, Server
from tests.kube.tiers import kube, real_servers

__all__ = ["kube", "real_servers"]


@pytest.fixture
async def sim() -> AsyncIterator[Emulator]:
    """An emulator without clusters."""
    async with Emulator(clock=Clock().now) as emulator:
        yield emulator


@pytest.fixture
def east(sim: Emulator) -> EmulatedCluster:
    """An emulated cluster with a namespace `shop`."""
    cluster = sim.cluster("east", bookmark_seconds=0.05)
    cluster.ensure_namespace("shop")
    return cluster


@pytest.fixture
async def api(sim: Emulator, east: EmulatedCluster) -> AsyncIterator[Api]:
    """A client of that cluster, in that namespace."""
    async with aiohttp.ClientSession() as session:
        yield Api(session, Server("sim", sim.url("east"), sim=sim), "shop")


@pytest.fixture
async def widgets(kube: Api) -> AsyncIterator[Widgets]:
    """A custom kind of this test's own."""
    kind = Widgets(kube)
    await kind.install()
    yield kind
    await kind.remove()

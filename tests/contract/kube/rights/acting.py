"""Actions as the ServiceAccount of deploy/, on whatever cluster they name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bus.messages import Action, Outcome
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.actions.workload.templates import Templates
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from tests.kube.deployed import Deployed


@asynccontextmanager
async def acting(
    us: Deployed, templates: Templates | None = None
) -> AsyncIterator[Callable[[Action], Awaitable[Outcome]]]:
    """Carry out actions as the ServiceAccount, whatever they call the cluster."""
    async with us.client() as api, aiohttp.ClientSession() as http:

        async def cluster(_: str) -> KubeApi:
            return api

        world = CarrierContext(Clock(), cluster, {}, http, templates=templates)

        async def act(action: Action) -> Outcome:
            return await carry_out(action, world)

        yield act


def here(us: Deployed, obj: Any) -> Any:
    """Put an object into the test's namespace."""
    return {**obj, "metadata": {**obj["metadata"], "namespace": us.admin.namespace}}

"""A load balancer of an operator's own, moved by signed POSTs: through crashes of ours, and starts of theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from reactor.clients.kubernetes_port import ApiUnavailable
from tests.e2e.haproxy import Site, site
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told
from tests.e2e.weights_server import Server

RULES = """
apiVersion: reactor/v1
sources:
- {{name: here, kind: HttpProbe, target: custom/psp/blue, signal: probe, url: "http://{here}/healthz",
   everySeconds: 0.5, timeoutSeconds: 0.5, failureThreshold: 2, refreshSeconds: 1, staleSeconds: 30}}
- {{name: there, kind: HttpProbe, target: custom/psp/green, signal: probe, url: "http://{there}/healthz",
   everySeconds: 0.5, timeoutSeconds: 0.5, failureThreshold: 2, refreshSeconds: 1, staleSeconds: 30}}
rules:
- name: psp
  kind: TrafficFailover
  mode: Enforce
  route: {{kind: Webhook, name: psp}}
  backends: [{{service: blue, target: custom/psp/blue}}, {{service: green, target: custom/psp/green}}]
"""
HOME, AWAY = {"blue": 1, "green": 0}, {"blue": 0, "green": 1}
OBJECT = "psp/Webhook/psp"


@pytest.fixture
async def served() -> AsyncIterator[Site]:
    async with site() as running:
        yield running


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(tmp_path / "other-side") as running:
        yield running


def reactor(served: Site, server: Server, folder: Path, failpoint: str = "") -> Service:
    own = {"kind": "Webhook", "url": server.url, "secretFile": str(server.secret), "everySeconds": 0.5}
    rules = RULES.format(**served.addresses)
    return Service(folder / "reactor", rules=rules, settings={"loadBalancers": {"psp": own}}, failpoint=failpoint)


async def until_weights(server: Server, weights: dict[str, int]) -> int:
    """Wait until these are the current weights, and give how often they have been changed."""
    client = server.client()

    async def so() -> bool:
        with suppress(ApiUnavailable):  # it is starting, or kept from the processor
            return (await client.read()).by_name == weights
        return False

    await until_told(so, f"{weights} is in force")
    version = int((await client.read()).version)
    await client.close()
    return version - 1


@pytest.mark.parametrize(
    "point", ["executor.intent-stored", "executor.before-write", "executor.after-write", "executor.done-stored"]
)
async def test_a_reactor_that_dies_in_mid_move_ends_it_after_its_start_and_writes_nothing_twice(
    served: Site, server: Server, tmp_path: Path, point: str
) -> None:
    service = reactor(served, server, tmp_path, point)
    async with service:
        await service.settled(1)
        served.bad.add("here")
        await until(lambda: not service.running, f"it has died at {point}")
        service.failpoint = ""
        await service.start()
        await until_weights(server, AWAY)
        served.bad.clear()
        assert await until_weights(server, HOME) == 2


async def test_what_the_other_side_has_forgotten_is_put_back_and_commands_work(
    served: Site, server: Server, tmp_path: Path
) -> None:
    async with reactor(served, server, tmp_path) as service:
        await service.settled(1)
        served.bad.add("here")
        await until_weights(server, AWAY)
        await server.kill()
        await server.start()
        assert await until_weights(server, AWAY) == 1

        async def listed() -> bool:
            words = await service.printed("traffic", "list")
            return OBJECT in words and "blue=0 green=1" in words

        await until_told(listed, "it is listed with its weights")
        assert "PrimaryUnhealthy" in await service.printed("explain", f"psp/{OBJECT}/1")
        assert [row["rule"] for row in await service.status() if row.get("object") == OBJECT] == ["psp"]
        served.bad.clear()
        await until_weights(server, HOME)
        words = ("--for", "1h", "--comment", "CHG-1", "--by", "ann", "--yes")
        assert "followed, until" in await service.printed("traffic", "failover", "psp", *words)
        await until_weights(server, AWAY)

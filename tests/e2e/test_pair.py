"""Two of everything, as production has it: two Alertmanagers, two reactors, one decision."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from bus.embedded import EmbeddedServer
from tests.e2e.conftest import MakeReactor
from tests.e2e.exporter import exporting
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.servers import Alertmanager, Prometheus
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told
from tests.ports import free_port

RULES = document(ALERTS, rules=failover(toleration=1))
SERVICES = ("cart", "checkout", "search")


@pytest.mark.parametrize("gossips", [True, False], ids=["gossiping", "split-brain"])
async def test_three_alerts_become_three_writes_whichever_alertmanager_posts_and_whichever_reactor_takes_them(
    shop: Shop, reactor: MakeReactor, tmp_path: Path, *, gossips: bool
) -> None:
    shop.splits(SERVICES, "fallback")
    async with AsyncExitStack() as stack:
        exporter = await stack.enter_async_context(exporting(*SERVICES))
        nats = await stack.enter_async_context(EmbeddedServer(tmp_path / "nats"))
        reactors = [reactor(RULES, name=name, bus={"url": nats.url}) for name in ("one", "two")]
        for one in reactors:
            await stack.enter_async_context(one)
        hooks = [f"{one.url}/v1/alerts/am" for one in reactors]
        ports = [free_port(), free_port()]
        alertmanagers = [
            Alertmanager(
                tmp_path / f"alertmanager-{own}", posts_to=hooks, gossip=own if gossips else 0,
                peers=[peer for peer in ports if gossips and peer != own],
            )
            for own in ports
        ]  # fmt: skip
        for alertmanager in alertmanagers:
            await stack.enter_async_context(alertmanager)
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[exporter.address], alertmanagers=alertmanagers)
        await stack.enter_async_context(prometheus)
        await reactors[0].settled(len(SERVICES))

        exporter.up = dict.fromkeys(SERVICES, False)
        await until(lambda: all(shop.moves(name) for name in SERVICES), "each service is failed over")

        # Each Alertmanager tells both reactors of each alert; of a pair that gossips only one does.
        posts = len(SERVICES) * len(reactors) * (1 if gossips else len(alertmanagers))

        async def all_posted() -> bool:
            return sum([await one.metric("reactor_webhook_posts_total", code="200") for one in reactors]) >= posts

        await until_told(all_posted, f"{posts} posts were taken")
        assert [await one.metric("reactor_webhook_posts_total", code="200") > 0 for one in reactors] == [True, True]
        assert [await one.metric("reactor_partitions_owned") > 0 for one in reactors] == [True, True]

        # The second wave of posts must do nothing: without a proof, resolved alone moves nothing back.
        exporter.up = dict.fromkeys(SERVICES, True)

        await until_told(partial(_all_resolved, reactors[0]), "both have heard that all alerts are resolved")
        assert {name: shop.moves(name) for name in SERVICES} == {name: ["away"] for name in SERVICES}
        assert len(shop.writes()) == len(SERVICES)


async def _all_resolved(service: Service) -> bool:
    """True if the deciders have each alert as resolved."""
    targets = [f"service/east/shop/{name}" for name in SERVICES]
    members = {target: member for group in await service.groups() for target, member in group.members.items()}
    return all(target in members and members[target].signals["am"].resolved for target in targets)

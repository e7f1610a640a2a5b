"""A source that floods the receiver or the bus delays its own messages, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bus import subjects
from bus.envelope import encode
from bus.jetstream import JetStreamBus
from bus.messages import Health, Observation
from bus.port import Outgoing
from bus.topology import FACTS
from reactor.demo.kube import write_kubeconfig
from reactor.runtime.clock import Clock
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import opened
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

ALERTS = 20_000
TARGETS = 500
POSTS = 2
AT_ONCE = 500
"""Observations of one publisher that are routed at once: fewer than by default, so that it shows."""
LATER_SECONDS = 2.0
"""Seconds by which an alert may be acted on later than otherwise."""
SLACK = 5.0
"""For a machine that is slow, and does other things too."""
SHOP = [f"shop-{number}" for number in range(8)]


def rules() -> str:
    hooks = {"am": "service/east/shop/{service}", "noise": "custom/{service}"}
    sources = [{"name": name, "kind": "AlertmanagerWebhook", "target": target} for name, target in hooks.items()]
    made: list[dict[str, Any]] = [
        {
            "name": "shop", "kind": "TrafficFailover", "mode": "Enforce", "tolerationSeconds": 0,
            "route": {"cluster": "east", "kind": "TrafficSplit", "selector": "team=shop"},
        },
        {"name": "noise", "kind": "Notification", "match": "custom/**", "tolerationSeconds": 600},
    ]  # fmt: skip
    ready = {"name": "ready", "kind": "EndpointsWatch", "cluster": "east", "namespace": "shop"}
    return yaml.safe_dump({"apiVersion": "reactor/v1", "sources": [*sources, ready], "rules": made}, sort_keys=False)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[tuple[Service, Shop]]:
    async with opened() as shop:
        shop.splits(SHOP, "fallback")
        clusters = {"east": {"kubeconfig": str(write_kubeconfig(tmp_path / "kubeconfig", shop.emulator))}}
        bus = {"store": str(tmp_path / "reactor" / "nats"), "observationsAtOnce": AT_ONCE}
        service = Service(tmp_path / "reactor", rules=rules(), settings={"clusters": clusters, "bus": bus})
        async with service:
            await service.settled(len(SHOP))
            yield service, shop


async def acted_within(service: Service, shop: Shop, name: str) -> float:
    posted = asyncio.get_running_loop().time()
    while await service.post(body(firing(name))) != 200:
        await asyncio.sleep(0.1)
    await until(lambda: shop.moves(name), f"{name} is acted on", within=120)
    return shop.writes(name)[0].at - posted


def flood(number: int) -> bytes:
    """Alerts of few targets, each with an identity of its own."""
    return body(
        *(
            firing(f"noise-{one % TARGETS}", fingerprint=f"{number:08x}{one:08x}", annotations={"summary": "x" * 200})
            for one in range(ALERTS)
        )
    )


@pytest.mark.alone
@pytest.mark.timeout(600)
async def test_posts_of_twenty_thousand_alerts_delay_no_other_source(place: tuple[Service, Shop]) -> None:
    service, shop = place
    names = iter(SHOP)
    alone = [await acted_within(service, shop, next(names)) for _ in range(2)]
    bodies = [flood(number) for number in range(POSTS)]

    async def posted() -> None:
        for raw in bodies:
            while (code := await service.post(raw, to="noise")) != 200:
                assert code == 503
                await asyncio.sleep(0.2)

    flooding = asyncio.create_task(posted())

    async def begun() -> bool:
        return await service.metric("reactor_webhook_posts_total", source="noise") > 0

    await until_told(begun, "the flood is on", within=60)
    beside = [await acted_within(service, shop, next(names)) for _ in range(4)]
    taken_by_then = await service.metric("reactor_webhook_alerts_total", source="noise")
    await flooding
    print(f"alone {alone}, beside the flood {beside}, of which {taken_by_then:.0f} alerts were taken by then")
    assert max(beside) < (max(alone) + LATER_SECONDS) * SLACK


async def said(bus: JetStreamBus, source: str, *targets: str, count: int = 1) -> None:
    """Publish as a source outside the reactor: `count` observations of each target."""
    now = Clock().now()
    await bus.publish_all([
        Outgoing(
            subjects.observation(source, target),
            encode(
                Observation(target=target, status=Health.UNHEALTHY, signal=source, observed_at=now),
                id=f"{number}", source=f"/{source}", time=now,
            ),
            f"{source}/{target}/{number}",
        )
        for number in range(count) for target in targets
    ])  # fmt: skip


async def heard_within(bus: JetStreamBus, shop: Shop, name: str) -> float:
    said_at = asyncio.get_running_loop().time()
    await said(bus, "watchdog", f"service/east/shop/{name}")
    await until(lambda: shop.moves(name), f"{name} is acted on", within=120)
    return shop.writes(name)[0].at - said_at


@pytest.mark.alone
@pytest.mark.timeout(600)
async def test_twenty_thousand_observations_of_one_publisher_delay_no_other(place: tuple[Service, Shop]) -> None:
    service, shop = place
    names = iter(SHOP)
    async with JetStreamBus.connect(service.bus_url, name="publishers") as bus:
        alone = [await heard_within(bus, shop, next(names)) for _ in range(2)]
        before = (await bus.extent(FACTS)).last
        await said(bus, "chatty", *(f"custom/c-{one}" for one in range(TARGETS)), count=ALERTS // TARGETS)
        beside = await heard_within(bus, shop, next(names))
        decided = (await bus.extent(FACTS)).last - before
    print(f"alone {alone}, behind {ALERTS} observations {beside:.1f} s, when {decided} of these were routed")
    assert decided < ALERTS / 2

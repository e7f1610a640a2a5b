"""A real Prometheus and a pair of real Alertmanagers that gossip, which see what an exporter says of each service."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.script import Plan
from tests.e2e.exporter import Exporter, exporting
from tests.e2e.servers import Alertmanager, Prometheus
from tests.ports import free_port

EVERY_SECONDS = 0.5
SEEN_AFTER = {"alerts": 2.5, "query": 1.5}
"""Seconds until what is exported is seen: a scrape, an evaluation, and for an alert the way through Alertmanager."""


def lacks() -> str:
    """Reason why Prometheus and Alertmanager cannot run here; empty: they can."""
    missing = [name for name in ("prometheus", "prometheus-alertmanager") if shutil.which(name) is None]
    return f"no {' and no '.join(missing)} on PATH: scripts/debian-packages fetches them" if missing else ""


@dataclass(slots=True)
class Alerting:
    """The servers, and what they see."""

    exporter: Exporter
    prometheus: Prometheus
    pair: Sequence[Alertmanager]

    def settings(self) -> dict[str, Any]:
        """Entries of a reactor's settings for these servers."""
        return {
            "prometheus": {"main": {"url": self.prometheus.url, "timeoutSeconds": 2}},
            "alertmanager": {str(number): {"url": one.url} for number, one in enumerate(self.pair)},
        }


def sources() -> list[dict[str, Any]]:
    """The alerts, and a query of the same metric for other targets."""
    return [
        {
            "name": "alerts", "kind": "AlertmanagerWebhook", "matchers": 'alertname="ShopDown"',
            "target": "service/east/shop/{service}",
            "confirm": {"prometheus": "main", "query": "shop_up == 1", "everySeconds": EVERY_SECONDS},
        },
        {
            "name": "query", "kind": "PrometheusQuery", "prometheus": "main", "query": "shop_up",
            "everySeconds": EVERY_SECONDS, "unhealthyWhen": {"below": 1}, "target": "service/query/shop/{service}",
        },
    ]  # fmt: skip


def wipe(server: Prometheus | Alertmanager) -> None:
    """Let a server that is down forget everything."""
    shutil.rmtree(server.folder / "data")


@asynccontextmanager
async def alerting(folder: Path, script: Sequence[Plan], receivers: Sequence[int]) -> AsyncIterator[Alerting]:
    """All of them, up. `receivers`: the ports at which reactors take posts."""
    services = [name for plan in script if plan.source in ("alerts", "query") for name in plan.backends]
    hooks = [f"http://127.0.0.1:{port}/v1/alerts/alerts" for port in receivers]
    async with AsyncExitStack() as stack:
        exporter = await stack.enter_async_context(exporting(*services))
        own, other = free_port(), free_port()
        pair = [
            Alertmanager(folder / f"alertmanager-{port}", posts_to=hooks, gossip=port, peers=[peer])
            for port, peer in ((own, other), (other, own))
        ]
        for one in pair:
            await stack.enter_async_context(one)
        prometheus = Prometheus(folder / "prometheus", scrapes=[exporter.address], alertmanagers=pair)
        await stack.enter_async_context(prometheus)
        yield Alerting(exporter, prometheus, pair)

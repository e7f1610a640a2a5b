"""Takes the place of Prometheus and Alertmanager in the demo: an alert on the error rate of the primary's service."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from reactor.demo import scene
from reactor.demo.demo_world import DemoWorld
from reactor.runtime.clock import Clock

log = logging.getLogger(__name__)

WINDOW_SECONDS = 20
"""Over so long the rate is taken, as `rate(...[20s])` would."""
FIRES_AFTER_SECONDS = 10
"""Seconds for which the rate has to be above the limit before it fires: `for: 10s`."""
LIMIT = 0.1


class ErrorAlert:
    """Scrapes each second, and posts when the alert fires and when it is over."""

    def __init__(self, world: DemoWorld, receiver_url: Callable[[], str], clock: Clock) -> None:
        self._world, self._receiver_url, self._clock = world, receiver_url, clock
        self._scraped: deque[tuple[float, float]] = deque(maxlen=WINDOW_SECONDS)
        self._above = 0
        self._firing = False

    async def run(self) -> None:
        """Watch, for as long as the demo runs."""
        while True:
            try:
                self._scraped.append(await self._scrape())
                await self._judge()
            except (aiohttp.ClientError, TimeoutError) as error:
                log.warning("the error rate cannot be watched: %r", error)
            await asyncio.sleep(1)

    async def _scrape(self) -> tuple[float, float]:
        """Give how many requests there were, and how many of them failed with an error of half of the service."""
        async with self._world.http.get(f"{self._world.services[scene.PRIMARY]}/metrics") as answer:
            text = await answer.text()
        samples = [
            one for family in text_string_to_metric_families(text) for one in family.samples
            if one.name == "http_requests_total"
        ]  # fmt: skip
        return sum(one.value for one in samples), sum(one.value for one in samples if one.labels["code"] >= "500")

    def _ratio(self) -> float:
        (first, bad_first), (last, bad_last) = self._scraped[0], self._scraped[-1]
        return (bad_last - bad_first) / (last - first) if last > first else 0.0

    async def _judge(self) -> None:
        self._above = self._above + 1 if self._ratio() > LIMIT else 0
        if self._above >= FIRES_AFTER_SECONDS and not self._firing:
            await self._post(firing=True)
        elif self._above == 0 and self._firing:
            await self._post(firing=False)

    async def _post(self, *, firing: bool) -> None:
        url = f"{self._receiver_url()}/v1/alerts/{scene.ALERTS}"
        body = scene.alert(firing=firing, at=self._clock.now())
        async with self._world.http.post(url, json=body) as answer:
            if answer.ok:
                self._firing = firing
            else:
                log.warning("the alert is posted again: HTTP %d", answer.status)

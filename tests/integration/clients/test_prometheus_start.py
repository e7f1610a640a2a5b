"""A real Prometheus that restarts: what it knows from before is no answer."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from reactor.clients.instant_queries import QueryFailed
from reactor.clients.prometheus_api import Prometheus
from reactor.settings.server_settings import Endpoint
from tests.e2e import servers
from tests.e2e.exporter import exporting

BEFORE, NOW = [1.0], [0.0]


async def values(client: Prometheus) -> list[float]:
    return [sample.value for sample in await client.query("shop_up")]


async def until_answered(client: Prometheus) -> tuple[list[float], list[str]]:
    """Ask until there is an answer; gives it, and what was said before."""
    refused: list[str] = []
    while True:
        try:
            return await values(client), refused
        except QueryFailed as error:
            refused.append(str(error))
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("wiped", [False, True])
async def test_no_answer_is_given_of_the_time_before_prometheus_was_started(tmp_path: Path, wiped: bool) -> None:
    async with exporting("checkout") as exporter:
        server = servers.Prometheus(tmp_path / "prometheus", scrapes=[exporter.address], first_scrape_after="3s")
        client = Prometheus("main", Endpoint.model_validate({"url": server.url}))
        async with server, asyncio.timeout(60):
            assert (await until_answered(client))[0] == BEFORE
            await server.kill()
            if wiped:
                shutil.rmtree(server.folder / "data")
            exporter.up["checkout"] = False
            await server.start()
            answer, refused = await until_answered(client)
            assert answer == NOW
            assert any("has not scraped" in one for one in refused), refused
            assert await values(client) == NOW
        await client.close()

"""Behaviour of NATS, Prometheus and Alertmanager that we rely on, on processes here and on the images of
docker-compose.yml.

The images are run where a Docker engine answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.jetstream import Credentials, JetStreamBus, provision
from bus.port import Outgoing
from reactor.clients.alertmanager_api import Alertmanager
from reactor.clients.instant_queries import QueryFailed
from reactor.clients.prometheus_api import Prometheus
from reactor.settings.server_settings import Endpoint
from tests.e2e import servers
from tests.e2e.exporter import exporting
from tests.e2e.waiting import until_told
from tests.kube.tiers import no_docker

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
START_SECONDS = 300  # an image may have to be fetched
OPTIONS = {
    "nats": ["--jetstream", "--http_port=8222"],
    "prometheus": ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"],
    "alertmanager": ["--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager"],
}
"""The images' own configuration: that of the Compose file is tested in tests/e2e/test_compose.py."""
Started = Callable[[str, Path], AbstractAsyncContextManager[str]]
"""(service, folder): starts a server of this name and gives its URL."""


@asynccontextmanager
async def process(service: str, folder: Path) -> AsyncIterator[str]:
    if service == "nats":
        async with EmbeddedServer(folder / "nats") as nats:
            yield nats.url
        return
    if service == "alertmanager":
        async with servers.Alertmanager(folder / service, posts_to=["http://127.0.0.1:9/"]) as alertmanager:
            yield alertmanager.url
        return
    async with (
        exporting("shop") as exporter,
        servers.Prometheus(folder / service, scrapes=[exporter.address]) as prometheus,
    ):
        yield prometheus.url


@asynccontextmanager
async def container(service: str, _folder: Path) -> AsyncIterator[str]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import HttpWaitStrategy

    scheme, port, health = {
        "nats": ("nats", 4222, HttpWaitStrategy(8222, "/healthz")),
        "prometheus": ("http", 9090, HttpWaitStrategy(9090, "/-/ready")),
        "alertmanager": ("http", 9093, HttpWaitStrategy(9093, "/-/ready")),
    }[service]
    made = DockerContainer(COMPOSE[service]["image"]).with_command(OPTIONS[service]).with_exposed_ports(port)
    if service == "nats":
        made = made.with_exposed_ports(port, 8222)
    made = made.waiting_for(health.with_startup_timeout(START_SECONDS))
    await asyncio.to_thread(made.start)
    try:
        yield f"{scheme}://{made.get_container_host_ip()}:{made.get_exposed_port(port)}"
    finally:
        await asyncio.to_thread(made.stop)


@pytest.fixture(params=["process", "container"])
def started(request: pytest.FixtureRequest) -> Started:
    if request.param == "container" and (why := no_docker()):
        pytest.skip(why)
    return {"process": process, "container": container}[request.param]


async def test_nats_keeps_what_is_published(started: Started, tmp_path: Path) -> None:
    async with (
        started("nats", tmp_path) as url,
        JetStreamBus.connect(url, name="test", credentials=Credentials(), patience=timedelta(seconds=10)) as bus,
    ):
        await provision(bus)
        await bus.publish(Outgoing(subjects.webhook("am"), b"{}", "one"))
        await bus.publish(Outgoing(subjects.webhook("am"), b"{}", "one"))
        assert (await bus.connection.api("STREAM.INFO.REACTOR_INBOX", {}))["state"]["messages"] == 1


async def test_prometheus_answers_a_query(started: Started, tmp_path: Path) -> None:
    async with started("prometheus", tmp_path) as url:
        client = Prometheus("main", Endpoint(url=url, timeout_seconds=10))  # type: ignore[arg-type]
        answers: list[float] = []

        async def answered() -> bool:
            try:
                answers.extend(sample.value for sample in await client.query("vector(42)"))
            except QueryFailed as error:  # until it has scraped once: what it answers may be from before
                if "has not scraped" not in str(error):
                    raise
            return bool(answers)

        try:
            await until_told(answered, "Prometheus has scraped once", within=60)
        finally:
            await client.close()
    assert answers == [42]


async def test_alertmanager_lists_an_alert_that_it_was_sent(started: Started, tmp_path: Path) -> None:
    alert: dict[str, Any] = {"labels": {"alertname": "ShopDown", "service": "checkout"}}
    async with started("alertmanager", tmp_path) as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/api/v2/alerts", json=[alert]) as answer:
            assert answer.status == 200
        client = Alertmanager("main", Endpoint(url=url))  # type: ignore[arg-type]
        try:
            listed = await client.alerts()
        finally:
            await client.close()
    assert [one["labels"] for one in listed] == [alert["labels"]]

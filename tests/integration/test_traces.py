"""Traces of a running process, as a collector gets them: from the webhook, and from the observation, to the write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reactor.demo import scene
from reactor.demo.demo_world import DemoWorld, world
from reactor.process.app import App
from reactor.runtime.clock import Clock
from reactor.settings.tracing_settings import Tracing
from tests.serving import serving

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
WITHIN = 60.0
Span = tuple[str, str, str, dict[str, Any]]
"""Name, trace, parent, attributes."""


class Collector:
    """A server that takes OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: dict[str, Span] = {}
        """By the span's own number."""
        self.authorization: set[str] = set()
        self._more = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        self.authorization.add(request.headers.get("Authorization", ""))
        said = ExportTraceServiceRequest.FromString(await request.read())
        for one in (span for r in said.resource_spans for s in r.scope_spans for span in s.spans):
            attributes = {key.key: key.value.string_value for key in one.attributes}
            self.spans[one.span_id.hex()] = one.name, one.trace_id.hex(), one.parent_span_id.hex(), attributes
        self._more.set()
        return web.Response(content_type="application/x-protobuf")

    async def until(self, found: Callable[[Span], Any]) -> tuple[str, Span]:
        """Wait for a span, and give its number and itself."""
        async with asyncio.timeout(WITHIN):
            while True:
                for number, one in self.spans.items():
                    if found(one):
                        return number, one
                self._more.clear()
                await self._more.wait()

    def way_to(self, number: str) -> list[str]:
        """The names of a span and of all that led to it, the first one first."""
        names: list[str] = []
        while number in self.spans:
            name, _, number, _ = self.spans[number]
            names.insert(0, name)
        return names


@asynccontextmanager
async def collecting() -> AsyncIterator[tuple[Collector, str]]:
    collector, app = Collector(), web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield collector, f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    finally:
        await runner.cleanup()


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[DemoWorld]:
    clock = Clock()
    async with world(tmp_path, clock) as built:
        text = built.rules.read_text().replace(f"tolerationSeconds: {scene.TOLERATION_SECONDS}", "tolerationSeconds: 1")
        built.rules.write_text(text.replace(f"recoverySeconds: {scene.RECOVERY_SECONDS}", "recoverySeconds: 1"))
        yield built


def written(span: Span) -> bool:
    return span[0] == "write" and span[3].get("reactor.outcome") == "Done"


async def post(app: App, body: Path) -> None:
    headers = {"Content-Type": "application/json", "traceparent": TRACEPARENT}
    url = f"{app.receiver_url}/v1/alerts/{scene.ALERTS}"
    async with aiohttp.ClientSession() as http, http.post(url, data=body.read_bytes(), headers=headers) as answer:
        assert answer.status == 200, await answer.text()


async def test_a_trace_leads_from_the_webhook_and_from_the_observation_to_the_write(
    shop: DemoWorld, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("token-of-the-collector\n")
    async with collecting() as (collector, url):
        tracing = Tracing.model_validate({"url": url, "bearerTokenFile": tmp_path / "token"})
        async with App(shop.settings().model_copy(update={"tracing": tracing})) as app:
            await collector.until(lambda span: span[0] == "observation" and span[3]["reactor.status"] == "Healthy")
            await shop.tell(scene.PRIMARY, broken=True)
            number, (_, away, _, attributes) = await collector.until(written)
            assert collector.way_to(number) == ["observation", "decide", "write"]
            assert attributes["reactor.rule"] == scene.RULE
            await shop.tell(scene.PRIMARY, broken=False)
            number, _ = await collector.until(lambda span: written(span) and span[1] != away)
            assert collector.way_to(number) == ["observation", "decide", "write"]
            await post(app, shop.alert(firing=True))
            number, _ = await collector.until(lambda span: written(span) and span[1] == TRACE)
            assert collector.way_to(number) == ["webhook", "route", "decide", "write"]
    assert collector.authorization == {"Bearer token-of-the-collector"}


async def test_a_collector_that_hangs_or_is_away_holds_up_neither_work_nor_the_end(shop: DemoWorld) -> None:
    async def hang(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with serving(hang) as port, asyncio.timeout(WITHIN):
        tracing = Tracing.model_validate({"url": f"http://127.0.0.1:{port}/v1/traces"})
        async with App(shop.settings().model_copy(update={"tracing": tracing})) as app:
            await post(app, shop.alert(firing=True))
            while not any(
                write.manager == "alert-reactor" for write in shop.emulator.writes.effective("trafficsplits")
            ):
                await asyncio.sleep(0.05)

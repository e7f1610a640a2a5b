"""A receiver that listens on loopback, with its bus in memory."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aiohttp

from bus.envelope import decode
from bus.messages import WebhookPost
from bus.port import Outgoing
from bus.testing.memory import MemoryBus
from bus.topology import ROUTERS
from reactor.settings.receiver_settings import HealthSettings, Receiver
from reactor.webhook.receiver import listening, listening_for_health
from reactor.webhook.webhook_server import WebhookServer
from tests.clock import HandClock

JSON = {"Content-Type": "application/json", "User-Agent": "Alertmanager/0.25.0"}
AT_ONCE = timedelta(milliseconds=50)


class SlowBus:
    """A bus that confirms when it is let go."""

    def __init__(self, bus: MemoryBus) -> None:
        self._bus = bus
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        self.asked.set()
        await self.go.wait()
        await self._bus.publish_all(messages)


class Reception:
    """The receiver's outside, as Alertmanager sees it, and what lies in the journal."""

    def __init__(self, settings: Receiver, clock: HandClock, bus: MemoryBus) -> None:
        self.clock = clock
        self.bus = bus
        self.unready: list[str] = []
        self.asked_ready = 0
        self.server = WebhookServer(settings, sources=["am", "team.ops"], bus=bus, ready=self._ready, clock=clock)
        self.session: aiohttp.ClientSession
        self.url = ""
        self.health_url = ""

    async def _ready(self) -> list[str]:
        self.asked_ready += 1
        await self.bus.probe()
        return self.unready

    async def post(
        self, raw: Any, *, to: str = "/v1/alerts/am", headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Post without following redirects; give the code and the JSON of the answer."""
        raw = io.BytesIO(raw) if isinstance(raw, bytes) else raw
        headers = {**JSON, **(headers or {})}
        async with self.session.post(self.url + to, data=raw, headers=headers, allow_redirects=False) as answer:
            return answer.status, await answer.json()

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(self.url + path, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def connect(self, *, peer: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection, from this address of ours, and say nothing."""
        host, port = self.url.rpartition("/")[2].split(":")
        return await asyncio.open_connection(host, int(port), local_addr=(peer, 0))

    async def raw(self, text: bytes, *, close: bool = False) -> bytes:
        """Send bytes, and give the head of the answer; empty where the other side closes without one."""
        reader, writer = await self.connect()
        writer.write(text)
        if close:
            writer.write_eof()
        try:
            async with asyncio.timeout(60):
                return await reader.readuntil(b"\r\n\r\n")
        except (ConnectionResetError, asyncio.IncompleteReadError):
            return b""
        finally:
            writer.close()

    async def journal(self) -> list[WebhookPost]:
        """Take what waits for routers."""
        async with self.bus.work(ROUTERS, batch=1000) as work:
            deliveries = await work.next(AT_ONCE)
            await work.ack(deliveries)
        return [decode(delivery.body).data for delivery in deliveries]


@asynccontextmanager
async def reception(**settings: Any) -> AsyncIterator[Reception]:
    clock = HandClock()
    receiver = Receiver(**{"listen": "127.0.0.1:0", "alerts_per_second": 1_000_000, **settings})
    one = Reception(receiver, clock, MemoryBus(clock.now))
    health = listening_for_health(one.server, HealthSettings(), ("127.0.0.1", 0))
    async with listening(one.server) as one.url, health as one.health_url, aiohttp.ClientSession() as one.session:
        yield one

"""A stream that falls silent without an end, as a cable that is pulled: what is old is marked within 3 seconds."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from reactor.runtime.clock import Clock
from tests.browser import Browser
from tests.integration.web.conftest import Start

BAR_SECONDS = 3.0
WATCH = """(window.marked = 0, new MutationObserver(() => {
  if (!window.marked && document.querySelector('.stalebar')) window.marked = Date.now();
}).observe(document.body, {childList: true, subtree: true}), true)"""


class Cable:
    """Carries bytes to the page's server until it is cut: then connections stay open and nothing passes."""

    def __init__(self, url: str) -> None:
        self.cut = asyncio.Event()
        self._host, self._port = urlsplit(url).hostname, urlsplit(url).port

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection both ways."""
        there, back = await asyncio.open_connection(self._host, self._port)
        await asyncio.gather(self._carry(reader, back), self._carry(there, writer))

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                if self.cut.is_set():
                    await asyncio.Event().wait()
                sink.write(data)
                await sink.drain()
        finally:
            sink.close()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[str]:
        """Listen while the block runs; gives the URL."""
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self.connected(reader, writer))
            tasks.add(task)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.alone
async def test_what_is_old_is_marked_within_3_seconds_of_a_stream_that_falls_silent(
    start: Start, browser: Browser
) -> None:
    scene, clock = await start(), Clock()
    await scene.break_checkout()
    cable = Cable(scene.url)
    async with cable.laid() as url:
        await browser.go(f"{url}/")
        await browser.until("document.querySelector('#counting') !== null")
        assert await browser.ask("document.querySelector('.stalebar') === null")
        await browser.ask(WATCH)
        cable.cut.set()
        cut_at = clock.now().timestamp()
        marked = await browser.until("window.marked") / 1000
    assert marked - cut_at <= BAR_SECONDS


@pytest.mark.alone
async def test_what_is_old_is_marked_within_3_seconds_of_a_bus_that_hangs(start: Start, browser: Browser) -> None:
    scene, clock = await start(), Clock()
    server = scene.app.server
    assert server is not None
    await scene.break_checkout()
    await browser.go(f"{scene.url}/")
    await browser.until("document.querySelector('#counting') !== null")
    await browser.ask(WATCH)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        stopped_at = clock.now().timestamp()
        marked = await browser.until("window.marked") / 1000
        assert "the bus does not answer" in await browser.ask("document.querySelector('.stalebar').textContent")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert marked - stopped_at <= BAR_SECONDS
    await browser.until("document.querySelector('.stalebar') === null")

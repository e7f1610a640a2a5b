"""The service that is watched and broken."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from reactor.demo.children import child
from reactor.demo.errors import ChildFailed
from reactor.demo.service import Service, serving
from tests.integration.demo.processes import runs, until

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def service() -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a service."""
    async with serving(Service("checkout"), "127.0.0.1", 0) as url, aiohttp.ClientSession(base_url=url) as session:
        yield session


async def status(service: aiohttp.ClientSession, path: str) -> int:
    async with service.get(path) as answer:
        return answer.status


async def post(service: aiohttp.ClientSession, path: str) -> int:
    async with service.post(path) as answer:
        return answer.status


async def test_it_answers_with_its_name(service: aiohttp.ClientSession) -> None:
    async with service.get("/") as answer:
        assert answer.status == 200
        assert await answer.json() == {"service": "checkout", "healthy": True}


async def test_it_breaks_as_told_and_heals(service: aiohttp.ClientSession) -> None:
    assert await post(service, "/break?status=500") == 200
    assert (await status(service, "/"), await status(service, "/healthz")) == (500, 500)
    assert await post(service, "/break") == 200
    assert await status(service, "/healthz") == 503
    assert await post(service, "/heal") == 200
    assert (await status(service, "/"), await status(service, "/healthz")) == (200, 200)


@pytest.mark.parametrize("text", ["200", "600", "-1", "bad", "٥٠٣", ""])
async def test_it_is_not_broken_by_what_is_no_error(service: aiohttp.ClientSession, text: str) -> None:
    assert await post(service, f"/break?status={text}") == 400
    assert await status(service, "/healthz") == 200


async def test_only_a_post_breaks_it(service: aiohttp.ClientSession) -> None:
    assert await status(service, "/break") == 405
    assert await status(service, "/healthz") == 200


async def test_prometheus_can_scrape_it_also_while_it_is_broken(service: aiohttp.ClientSession) -> None:
    await status(service, "/")
    await post(service, "/break")
    await status(service, "/")
    async with service.get("/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = await answer.text()
    assert 'http_requests_total{code="200",path="/",service="checkout"} 1.0' in text
    assert 'http_requests_total{code="503",path="/",service="checkout"} 1.0' in text
    assert 'service_healthy{service="checkout"} 0.0' in text


async def test_as_a_process_it_says_where_it_is_and_ends_with_its_block(tmp_path: Path) -> None:
    arguments = ("--port", "0", "--name", "west")
    async with child("west", "reactor.demo.service", *arguments, log=tmp_path / "log") as running:
        url = await running.first_line()
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert (await answer.json())["service"] == "west"
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)


async def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with serving(Service("first"), "127.0.0.1", 0) as url:
        port = url.rpartition(":")[2]
        async with child("second", "reactor.demo.service", "--port", port, log=tmp_path / "log") as running:
            with pytest.raises(ChildFailed, match=r"second ended with code 1:\n.*address already in use"):
                await running.first_line()


MIDDLE = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "reactor.demo.service", "--port", "0", "--parent", str(os.getpid())])
print(child.pid, flush=True)
child.wait()
"""


async def test_it_ends_when_its_parent_is_killed() -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", MIDDLE, stdout=PIPE, cwd=ROOT)
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert (await parent.stdout.readline()).startswith(b"http://")  # it serves
    assert runs(pid)
    parent.kill()
    await parent.wait()
    await until(lambda: not runs(pid), "the service ends")


async def test_it_does_not_run_for_a_parent_that_is_not_its_own() -> None:
    orphan = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "reactor.demo.service", "--port", "0", "--parent", "1", stdout=PIPE, cwd=ROOT
    )
    said, _ = await orphan.communicate()
    assert (orphan.returncode, said) == (1, b"")


async def test_sigterm_ends_it_in_good_order() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "reactor.demo.service", "--port", "0", stdout=PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    await process.stdout.readline()
    os.kill(process.pid, signal.SIGTERM)
    assert await process.wait() == 0

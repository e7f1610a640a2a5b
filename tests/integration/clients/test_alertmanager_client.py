"""Asking an Alertmanager what it holds."""

from __future__ import annotations

import asyncio
import json
import resource
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from reactor.clients.alertmanager_api import Alertmanager, AlertsRefused, AlertsUnavailable, elements
from reactor.runtime.errors import SettingsError
from reactor.settings.server_settings import Endpoint
from tests.integration.bus.authority import certificates
from tests.integration.clients.renewed import https

ALERT = {"fingerprint": "f1", "labels": {"alertname": "Down"}, "status": {"state": "active"}}


class Server:
    """Answers as it is told."""

    def __init__(self) -> None:
        self.answer: Any = [ALERT]
        self.status = 200
        self.silent = False
        self.bomb: bytes | None = None
        self.asked: list[web.BaseRequest] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        if self.silent:
            await asyncio.sleep(60)
        if self.bomb is not None:
            return web.Response(body=self.bomb, headers={"Content-Encoding": "gzip"})
        if isinstance(self.answer, str):
            return web.Response(text=self.answer, status=self.status, headers={"Location": "/login"})
        return web.json_response(self.answer, status=self.status)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    runner = web.ServerRunner(web.Server(made.handle, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def client(server: Server, **more: Any) -> Alertmanager:
    return Alertmanager("main", Endpoint.model_validate({"url": server.url + "/am/", **more}))


async def test_all_alerts_are_asked_for_silenced_ones_among_them(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    alertmanager = client(server, bearerTokenFile=token)
    assert await alertmanager.alerts() == [ALERT]
    await alertmanager.close()
    (asked,) = server.asked
    assert asked.path == "/am/api/v2/alerts"
    assert dict(asked.query) == dict.fromkeys(("active", "silenced", "inhibited", "unprocessed"), "true")
    assert asked.headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (302, "moved", AlertsRefused), (401, "no", AlertsRefused), (404, "no", AlertsRefused),
        (429, "slow", AlertsUnavailable), (500, "oh", AlertsUnavailable), (502, "<html>", AlertsUnavailable),
        (200, "<html>", AlertsUnavailable), (200, {}, AlertsUnavailable), (200, [7], AlertsUnavailable),
    ],
)  # fmt: skip
async def test_an_answer_that_is_none_is_an_error(
    server: Server, status: int, answer: Any, error: type[Exception]
) -> None:
    server.status, server.answer = status, answer
    alertmanager = client(server)
    with pytest.raises(error, match=r"alertmanager\.main"):
        await alertmanager.alerts()
    await alertmanager.close()


async def test_silence_is_given_up(server: Server) -> None:
    server.silent = True
    alertmanager = client(server, timeoutSeconds=0.1)
    with pytest.raises(AlertsUnavailable):
        await alertmanager.alerts()
    await alertmanager.close()


async def test_more_alerts_than_allowed_are_an_error(server: Server) -> None:
    server.answer = [ALERT] * 3
    alertmanager = client(server, maxSeries=2)
    with pytest.raises(AlertsRefused, match=r"raise alertmanager\.main\.maxSeries"):
        await alertmanager.alerts()
    await alertmanager.close()


@pytest.mark.parametrize("ask", [Alertmanager.alerts, Alertmanager.configuration])
async def test_an_answer_with_too_many_bytes_is_refused_before_it_fills_the_memory(
    server: Server, ask: Callable[[Alertmanager], Awaitable[object]]
) -> None:
    """400 kB of gzip that become 400 MB."""
    packer = zlib.compressobj(wbits=31)
    server.bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(400)) + packer.flush()
    alertmanager = client(server, maxBytes=10_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(AlertsRefused, match=r"more than 10000000 bytes: raise alertmanager\.main\.maxBytes"):
        await ask(alertmanager)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB
    server.bomb = None
    assert await alertmanager.alerts() == [ALERT]
    await alertmanager.close()


async def test_a_ca_file_that_is_none_is_a_setting_to_mend(server: Server, tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    alertmanager = client(server, caFile=bad)
    with pytest.raises(SettingsError, match=r"alertmanager\.main\.caFile"):
        await alertmanager.alerts()
    await alertmanager.close()


@given(st.lists(st.recursive(st.none() | st.floats(allow_nan=False) | st.text(), st.lists)), st.sampled_from([None, 2]))
def test_an_array_is_read_element_by_element_as_a_whole_reader_would(raw: list[Any], indent: int | None) -> None:
    assert list(elements(json.dumps(raw, indent=indent) + "\n")) == raw


@pytest.mark.parametrize(
    "text", ["", " ", "{}", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1] 2", "[1]]", "nonsense"]
)
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(elements(text))


async def test_a_ca_that_is_renewed_while_we_run_is_taken_at_the_next_request(server: Server, tmp_path: Path) -> None:
    async with https(server.handle, tmp_path) as url:
        asked = Alertmanager("main", Endpoint.model_validate({"url": url, "caFile": tmp_path / "ca.pem"}))
        assert await asked.alerts() == [ALERT]
        await asyncio.to_thread(certificates, tmp_path)
        assert await asked.alerts() == [ALERT]
        await asked.close()

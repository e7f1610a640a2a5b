"""PromQL over HTTP: answers recorded from Prometheus 3, and all the ways not to answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import resource
import threading
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from reactor.clients.instant_queries import QueryFailed, QueryRefused, Sample
from reactor.clients.prometheus_api import Prometheus
from reactor.runtime import telemetry
from reactor.settings.server_settings import Endpoint
from tests.integration.bus.authority import certificates
from tests.integration.clients.renewed import https

VECTOR = {
    "status": "success",
    "data": {
        "resultType": "vector",
        "result": [
            {"metric": {"__name__": "up", "job": "node"}, "value": [1435781451.781, "1"]},
            {"metric": {"job": "odd"}, "value": [1435781451.781, "NaN"]},
            {"metric": {}, "value": [1435781451.781, "+Inf"]},
        ],
    },
}
SCALAR = {"status": "success", "data": {"resultType": "scalar", "result": [1435781451.781, "3.5"]}}
EMPTY = {"status": "success", "data": {"resultType": "vector", "result": []}}
MATRIX = {
    "status": "success",
    "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1435781451.781, "1"]]}]},
}
MANY_TO_MANY = {"status": "error", "errorType": "execution", "error": "many-to-many matching not allowed"}
BAD_DATA = {"status": "error", "errorType": "bad_data", "error": 'invalid parameter "query": 1:3: parse error'}


class Server:
    """Answers every query with the same thing, and remembers how it was asked."""

    def __init__(self) -> None:
        self.answer: Any = VECTOR
        self.status = 200
        self.silent = False
        self.asked: list[web.BaseRequest] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if not request.path.endswith("/api/v1/query"):
            return web.Response(status=404)  # like Thanos, which has no status API
        self.asked.append(request)
        if self.silent:
            await asyncio.sleep(60)
        if isinstance(self.answer, str):
            return web.Response(text=self.answer, status=self.status, content_type="text/html")
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


@pytest.fixture
async def prometheus(server: Server) -> AsyncIterator[Prometheus]:
    client = Prometheus("main", Endpoint(url=server.url, timeout_seconds=5))  # type: ignore[arg-type]
    yield client
    await client.close()


def client(server: Server, **more: Any) -> Prometheus:
    return Prometheus("main", Endpoint.model_validate({"url": server.url + "/prom/", **more}))


async def test_a_vector_is_its_series(prometheus: Prometheus) -> None:
    up, odd, infinite = await prometheus.query("up")
    assert up == Sample({"__name__": "up", "job": "node"}, 1.0, 1435781451.781)
    assert math.isnan(odd.value)
    assert infinite == Sample({}, math.inf, 1435781451.781)


async def test_a_scalar_is_one_series_without_labels(server: Server, prometheus: Prometheus) -> None:
    server.answer = SCALAR
    assert await prometheus.query("3.5") == [Sample({}, 3.5, 1435781451.781)]


async def test_a_warning_about_the_query_is_counted_and_told_once(
    server: Server, prometheus: Prometheus, caplog: pytest.LogCaptureFixture
) -> None:
    odd = "PromQL warning: encountered a mix of histograms and floats for aggregation"
    server.answer = VECTOR | {"warnings": [odd]}
    before = telemetry.prometheus_warnings.labels("main")._value.get()
    for _ in range(3):
        assert len(await prometheus.query("up")) == 3
    assert telemetry.prometheus_warnings.labels("main")._value.get() - before == 3
    [told] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert told.__dict__["warning"] == odd


@pytest.mark.parametrize("partial", [{"warnings": ["remote_read: connection refused"]}, {"isPartial": True}])
async def test_an_answer_of_a_part_of_the_data_is_no_answer(
    server: Server, prometheus: Prometheus, partial: dict[str, Any]
) -> None:
    """A series that it lacks would count as one that has left: as bad, or as recovered."""
    server.answer = EMPTY | partial
    with pytest.raises(QueryFailed, match="a part of the data only"):
        await prometheus.query("up == 0")
    server.answer = EMPTY | {"isPartial": False, "warnings": []}
    assert await prometheus.query("up == 0") == []


async def test_no_series_are_no_error(server: Server, prometheus: Prometheus) -> None:
    server.answer = EMPTY
    assert await prometheus.query("up == 2") == []


async def test_a_query_is_limited_in_time_and_series_and_refuses_half_answers(
    server: Server, prometheus: Prometheus
) -> None:
    await prometheus.query('up{job="a b"}', at=datetime(2026, 1, 1, tzinfo=UTC))
    (asked,) = server.asked
    assert dict(asked.query) == {
        "query": 'up{job="a b"}',
        "time": "1767225600.0",
        "timeout": "5",
        "limit": "10001",
        "partial_response": "false",
    }


async def test_too_many_series_are_an_error_and_not_a_flood(server: Server) -> None:
    few = client(server, maxSeries=2)
    with pytest.raises(QueryRefused, match=r"more than 2 series: .* raise prometheus\.main\.maxSeries"):
        await few.query("up")
    await few.close()


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (400, BAD_DATA, QueryRefused), (401, "no", QueryRefused), (403, "no", QueryRefused), (404, "no", QueryRefused),
        (422, MANY_TO_MANY, QueryFailed), (429, "slow down", QueryFailed), (500, "oh", QueryFailed),
        (502, "<html>", QueryFailed), (503, BAD_DATA, QueryFailed),
        (200, "<html>login</html>", QueryFailed), (200, {"status": "success"}, QueryFailed), (200, [], QueryFailed),
        (200, {"data": {"result": {"a": 1}}}, QueryRefused), (200, {"data": {"result": [7]}}, QueryFailed),
        (200, {"data": {"result": [{"metric": 7, "value": [1, "1"]}]}}, QueryFailed),
        (200, {"data": {"result": [{"metric": {}, "value": [1, "x"]}]}}, QueryFailed),
        (200, MATRIX, QueryRefused),
    ],
)  # fmt: skip
async def test_an_answer_that_is_none_is_an_error_and_never_an_empty_result(
    server: Server, prometheus: Prometheus, status: int, answer: Any, error: type[Exception]
) -> None:
    server.status, server.answer = status, answer
    with pytest.raises(error, match=r"prometheus\.main"):
        await prometheus.query("up")
    assert len(server.asked) == 1  # no hidden retries: the schedule asks again


async def test_a_server_that_is_silent_is_given_up(server: Server) -> None:
    server.silent = True
    hasty = client(server, timeoutSeconds=0.1)
    with pytest.raises(QueryFailed):
        await hasty.query("up")
    await hasty.close()


async def test_a_server_that_is_not_there_is_a_failure() -> None:
    nobody = Prometheus("main", Endpoint.model_validate({"url": "http://127.0.0.1:1"}))
    with pytest.raises(QueryFailed, match="main"):
        await nobody.query("up")
    await nobody.close()


async def test_a_token_is_read_again_for_every_query(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    bearer = client(server, bearerTokenFile=token)
    await bearer.query("up")
    token.write_text("two\n")
    await bearer.query("up")
    assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer one", "Bearer two"]
    assert server.asked[0].path == "/prom/api/v1/query"
    token.unlink()
    with pytest.raises(QueryRefused, match="cannot read the secret file"):
        await bearer.query("up")
    await bearer.close()


async def test_a_user_and_password_are_sent(server: Server, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("se:cret\n")
    basic = client(server, basicUser="ann", basicPasswordFile=password)
    await basic.query("up")
    assert server.asked[0].headers["Authorization"] == "Basic " + b64encode(b"ann:se:cret").decode()
    await basic.close()


async def test_credentials_in_netrc_are_nobodys_business(
    server: Server, prometheus: Prometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login x password y\n")
    monkeypatch.setenv("NETRC", str(netrc))
    await prometheus.query("up")
    assert "Authorization" not in server.asked[0].headers


async def test_a_missing_ca_file_is_told(server: Server, tmp_path: Path) -> None:
    untrusting = Prometheus(
        "main", Endpoint.model_validate({"url": "https://127.0.0.1:1", "caFile": tmp_path / "ca.pem"})
    )
    with pytest.raises(QueryFailed, match=r"ca\.pem"):
        await untrusting.query("up")
    await untrusting.close()


async def test_a_ca_that_is_renewed_while_we_run_is_taken_at_the_next_connection(
    server: Server, tmp_path: Path
) -> None:
    async with https(server.handle, tmp_path) as url:
        asked = Prometheus("main", Endpoint.model_validate({"url": url, "caFile": tmp_path / "ca.pem"}))
        for _ in range(2):
            assert len(await asked.query("up")) == 3
            await asyncio.to_thread(certificates, tmp_path)
        await asked.close()


async def test_an_answer_with_too_many_bytes_is_refused_before_it_fills_the_memory() -> None:
    """400 kB of gzip that become 400 MB."""
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(400)) + packer.flush()

    async def handle(_: web.BaseRequest) -> web.Response:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=bomb, headers=headers)

    async with served(handle) as url:
        bombed = Prometheus("main", Endpoint(url=url))  # type: ignore[arg-type]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(QueryRefused, match=r"more than 10240000 bytes.*raise prometheus.main.maxBytes"):
            await bombed.query("up")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB
        await bombed.close()


async def test_what_is_allowed_in_bytes_is_a_setting(server: Server) -> None:
    for bytes_max, fits in ((1024, False), (1 << 20, True)):
        bounded = client(server, max_bytes=bytes_max)
        server.answer = VECTOR | {"padding": "x" * 2000}
        if fits:
            assert len(await bounded.query("up")) == 3
        else:
            with pytest.raises(QueryRefused, match="1024 bytes"):
                await bounded.query("up")
        await bounded.close()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "])
async def test_a_server_that_drips_holds_no_thread_and_the_next_query_is_answered(head: bytes) -> None:
    """In the body or in the headers: each byte comes well before any time-out of a read."""
    dripping = asyncio.Event()
    dripping.set()

    handlers = set[asyncio.Task[None] | None]()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            text = json.dumps(VECTOR).encode()
            whole = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(text) + text
            writer.write(head if dripping.is_set() else whole)
            while dripping.is_set():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    prometheus = Prometheus("main", Endpoint(url=url, timeout_seconds=0.2))  # type: ignore[arg-type]
    asked = await asyncio.gather(*(prometheus.query("up") for _ in range(16)), return_exceptions=True)
    assert {type(one) for one in asked} == {QueryFailed}
    async with asyncio.timeout(60):
        while any(thread.name == "prometheus-main" for thread in threading.enumerate()):
            await asyncio.sleep(0.01)
    dripping.clear()
    patient = Prometheus("main", Endpoint(url=url, timeout_seconds=20))  # type: ignore[arg-type]
    assert len(await patient.query("up", at=datetime(2026, 1, 1, tzinfo=UTC))) == 3
    await prometheus.close()
    await patient.close()
    server.close()
    await asyncio.wait([one for one in handlers if one is not None])


async def test_no_more_queries_than_its_setting_says_are_asked_at_once() -> None:
    at_once, most, full = 0, 0, asyncio.Event()

    async def handle(_: web.BaseRequest) -> web.Response:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if most == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0.05)  # one more would be here by now
        at_once -= 1
        return web.json_response(VECTOR)

    async with served(handle) as url:
        endpoint = Endpoint.model_validate({"url": url, "queriesAtOnce": 3})
        prometheus = Prometheus("main", endpoint)
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        assert len(await asyncio.gather(*(prometheus.query("up", at=moment) for _ in range(9)))) == 9
        await prometheus.close()
    assert most == 3


async def test_closing_ends_the_queries_that_still_run(server: Server) -> None:
    server.silent = True
    prometheus = client(server, timeout_seconds=200)
    query = asyncio.create_task(prometheus.query("up"))
    while not server.asked:
        await asyncio.sleep(0.01)
    await prometheus.close()
    async with asyncio.timeout(60):
        with pytest.raises(QueryFailed):
            await query


@asynccontextmanager
async def served(handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()

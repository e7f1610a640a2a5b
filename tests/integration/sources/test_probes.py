"""Probes against real servers on loopback."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import web

from bus.messages import Health
from reactor.runtime.telemetry import REGISTRY
from reactor.sources.probes import grpc_probe, http_probe, tcp_probe
from reactor.sources.probes.health_v1 import CHECK
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import GrpcProbe, HttpProbe, TcpProbe
from tests.integration.sources.conftest import Heard, Running
from tests.serving import serving

TARGET = "service/east/shop/checkout"
QUICK: dict[str, Any] = {
    "name": "probe", "target": TARGET, "every_seconds": 0.1, "timeout_seconds": 0.5, "failure_threshold": 2
}  # fmt: skip

PATIENT: dict[str, Any] = {**QUICK, "timeout_seconds": 1.5, "every_seconds": 2.0}


class Shop:
    """A service that answers as it is told."""

    def __init__(self) -> None:
        self.status = 200
        self.body = "ok"
        self.headers: dict[str, str] = {}
        self.silent = False
        self.seen: list[web.BaseRequest] = []
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append(request)
        if self.silent:
            await asyncio.sleep(60)
        return web.Response(status=self.status, text=self.body, headers=self.headers)


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    service = Shop()
    runner = web.ServerRunner(web.Server(service.answer, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield service
    await runner.cleanup()


def http(shop: Shop, path: str = "/", **more: Any) -> HttpProbe:
    return HttpProbe(kind="HttpProbe", url=shop.url + path, **{**QUICK, **more})


async def test_a_service_that_answers_is_healthy(
    world: SourceContext, heard: Heard, shop: Shop, running: Running
) -> None:
    async with running(http_probe.run(http(shop, headers={"X-Who": "us"}), world)):
        said = await heard.status(TARGET, Health.HEALTHY)
    assert said.detail == "HTTP 200"
    assert (said.signal, said.stale_seconds) == ("probe", 90)
    assert (shop.seen[0].method, shop.seen[0].headers["X-Who"]) == ("GET", "us")


async def test_a_service_that_fails_is_unhealthy_and_recovers(
    world: SourceContext, heard: Heard, shop: Shop, running: Running
) -> None:
    async with running(http_probe.run(http(shop), world)):
        await heard.status(TARGET, Health.HEALTHY)
        shop.status = 503
        said = await heard.status(TARGET, Health.UNHEALTHY)
        assert said.detail == "HTTP 503, expected 200-399"
        shop.status = 200
        await heard.status(TARGET, Health.HEALTHY)


@pytest.mark.parametrize(
    ("more", "status", "body"),
    [
        ({"expect_body": r'"status":\s*"ok"'}, 200, '{"status": "bad"}'),
        ({"expect_body": "late"}, 200, "x" * (64 << 10) + "late"),
        ({"expect_status": "200"}, 204, ""),
        ({"expect_status": 404}, 200, ""),
    ],
)
async def test_an_answer_that_is_not_as_expected_is_a_failure(
    world: SourceContext, heard: Heard, shop: Shop, running: Running, more: dict[str, Any], status: int, body: str
) -> None:
    shop.status, shop.body = status, body
    async with running(http_probe.run(http(shop, **more), world)):
        await heard.status(TARGET, Health.UNHEALTHY)
    assert heard.statuses(TARGET) == [Health.UNHEALTHY]


async def test_a_body_that_matches_is_healthy(world: SourceContext, heard: Heard, shop: Shop, running: Running) -> None:
    shop.body = "x" * 1000 + '{"status": "ok"}'
    async with running(http_probe.run(http(shop, expect_body=r'"status":\s*"ok"'), world)):
        await heard.status(TARGET, Health.HEALTHY)


async def test_silence_is_a_failure(world: SourceContext, heard: Heard, shop: Shop, running: Running) -> None:
    shop.silent = True
    async with running(http_probe.run(http(shop, timeout_seconds=0.1, failure_threshold=1), world)):
        said = await heard.status(TARGET, Health.UNHEALTHY)
    assert said.detail == "no answer within 0.1 s"


async def test_a_redirect_is_an_answer_and_not_followed(
    world: SourceContext, heard: Heard, shop: Shop, running: Running
) -> None:
    shop.status, shop.headers = 302, {"Location": "/elsewhere"}
    async with running(http_probe.run(http(shop), world)):
        await heard.status(TARGET, Health.HEALTHY)
    assert {request.path for request in shop.seen} == {"/"}


@pytest.mark.parametrize("where", ["http://169.254.169.254/", "http://0xa9fea9fe/", "http://[fe80::1]/"])
async def test_a_redirect_to_a_metadata_address_is_not_followed(
    world: SourceContext, heard: Heard, shop: Shop, running: Running, where: str
) -> None:
    shop.status, shop.headers = 302, {"Location": where}
    async with running(http_probe.run(http(shop, follow_redirects=True, failure_threshold=1), world)):
        said = await heard.status(TARGET, Health.UNHEALTHY)
    assert "no probe connects there" in said.detail


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://[::ffff:a9fe:a9fe]/", "http://0xa9fea9fe/"])
async def test_a_metadata_address_is_not_asked(world: SourceContext, heard: Heard, running: Running, url: str) -> None:
    source = HttpProbe(kind="HttpProbe", url=url, **{**QUICK, "failure_threshold": 1})
    async with running(http_probe.run(source, world)):
        said = await heard.status(TARGET, Health.UNHEALTHY)
    assert "no probe connects there" in said.detail


async def test_a_name_that_does_not_resolve_is_a_failure(world: SourceContext, heard: Heard, running: Running) -> None:
    source = HttpProbe(kind="HttpProbe", url="http://nowhere.invalid/", **{**QUICK, "timeout_seconds": 5})
    async with running(http_probe.run(source, world)):
        await heard.status(TARGET, Health.UNHEALTHY)


async def test_our_own_mistake_is_unknown_and_counted(
    world: SourceContext, heard: Heard, shop: Shop, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted() -> float:
        labels = {"source": "probe", "reason": "ZeroDivisionError"}
        return REGISTRY.get_sample_value("reactor_source_errors_total", labels) or 0.0

    before = counted()
    async with running(http_probe.run(http(shop), world)):
        await heard.status(TARGET, Health.HEALTHY)
        monkeypatch.setattr(http_probe, "accepts", lambda *_: 1 / 0)
        await heard.status(TARGET, Health.UNKNOWN)
        assert counted() > before
        monkeypatch.undo()
        await heard.status(TARGET, Health.HEALTHY)


async def test_an_open_port_is_healthy_and_a_closed_one_is_not(
    world: SourceContext, heard: Heard, running: Running
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with AsyncExitStack() as open_port:
        port = await open_port.enter_async_context(serving(greet))
        async with running(tcp_probe.run(TcpProbe(kind="TcpProbe", host="localhost", port=port, **QUICK), world)):
            await heard.status(TARGET, Health.HEALTHY)
            await open_port.aclose()
            await heard.status(TARGET, Health.UNHEALTHY)


async def test_no_port_of_a_metadata_address_is_opened(world: SourceContext, heard: Heard, running: Running) -> None:
    source = TcpProbe(kind="TcpProbe", host="169.254.169.254", port=80, **QUICK)
    async with running(tcp_probe.run(source, world)):
        said = await heard.status(TARGET, Health.UNHEALTHY)
    assert "no probe connects there" in said.detail


class HealthService(grpc.GenericRpcHandler):  # type: ignore[misc]
    """grpc.health.v1, with an answer in bytes."""

    def __init__(self) -> None:
        self.answer = b"\x08\x01"
        self.asked: list[bytes] = []
        self.port = 0

    def service(self, handler_call_details: Any) -> Any:
        if handler_call_details.method != CHECK:
            return None

        async def check(request: bytes, context: Any) -> bytes:
            self.asked.append(request)
            if not self.answer:
                await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
            return self.answer

        return grpc.unary_unary_rpc_method_handler(check)


@pytest.fixture
async def health() -> AsyncIterator[tuple[HealthService, Callable[[], Awaitable[None]]]]:
    service = HealthService()
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((service,))
    service.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    async def stop() -> None:
        await server.stop(None)

    yield service, stop
    await server.stop(None)


async def test_a_serving_grpc_service_is_healthy_until_it_is_not(
    world: SourceContext, heard: Heard, running: Running, health: tuple[HealthService, Callable[[], Awaitable[None]]]
) -> None:
    service, stop = health
    source = GrpcProbe(kind="GrpcProbe", host="localhost", port=service.port, service="shop.Cart", **QUICK)
    async with running(grpc_probe.run(source, world)):
        assert (await heard.status(TARGET, Health.HEALTHY)).detail == "SERVING"
        assert service.asked[0] == b"\x0a\x09shop.Cart"
        service.answer = b"\x08\x02"
        assert (await heard.status(TARGET, Health.UNHEALTHY)).detail == "NOT_SERVING"
        service.answer = b"\x08\x01"
        await heard.status(TARGET, Health.HEALTHY)
        service.answer = b""
        assert (await heard.status(TARGET, Health.UNHEALTHY)).detail == "NOT_FOUND: unknown service"
        service.answer = b"\x08\x01"
        await heard.status(TARGET, Health.HEALTHY)
        await stop()
        await heard.status(TARGET, Health.UNHEALTHY)


@pytest.fixture
def certificate(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A certificate for localhost and its key; no client trusts it yet."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and is not installed")
    made, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", made],
        check=True, capture_output=True, timeout=20,
    )  # fmt: skip
    grpc_probe.trusted.cache_clear()
    yield made, key
    grpc_probe.trusted.cache_clear()


async def test_a_certificate_has_to_be_trusted(
    world: SourceContext, heard: Heard, shop: Shop, running: Running, certificate: tuple[Path, Path]
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    runner = web.ServerRunner(web.Server(shop.answer), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    shop.url = f"https://localhost:{runner.addresses[0][1]}"
    async with running(http_probe.run(http(shop), world)):
        said = await heard.status(TARGET, Health.UNHEALTHY)
    assert "CERTIFICATE_VERIFY_FAILED" in said.detail
    await runner.cleanup()


@pytest.mark.parametrize("trusted", [True, False])
async def test_grpc_trusts_what_this_machine_trusts(
    world: SourceContext, heard: Heard, running: Running, certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch, trusted: bool,
) -> None:  # fmt: skip
    made, key = certificate
    service, server = HealthService(), grpc.aio.server()
    server.add_generic_rpc_handlers((service,))
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), made.read_bytes())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
    source = GrpcProbe(kind="GrpcProbe", host="localhost", port=port, tls=True, **QUICK)
    async with running(grpc_probe.run(source, world)):
        await heard.status(TARGET, Health.HEALTHY if trusted else Health.UNHEALTHY)
    await server.stop(None)


async def test_a_server_without_the_health_service_is_unhealthy(
    world: SourceContext, heard: Heard, running: Running
) -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with running(grpc_probe.run(GrpcProbe(kind="GrpcProbe", host="127.0.0.1", port=port, **QUICK), world)):
        said = await heard.status(TARGET, Health.UNHEALTHY)
    assert said.detail.startswith("UNIMPLEMENTED")
    await server.stop(None)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Let a host have two addresses on this port, of which the first takes no connection and refuses none."""
    opened: list[socket.socket] = []
    look_up = socket.getaddrinfo

    def fill(port: int) -> None:
        listener = socket.socket()
        listener.bind(("127.0.0.2", port))
        listener.listen(0)
        opened.append(listener)
        for _ in range(4):  # with its queue full, the kernel drops what comes
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", port))
            opened.append(waiting)

    def both(host: Any, *rest: Any, **more: Any) -> Any:
        if host != "two.example":
            return look_up(host, *rest, **more)
        return [*look_up("127.0.0.2", *rest, **more), *look_up("127.0.0.1", *rest, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    yield fill
    for one in opened:
        one.close()


async def test_an_address_that_does_not_answer_hides_no_other_of_a_port(
    world: SourceContext, heard: Heard, running: Running, silent: Callable[[int], None]
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with serving(greet) as port:
        silent(port)
        async with running(tcp_probe.run(TcpProbe(kind="TcpProbe", host="two.example", port=port, **PATIENT), world)):
            said = await heard.status(TARGET, Health.HEALTHY)
    assert "127.0.0.1 port" in said.detail


async def test_an_address_that_does_not_answer_hides_no_other_of_a_grpc_service(
    world: SourceContext, heard: Heard, running: Running, silent: Callable[[int], None],
    health: tuple[HealthService, Callable[[], Awaitable[None]]],
) -> None:  # fmt: skip
    service, _ = health
    silent(service.port)
    source = GrpcProbe(kind="GrpcProbe", host="two.example", port=service.port, **PATIENT)
    async with running(grpc_probe.run(source, world)):
        await heard.status(TARGET, Health.HEALTHY)


async def test_no_port_of_a_host_is_opened_that_also_has_a_metadata_address(
    world: SourceContext, heard: Heard, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = socket.getaddrinfo

    def both(_: Any, *rest: Any, **more: Any) -> Any:
        return [*look_up("127.0.0.1", *rest, **more), *look_up("169.254.169.254", *rest, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    async with running(tcp_probe.run(TcpProbe(kind="TcpProbe", host="two.example", port=80, **QUICK), world)):
        said = await heard.status(TARGET, Health.UNHEALTHY)
    assert "no probe connects there" in said.detail

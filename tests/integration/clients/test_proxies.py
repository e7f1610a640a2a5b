"""Proxies are a matter of the settings: what they name is used, what the environment names is not, by any client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from tempfile import NamedTemporaryFile
from typing import Any

import aiohttp
import pytest

from reactor.actions.notify.incidents import Post
from reactor.actions.notify.posting import NotifierUnavailable, post
from reactor.clients.alertmanager_api import Alertmanager, AlertsUnavailable
from reactor.clients.aws import LazyAws
from reactor.clients.credentials import proxy_of
from reactor.clients.instant_queries import QueryFailed
from reactor.clients.kubernetes_api import connect
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.clients.prometheus_api import Prometheus
from reactor.runtime.errors import Retryable
from reactor.settings.model import Settings
from reactor.settings.notifier_settings import Notifier
from reactor.settings.server_settings import ClusterSettings, Endpoint
from tests.serving import serving

NOWHERE = "http://nobody.invalid:9090"


class Proxy:
    """Refuses all that it is asked, and remembers what that was."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[bytes] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append((await reader.readuntil(b"\r\n")).strip())
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@pytest.fixture
async def proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxy]:
    made = Proxy()
    async with serving(made.answer) as port:
        made.url = f"http://127.0.0.1:{port}"
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, made.url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "none")
        monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
        yield made


def endpoint(**more: Any) -> Endpoint:
    return Endpoint.model_validate({"url": NOWHERE, "timeoutSeconds": 2, **more})


async def _query(**more: Any) -> None:
    prometheus = Prometheus("main", endpoint(**more))
    with pytest.raises(QueryFailed):
        await prometheus.query("up")
    await prometheus.close()


async def _alerts(**more: Any) -> None:
    alertmanager = Alertmanager("main", endpoint(**more))
    with pytest.raises(AlertsUnavailable):
        await alertmanager.alerts()
    await alertmanager.close()


async def _notify(**more: Any) -> None:
    notifier = Notifier.model_validate({"kind": "webhook", "url": NOWHERE, **more})
    async with aiohttp.ClientSession() as http:
        with pytest.raises(NotifierUnavailable):
            await post(http, "ops", NOWHERE, Post("", b"{}"), proxy=proxy_of(notifier))


async def _records(**more: Any) -> None:
    settings = Settings.model_validate({"aws": more})
    route53 = LazyAws("route53", "us-east-1", "loadBalancers.dns", proxy_of(settings.aws))
    with pytest.raises(Retryable):
        await route53.call("list_hosted_zones")


async def _objects() -> None:
    config = {"clusters": [{"name": "c", "cluster": {"server": NOWHERE}}], "users": [{"name": "u", "user": {}}]}
    context = {"name": "east", "context": {"cluster": "c", "user": "u"}}
    with NamedTemporaryFile("w", suffix=".json") as kubeconfig:
        json.dump({"apiVersion": "v1", "kind": "Config", **config, "contexts": [context]}, kubeconfig)
        kubeconfig.flush()
        settings = ClusterSettings.model_validate({"kubeconfig": kubeconfig.name, "context": "east"})
        api = await connect("east", settings)
    with pytest.raises(ApiUnavailable):
        await api.get("/version")
    await api.close()


ALL: list[Callable[..., Awaitable[None]]] = [_query, _alerts, _notify, _records]


@pytest.mark.parametrize("asks", [*ALL, _objects])
async def test_what_the_environment_names_is_used_by_no_client(
    asks: Callable[..., Awaitable[None]], proxy: Proxy
) -> None:
    await asks()
    assert proxy.asked == []


@pytest.mark.parametrize("asks", ALL)
async def test_what_the_settings_name_is_used(asks: Callable[..., Awaitable[None]], proxy: Proxy) -> None:
    await asks(proxyUrl=proxy.url)
    assert proxy.asked
    assert NOWHERE.encode() in proxy.asked[0]

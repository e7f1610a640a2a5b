"""Certificates of API servers, and ours, are replaced while we run."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from reactor.clients import credential_loading
from reactor.clients.kubernetes_api import connect
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.settings.server_settings import ClusterSettings
from tests.integration.webhook.test_tls import certificates, pytestmark

__all__ = ["pytestmark"]


@asynccontextmanager
async def served(folder: Path, *, asks: bool) -> AsyncIterator[str]:
    """An API server with the certificates that lie in the folder now, which may ask for ours. Gives its URL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED if asks else ssl.CERT_NONE

    async def version(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"major": "1"}, headers={"Connection": "close"})

    runner = web.ServerRunner(web.Server(version))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", PORT.get("port", 0), ssl_context=context, reuse_port=True)
    await site.start()
    PORT["port"] = runner.addresses[0][1]
    try:
        yield f"https://127.0.0.1:{PORT['port']}"
    finally:
        await runner.cleanup()


PORT: dict[str, int] = {}
"""The server comes back where it was."""


def kubeconfig(folder: Path, url: str, *, inline: bool) -> Path:
    """Our settings: files by their names, or their contents, as most kubeconfigs have it."""

    def given(name: str, file: str) -> dict[str, Any]:
        path = folder / file
        return {f"{name}-data": b64encode(path.read_bytes()).decode()} if inline else {name: str(path)}

    user = given("client-certificate", "client.pem") | given("client-key", "client.key")
    document = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url} | given("certificate-authority", "ca.pem")}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credential_loading, "REST_SECONDS_MAX", 0)
    PORT.clear()


@pytest.mark.parametrize("inline", [False, True], ids=["files", "data"])
@pytest.mark.parametrize("asks", [False, True], ids=["its CA", "our certificate"])
async def test_certificates_that_are_replaced_are_read_again(tmp_path: Path, asks: bool, inline: bool) -> None:
    await asyncio.to_thread(certificates, tmp_path)
    async with served(tmp_path, asks=asks) as url:
        api = await connect("c", ClusterSettings(kubeconfig=kubeconfig(tmp_path, url, inline=inline)))
        assert (await api.get("/version"))["major"] == "1"
    await asyncio.to_thread(certificates, tmp_path)  # another CA, another server's and another client's certificate
    async with served(tmp_path, asks=asks) as url:
        kubeconfig(tmp_path, url, inline=inline)
        assert (await api.get("/version"))["major"] == "1"
        assert await api.status("/readyz", seconds=5) == 200
    await api.close()


async def test_a_server_without_a_trusted_certificate_is_still_refused(tmp_path: Path) -> None:
    await asyncio.to_thread(certificates, tmp_path)
    async with served(tmp_path, asks=False) as url:
        path = kubeconfig(tmp_path, url, inline=False)
        (tmp_path / "ca.pem").write_bytes((tmp_path / "stranger.pem").read_bytes())
        api = await connect("c", ClusterSettings(kubeconfig=path))
        with pytest.raises(ApiUnavailable, match="certificate"):
            await api.get("/version")
        await api.close()

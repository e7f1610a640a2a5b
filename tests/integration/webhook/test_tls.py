"""HTTPS, and client certificates for those who post."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import aiohttp
import pytest

from tests.integration.webhook.reception import JSON, reception
from tests.unit.webhook.builders import alert, body

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")


def openssl(*arguments: str, folder: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def certificates(folder: Path) -> None:
    """A CA, and a server and a client that it signs; and a stranger that is self-signed."""
    days, key = ("-days", "2"), ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "stranger"):
        openssl(
            "req", "-x509", *key, *days, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem",
            "-addext", "keyUsage=critical,keyCertSign,digitalSignature", folder=folder,
        )  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr", folder=folder)
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", *days,
            "-extfile", "names", "-out", f"{name}.pem", folder=folder,
        )  # fmt: skip


def context(folder: Path, name: str | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if name:
        made.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return made


async def test_only_a_client_with_a_certificate_may_post_and_any_client_may_ask_whether_we_live(tmp_path: Path) -> None:
    await asyncio.to_thread(certificates, tmp_path)
    async with reception(
        tls_cert_file=tmp_path / "server.pem", tls_key_file=tmp_path / "server.key", client_ca_file=tmp_path / "ca.pem"
    ) as receiver:
        url = f"{receiver.url}/v1/alerts/am"
        assert url.startswith("https://")

        async def post(name: str | None) -> int:
            connector = aiohttp.TCPConnector(ssl=context(tmp_path, name))
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.post(url, data=body(alert()), headers=JSON) as answer,
            ):
                return answer.status

        assert await post("client") == 200
        assert await post(None) == 401
        with pytest.raises(aiohttp.ClientError):
            await post("stranger")
        async with receiver.session.get(f"{receiver.url}/livez", ssl=context(tmp_path, None)) as answer:
            assert answer.status == 200


async def test_certificates_that_are_renewed_are_served_and_a_half_written_pair_is_not(tmp_path: Path) -> None:
    """As cert-manager does it while the process runs: another certificate, and another CA of the clients."""
    await asyncio.to_thread(certificates, tmp_path)
    files = {"tls_cert_file": "server.pem", "tls_key_file": "server.key", "client_ca_file": "ca.pem"}
    async with reception(**{key: tmp_path / name for key, name in files.items()}) as receiver:
        url = f"{receiver.url}/v1/alerts/am"

        async def post(with_: ssl.SSLContext) -> int:
            async with (
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=with_)) as session,
                session.post(url, data=body(alert()), headers=JSON) as answer,
            ):
                return answer.status

        before = context(tmp_path, "client")
        assert await post(before) == 200
        old = {name: (tmp_path / name).read_bytes() for name in ("server.pem", "server.key", "ca.pem")}
        (tmp_path / "server.pem").write_text("-----BEGIN CERT")
        assert await post(before) == 200
        (tmp_path / "server.pem").write_bytes(old["server.pem"])
        await asyncio.to_thread(certificates, tmp_path)
        assert await post(context(tmp_path, "client")) == 200
        with pytest.raises(aiohttp.ClientError):
            await post(before)

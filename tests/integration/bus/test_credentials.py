"""Every way to say who we are, as the settings have it, to a real nats-server that asks for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import nkeys
import pytest
from pydantic import ValidationError

from bus.errors import Unavailable
from bus.jetstream import JetStreamBus, provision
from reactor.process.session import connected
from reactor.runtime.errors import SettingsError
from reactor.settings.bus_settings import BusSettings
from tests.contract.bus.servers import Configured
from tests.integration.bus.authority import Encrypted, Key, certificates, jetstream, operator_mode, tls


@asynccontextmanager
async def as_settings_say(url: str | list[str], **settings: Any) -> AsyncIterator[JetStreamBus]:
    async with connected(BusSettings(**settings), url, "test", patience=timedelta(seconds=1)) as bus:
        yield bus


async def works(url: str | list[str], **settings: Any) -> None:
    async with as_settings_say(url, **settings) as bus:
        await provision(bus)
        await bus.probe()


async def refused(url: str, match: str, **settings: Any) -> None:
    with pytest.raises(Unavailable, match=match):
        async with as_settings_say(url, **settings):
            pass


async def test_a_server_with_tls_is_trusted_by_its_ca_and_no_other(tmp_path: Path) -> None:
    certificates(tmp_path)
    async with Encrypted(tmp_path / "nats", f"{tls(tmp_path)}\n{jetstream(tmp_path)}") as server:
        await works(server.url, ca_file=tmp_path / "ca.pem")
        await works(server.url.replace("tls://", "nats://"), ca_file=tmp_path / "ca.pem")
        await refused(server.url, "CERTIFICATE_VERIFY_FAILED", ca_file=tmp_path / "stranger.pem")
        await refused(server.url, "CERTIFICATE_VERIFY_FAILED")


async def test_a_server_that_asks_for_a_certificate_gets_ours(tmp_path: Path) -> None:
    certificates(tmp_path)
    mine = {"ca_file": tmp_path / "ca.pem", "cert_file": tmp_path / "client.pem", "key_file": tmp_path / "client.key"}
    theirs = mine | {"cert_file": tmp_path / "stranger.pem", "key_file": tmp_path / "stranger.key"}
    async with Encrypted(tmp_path / "nats", f"{tls(tmp_path, clients=True)}\n{jetstream(tmp_path)}") as server:
        await works(server.url, **mine)
        await refused(server.url, "no NATS server at", ca_file=tmp_path / "ca.pem")
        await refused(server.url, "no NATS server at", **theirs)


async def test_where_tls_is_asked_for_nothing_is_said_in_plain_text(tmp_path: Path) -> None:
    certificates(tmp_path)
    async with Configured(tmp_path / "nats", jetstream(tmp_path)) as server:
        await refused(server.url.replace("nats://", "tls://"), "TLS is asked for")
        await refused(server.url, "TLS is asked for", ca_file=tmp_path / "ca.pem")


async def test_certificates_that_are_renewed_while_we_run_are_taken_at_the_next_connection(tmp_path: Path) -> None:
    """As cert-manager does it: another CA, another certificate of ours, and a server that uses them."""
    certificates(tmp_path)
    ours = {"ca_file": tmp_path / "ca.pem", "cert_file": tmp_path / "client.pem", "key_file": tmp_path / "client.key"}
    async with (
        Encrypted(tmp_path / "nats", f"{tls(tmp_path, clients=True)}\n{jetstream(tmp_path)}") as server,
        as_settings_say(server.url, **ours) as bus,
    ):
        await provision(bus)
        certificates(tmp_path)
        await server.restart()
        async with asyncio.timeout(60):
            await bus.connection.up.wait()
            while bus.connection.losses < 1:
                await asyncio.sleep(0.02)
            await bus.connection.up.wait()
        await bus.probe()


async def test_a_password_that_is_changed_while_we_run_is_taken_at_the_next_connection(tmp_path: Path) -> None:
    certificates(tmp_path)
    file, login = tmp_path / "password", "authorization {{ user: reactor, password: {} }}"
    server = Encrypted(tmp_path / "nats", f"{tls(tmp_path)}\n{jetstream(tmp_path)}\n{login.format('one')}")
    file.write_text("one\n")
    async with (
        server,
        as_settings_say(server.url, user="reactor", password_file=file, ca_file=tmp_path / "ca.pem") as bus,
    ):
        await provision(bus)
        file.write_text("two\n")
        server._text = server._text.replace("password: one", "password: two")
        await server.restart()
        async with asyncio.timeout(60):
            while bus.connection.losses < 1:
                await asyncio.sleep(0.02)
            await bus.connection.up.wait()
        await bus.probe()


async def test_tls_that_a_server_merely_offers_is_taken(tmp_path: Path) -> None:
    certificates(tmp_path)
    configuration = f"{tls(tmp_path)}\nallow_non_tls: true\n{jetstream(tmp_path)}"
    async with Encrypted(tmp_path / "nats", configuration) as server:
        await works(server.url, ca_file=tmp_path / "ca.pem")
        await refused(server.url, "CERTIFICATE_VERIFY_FAILED", ca_file=tmp_path / "stranger.pem")


async def test_a_password_from_a_file_over_tls(tmp_path: Path) -> None:
    certificates(tmp_path)
    (tmp_path / "password").write_text("s3cret\n")
    users = "authorization { user: reactor, password: s3cret }"
    async with Encrypted(tmp_path / "nats", f"{tls(tmp_path)}\n{jetstream(tmp_path)}\n{users}") as server:
        known = {"ca_file": tmp_path / "ca.pem", "user": "reactor"}
        await works(server.url, **known, password_file=tmp_path / "password")
        await refused(server.url, "Authorization Violation", **known, password="guess")


async def test_an_nkey(tmp_path: Path) -> None:
    ours, other = Key.make(nkeys.PREFIX_BYTE_USER), Key.make(nkeys.PREFIX_BYTE_USER)
    for name, key in (("ours", ours), ("other", other)):
        (tmp_path / name).write_text(key.seed)
    users = f"authorization {{ users: [{{nkey: {ours.public}}}] }}"
    async with Configured(tmp_path / "nats", f"{jetstream(tmp_path)}\n{users}") as server:
        await works(server.url, nkey_seed_file=tmp_path / "ours")
        await refused(server.url, "Authorization Violation", nkey_seed_file=tmp_path / "other")


async def test_a_creds_file_of_an_operators_account(tmp_path: Path) -> None:
    configuration, creds = operator_mode(tmp_path)
    (tmp_path / "other").mkdir()
    _, strangers = operator_mode(tmp_path / "other")
    async with Configured(tmp_path / "nats", configuration) as server:
        await works(server.url, credentials=creds)
        await refused(server.url, "Authorization Violation", credentials=strangers)
        await refused(server.url, "Authorization Violation")


async def test_of_several_urls_one_that_answers_is_enough(tmp_path: Path) -> None:
    async with Configured(tmp_path / "nats", jetstream(tmp_path)) as server:
        await works(["nats://127.0.0.1:1", server.url, "nats://127.0.0.1:2"])


@pytest.mark.parametrize("key", ["ca_file", "credentials", "nkey_seed_file", "password_file"])
async def test_a_file_that_is_missing_is_named_before_any_server_is_asked(tmp_path: Path, key: str) -> None:
    user = {"user": "reactor"} if key == "password_file" else {}
    with pytest.raises(SettingsError, match="gone"):
        async with as_settings_say("nats://127.0.0.1:1", **user, **{key: tmp_path / "gone"}):
            pass


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"credentials": "a", "nkeySeedFile": "b"}, "one of them says who we are"),
        ({"user": "a", "password": "b", "credentials": "c"}, "one of them says who we are"),
        ({"user": "a", "password": "b", "passwordFile": "c"}, "keep the file"),
        ({"user": "a"}, "user goes together with password"),
        ({"password": "a"}, "user goes together with password"),
        ({"certFile": "a"}, "certFile and keyFile go together"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        BusSettings.model_validate(given)


async def test_a_server_that_is_silent_in_the_handshake_is_given_up(tmp_path: Path) -> None:
    """The stream whose handshake is broken off never learns that it was closed."""
    certificates(tmp_path)
    info = {"server_id": "silent", "version": "2.12.1", "max_payload": 1 << 20, "tls_required": True}

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"INFO {json.dumps(info)}\r\n".encode())
        await reader.read()  # until the peer has closed
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server, asyncio.timeout(30):
        port = server.sockets[0].getsockname()[1]
        await refused(f"tls://127.0.0.1:{port}", "no NATS server at", ca_file=tmp_path / "ca.pem")

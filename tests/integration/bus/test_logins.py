"""Permissions that `reactor bus permissions` prints for nkeys and JWTs, on a real nats-server."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Any

import nats
import nkeys
import pytest
from click.testing import CliRunner

from reactor.cli.main import cli
from tests.contract.bus.servers import Configured
from tests.integration.bus.authority import Key, jetstream, operator_with_users
from tests.integration.bus.test_permissions import ONLY_TO_MAKE, SUBJECTS, allowed

WORDS = ["--role", "reactor", "--role", "decider", "--role", "viewer", "--person", "ann=operator"]
WORDS += ["--source", "backup-check"]
USERS = ["reactor", "decider", "viewer", "ann", "backup-check"]
NO_STREAM = {"Nats-Expected-Stream": "no-stream-has-this-name"}


def printed(login: str) -> str:
    done = CliRunner().invoke(cli, ["bus", "permissions", *WORDS, "--login", login])
    assert done.exit_code == 0, done.output
    return done.output


async def taken(url: str, user: str, **login: Any) -> set[str]:
    """Publish on every subject, and give those that the server let pass; its own inbox can be heard, no other one."""
    denied: list[str] = []

    async def error(what: Exception) -> None:
        denied.append(str(what).lower())

    client = await nats.connect(url, error_cb=error, allow_reconnect=False, **login)
    everything = {*SUBJECTS, *ONLY_TO_MAKE}
    for subject in everything:
        await client.publish(subject, b"[]", headers=NO_STREAM)
    for inbox in (f"_INBOX_{user}.>", "_INBOX_somebody.>"):
        await client.subscribe(inbox)
    async with asyncio.timeout(60):
        while not any("_inbox_somebody" in text for text in denied):  # the last to be refused
            await asyncio.sleep(0.01)
    await client.close()
    heard = [f'subscription to "_inbox_{name}.>"' for name in (user, "somebody")]
    assert [any(one in text for text in denied) for one in heard] == [False, True]
    return {one for one in everything if not any(f'"{one.lower()}"' in text for text in denied)}


async def test_users_with_nkeys_may_do_what_users_with_passwords_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {user: Key.make(nkeys.PREFIX_BYTE_USER) for user in USERS}
    for user, key in keys.items():
        monkeypatch.setenv(f"NATS_NKEY_{user.upper().replace('-', '_')}", key.public)
    async with Configured(tmp_path / "nats", f"{jetstream(tmp_path)}\n{printed('nkey')}") as server:
        for user, key in keys.items():
            assert await taken(server.url, user, nkeys_seed_str=key.seed) == allowed(user), user


async def test_users_that_nsc_makes_may_do_what_users_with_passwords_may(tmp_path: Path) -> None:
    """As nsc is not here, its options are put into JWTs as it does."""
    script = [shlex.split(line) for line in printed("jwt").splitlines() if not line.startswith("#")]
    templates = {words[6]: template(words) for words in script[::2]}
    assert [*templates] == USERS
    assert script[1::2] == [["nsc", "add", "user", "--name", user, "-K", user] for user in USERS]
    configuration, creds = operator_with_users(tmp_path, templates)
    async with Configured(tmp_path / "nats", configuration) as server:
        for user in USERS:
            assert await taken(server.url, user, user_credentials=str(creds[user])) == allowed(user), user


def template(words: list[str]) -> dict[str, Any]:
    """Permissions of a signing key that is made by this command."""
    assert words[:6] == ["nsc", "edit", "signing-key", "--sk", "generate", "--role"]
    assert words[7::2][:2] == ["--allow-pub", "--allow-sub"]
    publish, subscribe, *answers = words[8], words[10], *words[11:]
    assert answers in ([], ["--allow-pub-response=1", "--response-ttl", "10s"])
    allowing: dict[str, Any] = {"pub": {"allow": publish.split(",")}, "sub": {"allow": subscribe.split(",")}}
    return allowing | ({"resp": {"max": 1, "ttl": 10_000_000_000}} if answers else {})

"""The users of NATS that are shipped: those that `reactor bus permissions` prints, on a server as Compose starts it."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from bus.embedded import EmbeddedServer
from reactor.cli.main import cli
from reactor.cli.shared import asking

ROOT = Path(__file__).resolve().parents[3]
USERS = ROOT / "deploy/nats/users.conf"
PEOPLE = ("viewer", "operator", "zones")


def compose(service: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"][service]
    return found


class Composed(EmbeddedServer):
    """The server of the Compose file, with its files and passwords, in a folder instead of a container."""

    user = ""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = folder.parent
        """Folder for the container's `/run`, `/etc` and `/data`."""
        for name in ("run/webhook", "run/reactor", "run/people", "run/nats", "etc/nats"):
            (self.root / name).mkdir(parents=True)
        for _ in range(2):  # Compose runs it at every `up`
            subprocess.run([sys.executable, "-c", self._here(compose("secrets")["command"][0])], check=True)
        for mounted in compose("nats")["volumes"]:
            source, _, target = mounted.removesuffix(":ro").partition(":")
            if source.startswith("."):
                (self.root / target[1:]).write_text(self._here((ROOT / source).read_text()))

    def _here(self, text: str) -> str:
        for name in ("/run/", "/etc/nats/"):
            text = text.replace(name, f"{self.root}{name}")
        return text.replace("store_dir: /data", f"store_dir: {self.root}/data")

    def configuration(self) -> str:
        """No second one: `command` runs the one of Compose, on free ports of loopback."""
        return ""

    def command(self) -> list[str]:
        """As the container is started, but for its addresses."""
        [script] = compose("nats")["command"]
        elsewhere = f"-a 127.0.0.1 -p -1 -m -1 --ports_file_dir {shlex.quote(str(self.folder))}"
        return ["sh", "-c", f"{self._here(script)} {elsewhere}"]

    async def _answers(self) -> None:
        return

    def password(self, user: str) -> str:
        return (self.root / ("run/reactor/nats_password" if user == "reactor" else f"run/people/{user}")).read_text()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Composed]:
    """The server, with the streams that a reactor made."""
    server = Composed(tmp_path / "server")
    async with server:
        assert (await told(server, "reactor", "bus", "init")).exit_code == 0
        yield server


async def told(server: Composed, user: str, *words: str) -> Result:
    """Run `reactor …` as this user."""
    environment = {
        "REACTOR_BUS__URL": server.url, "REACTOR_BUS__USER": user, "REACTOR_BUS__PASSWORD": server.password(user)
    }  # fmt: skip
    return await asyncio.to_thread(CliRunner(env=environment).invoke, cli, [*words])


def test_the_users_that_are_shipped_are_those_that_the_command_prints() -> None:
    assert CliRunner().invoke(cli, ["bus", "permissions"]).output == USERS.read_text(), (
        "run: reactor bus permissions > deploy/nats/users.conf"
    )


async def test_the_reactor_of_compose_finds_all_it_needs(server: Composed) -> None:
    checked = await told(server, "reactor", "bus", "check")
    assert checked.exit_code == 0, checked.output


async def test_a_stranger_is_not_let_in(server: Composed) -> None:
    for url in (server.url, server.url.replace("://", "://reactor:change-me@")):
        done = await asyncio.to_thread(CliRunner().invoke, cli, ["status", "--bus", url])
        assert done.exit_code != 0
        assert "authorization" in done.output.lower()


async def test_a_viewer_of_compose_looks_and_tells_nothing(server: Composed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "EFFECT", timedelta(seconds=0.5))  # no reactor is here, which a command could wait for
    assert (await told(server, "viewer", "status")).exit_code == 0
    assert (await told(server, "operator", "status")).exit_code == 0
    pause = ("pause", "*", "--comment", "test", "--by", "ann", "--yes")
    refused = await told(server, "viewer", *pause)
    assert refused.exit_code == 1
    assert "may not publish on reactor.commands.pause.viewer" in refused.output
    assert (await told(server, "operator", *pause)).exit_code == 0


@pytest.mark.parametrize("user", ["reactor", *PEOPLE])
def test_each_user_has_a_password_of_its_own_that_stays(tmp_path: Path, user: str) -> None:
    first = Composed(tmp_path / "a" / "server")
    passwords = {one: first.password(one) for one in ("reactor", *PEOPLE)}
    assert len({*passwords.values()}) == len(passwords)
    assert f"NATS_PASSWORD_{user.upper()}={passwords[user]}\n" in (tmp_path / "a/run/nats/passwords").read_text()
    assert os.environ.get("NATS_PASSWORD_REACTOR") is None

"""`reactor check --against settings` asks the load balancers that rules name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from reactor.cli.main import cli
from tests.e2e.weights_server import Server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(tmp_path / "other-side") as running:
        yield running


async def findings(folder: Path, server: Server, **route: str) -> list[tuple[str, str]]:
    own = {"kind": "Webhook", "url": server.url, "secretFile": str(server.secret)}
    (folder / "reactor.yaml").write_text(yaml.safe_dump({"loadBalancers": {"psp": own}}), encoding="utf-8")
    backends = [{"service": name, "target": f"custom/psp/{name}"} for name in ("blue", "grene")]
    rule = {"name": "psp", "kind": "TrafficFailover", "route": {"kind": "Webhook", "name": "psp"} | route}
    rules = {"apiVersion": "reactor/v1", "rules": [rule | {"backends": backends}]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules, sort_keys=False), encoding="utf-8")
    words = ["check", folder / "rules.yaml", "-o", "json", "--config", folder / "reactor.yaml", "--against"]
    shown = await asyncio.to_thread(CliRunner().invoke, cli, [*map(str, words), "settings"])
    return [(one["path"], one["message"]) for one in json.loads(shown.output) if one["severity"] == "error"]


async def test_what_it_lacks_is_told_with_its_place(server: Server, tmp_path: Path) -> None:
    assert await findings(tmp_path, server) == [
        ("rules[0].backends[1].service", "Webhook psp has no backend 'grene'; it has blue, green")
    ]


async def test_one_that_is_not_in_the_settings_or_does_not_answer_is_told(server: Server, tmp_path: Path) -> None:
    ((place, message),) = await findings(tmp_path, server, name="other")
    assert place == "rules[0].route.name"
    assert "loadBalancers.other: rules name it, the settings do not (they name: psp)" in message
    await server.stop()
    ((place, message),) = await findings(tmp_path, server)
    assert place == "rules[0].route.name"
    assert "loadBalancers.psp: GET got no answer" in message

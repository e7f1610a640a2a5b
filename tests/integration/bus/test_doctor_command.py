"""`reactor doctor` on a real nats-server: before an install, after it, and where something is missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bus.embedded import EmbeddedServer
from reactor.cli.main import cli


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server of this test's own."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


async def reactor(*argv: str) -> Result:
    """Run it in a thread, as it has an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, cli, argv)


async def doctor(server: EmbeddedServer, *words: str) -> tuple[int, dict[str, list[Any]]]:
    """Give the exit code, and the findings by group and name."""
    done = await reactor("doctor", "--bus", server.url, "--timeout", "60", "-o", "json", *words)
    found: dict[str, list[Any]] = {}
    for one in json.loads(done.stdout)["checks"]:
        found.setdefault(f"{one['group']}/{one['name']}", []).append(one)
    return done.exit_code, found


async def test_an_empty_bus_is_fit_for_an_install_and_not_for_work(server: EmbeddedServer) -> None:
    code, before = await doctor(server, "--pre")
    assert code == 0, before
    assert {name: {one["status"] for one in before[name]} for name in ("bus/server", "bus/streams", "bus/write")} == {
        "bus/server": {"ok"}, "bus/streams": {"skipped"}, "bus/write": {"skipped"}
    }  # fmt: skip
    code, after = await doctor(server)
    assert code == 1
    assert {one["status"] for one in after["bus/streams"]} == {"failed"}
    [fix] = {one["fix"] for one in after["bus/streams"]}
    assert fix == "reactor bus init --bus URL", "the URL has a password"


async def test_the_fix_that_is_printed_mends_it(server: EmbeddedServer) -> None:
    _, broken = await doctor(server)
    fix = broken["bus/streams"][0]["fix"].replace("URL", server.url).split()
    assert (await reactor(*fix[1:])).exit_code == 0
    code, mended = await doctor(server)
    assert {one["status"] for name, all_ in mended.items() if name.startswith("bus/") for one in all_} == {
        "ok", "skipped"
    }  # fmt: skip
    assert [one["status"] for one in mended["clocks/bus"]] == ["ok"]
    assert code == 1, "no reactor runs"
    assert mended["members/processes"][0]["detail"] == "no reactor runs on this bus"

"""A rule file that cannot be read disables no command that an operator needs at night."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bus.embedded import EmbeddedServer
from bus.envelope import decode
from bus.jetstream import JetStreamBus, provision
from bus.topology import GROUPS, ROUTERS
from reactor.cli.main import cli
from reactor.cli.shared import asking
from reactor.runtime.clock import Clock
from rules.core.group import Group
from rules.engine.group_codec import dump_group
from rules.kinds.zone.state import Isolation, ZoneNodes, ZonesSeen, ZoneState

WORDS = ("--comment", "INC-7", "--by", "ann", "--yes")
GOOD = """
apiVersion: reactor/v1
rules:
  - {name: other, kind: ZoneIsolation, cluster: test, zones: [{name: x, id: 1x}, {name: y, id: 1y}]}
"""


@pytest.fixture
async def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A bus on which an isolation of zone `a` is on its way; of the rule files one is broken, and one is not."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "zones.yaml").write_text("apiVersion: reactor/v1\nrules: [{name: prod-zones, kind: ZoneIsolatoin}]\n")
    (folder / "good.yaml").write_text(GOOD)
    monkeypatch.setenv("REACTOR_RULE_FILES", f'["{folder}"]')
    monkeypatch.setattr(asking, "EFFECT", timedelta(seconds=0.5))  # no reactor is here, which a command could wait for
    now = Clock().now()
    isolation = Isolation(
        "a", "Failover", "InProgress", "ZoneUnhealthy", now, now, steps=("Fence", "Evacuate"), touched=("Fence",)
    )
    seen = ZonesSeen(now, {"a": ZoneNodes(3, 0), "b": ZoneNodes(3, 3)})
    group = Group("prod-zones", "prod", ZoneState(seen=seen, isolation=isolation))
    async with (
        EmbeddedServer(tmp_path / "nats") as server,
        JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus,
    ):
        await provision(bus)
        await bus.store(GROUPS).put("0.group.test", dump_group(group), revision=None)
        yield server.url


async def reactor(url: str, *words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, [*words, "--bus", url])


async def commands(url: str) -> list[str]:
    async with (
        JetStreamBus.connect(url, name="look", timeout=timedelta(seconds=10)) as bus,
        bus.work(ROUTERS, batch=10) as work,
    ):
        return [type(decode(one.body).data).__name__ for one in await work.next(timedelta(seconds=60))]


async def test_zones_are_shown_as_they_are_stored(url: str) -> None:
    shown = await reactor(url, "zone", "list")
    assert shown.exit_code == 0, shown.output
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert {"prod/a", "prod/b", "test/x"} <= {row[1] for row in rows}, shown.stdout
    assert "zones.yaml:2" in shown.stderr, shown.stderr


async def test_an_isolation_is_aborted(url: str) -> None:
    said = await reactor(url, "zone", "abort", "prod-zones", *WORDS)
    assert (said.exit_code, "undoes: Fence" in said.stdout) == (0, True), said.output
    assert "zones.yaml:2" in said.stderr, said.stderr
    assert await commands(url) == ["FailbackZone"]


async def test_rules_are_paused(url: str) -> None:
    said = await reactor(url, "pause", "*", "--for", "10m", *WORDS)
    assert (said.exit_code, "for 10m" in said.stdout) == (0, True), said.output
    assert await commands(url) == ["Pause"]


@pytest.mark.parametrize(("words", "code"), [(("audit", "verify"), 0), (("audit", "export"), 0), (("replay",), 1)])
async def test_the_audit_is_read(url: str, words: tuple[str, ...], code: int) -> None:
    """Of no records at all a replay proves nothing, which is its 1."""
    said = await reactor(url, *words)
    assert said.exit_code == code, said.output
    if words == ("replay",):
        assert "Different 0" in said.stdout, said.output

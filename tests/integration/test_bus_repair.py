"""Parts of the bus that another client deleted are created again, and readiness names those that could not be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bus import subjects, topology
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.errors import BusError, Unavailable, WrongServer
from bus.jetstream import JetStreamBus, provision
from bus.jetstream.provisioning import plan
from bus.messages import Health, Observation
from bus.port import Outgoing
from reactor.fleet.layout import partitions_of
from reactor.process import bus_repair
from reactor.process.app import App
from reactor.process.bus_repair import BusReconciler
from reactor.process.session import agree_on_partitions
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.runtime.supervise import ended
from reactor.settings.bus_settings import BusSettings
from reactor.settings.model import Settings

PARTITIONS = 4
RULES = "apiVersion: reactor/v1\nrules:\n- {name: one, kind: Notification, match: 'service/**'}\n"
SETTINGS = BusSettings(partitions=PARTITIONS)


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[JetStreamBus]:
    """A bus with all that a reactor keeps on it."""
    async with (
        EmbeddedServer(tmp_path / "nats") as server,
        JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus,
    ):
        await provision(bus)
        await agree_on_partitions(bus, PARTITIONS)
        yield bus


async def whole(bus: JetStreamBus) -> bool:
    return not any(step.new for step in await plan(bus)) and await partitions_of(bus) == PARTITIONS


async def until_whole(bus: JetStreamBus) -> None:
    async with asyncio.timeout(60):
        while not await whole(bus):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "lost",
    [
        "STREAM.DELETE.REACTOR_FACTS",
        "STREAM.DELETE.REACTOR_ACTIONS",
        "STREAM.DELETE.KV_reactor_leases",
        "CONSUMER.DELETE.REACTOR_ACTIONS.executors",
        "CONSUMER.DELETE.REACTOR_INBOX.routers",
    ],
)
async def test_what_was_deleted_is_made_again(bus: JetStreamBus, lost: str) -> None:
    own = BusReconciler(bus, SETTINGS)
    await bus.connection.api(lost, {})
    assert not await whole(bus)
    await own.look()
    assert await whole(bus)
    assert not own.lacking


@pytest.mark.parametrize("lost", ["CONSUMER.DELETE.REACTOR_ACTIONS.executors", "STREAM.DELETE.REACTOR_ACTIONS"])
async def test_a_queue_that_is_gone_is_made_again_once_its_work_is_refused(
    bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """At the next look, in ten seconds, an action that waits in it would be late."""
    monkeypatch.setattr(bus_repair, "LOOK_SECONDS", 3600.0)
    own = BusReconciler(bus, SETTINGS)
    running = asyncio.create_task(own.run())
    async with bus.work(topology.EXECUTORS, batch=1) as work:
        taking = asyncio.create_task(work.next(timedelta(seconds=60)))
        await bus.connection.api(lost, {})
        await until_whole(bus)
        taking.cancel()
        await asyncio.wait([taking])
    await ended(running)


async def test_after_everything_was_wiped_the_number_of_partitions_is_agreed_on_again(bus: JetStreamBus) -> None:
    names = [*(one.name for one in topology.STREAMS), *(f"KV_{one.name}" for one in topology.BUCKETS)]
    for name in names:
        await bus.connection.api(f"STREAM.DELETE.{name}", {})
    await BusReconciler(bus, SETTINGS).look()
    assert await whole(bus)


async def test_those_who_publish_facts_hear_that_the_bus_has_lost_them(bus: JetStreamBus) -> None:
    own, heard = BusReconciler(bus, SETTINGS), list[str]()
    forget = own.watch(lambda: heard.append("lost"))
    await own.look()
    await own.look()
    assert not heard
    await bus.connection.api("STREAM.DELETE.REACTOR_FACTS", {})
    await BusReconciler(bus, SETTINGS).look()  # another process creates it again
    await own.look()
    await own.look()
    assert heard == ["lost"]
    forget()


async def test_facts_that_are_lost_before_the_first_look_are_told_too(bus: JetStreamBus) -> None:
    own, heard = BusReconciler(bus, SETTINGS), list[str]()
    own.watch(lambda: heard.append("lost"))
    await bus.connection.api("STREAM.DELETE.REACTOR_FACTS", {})
    await own.look()
    assert heard == ["lost"]


async def test_what_differs_is_left_to_the_next_start(bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two versions side by side would change it back and forth."""
    asked: list[str] = []
    api = bus.connection.api

    async def heard(name: str, request: Any) -> dict[str, Any]:
        asked.append(name)
        return await api(name, request)

    monkeypatch.setattr(bus.connection, "api", heard)
    await BusReconciler(bus, BusSettings(partitions=PARTITIONS, replicas=3)).look()
    assert asked
    assert not [name for name in asked if "CREATE" in name or "UPDATE" in name]


async def test_what_may_not_be_made_is_told_and_asked_for_again(
    bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = BusReconciler(bus, SETTINGS)
    tries: list[int] = []

    async def denied(*_: object, **__: object) -> None:
        tries.append(len(tries))
        raise Unavailable("no answer to STREAM within 2 s")

    monkeypatch.setattr(bus_repair, "provision", denied)
    await bus.connection.api("STREAM.DELETE.REACTOR_FACTS", {})
    own.look_now()
    for _ in range(2):
        with pytest.raises(Unavailable):
            await own.run()  # at once: until it has succeeded there is doubt
    assert own.lacking == [f"REACTOR_FACTS: is missing ({bus_repair.INIT})"]
    monkeypatch.undo()
    await own.look()
    assert not own.lacking


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        (BusSettings(partitions=PARTITIONS + 1), SettingsError, "was set up with 4"),
        (SETTINGS, WrongServer, "REACTOR_FACTS exists with subjects"),
    ],
)
async def test_what_cannot_be_used_is_told(
    bus: JetStreamBus, settings: BusSettings, error: type[BusError], said: str
) -> None:
    if error is WrongServer:
        await bus.connection.api("STREAM.DELETE.REACTOR_FACTS", {})
        await bus.connection.api("STREAM.CREATE.REACTOR_FACTS", {"name": "REACTOR_FACTS", "subjects": ["other.>"]})
    own = BusReconciler(bus, settings)
    with pytest.raises(error):
        await own.look()
    assert said in own.lacking[0]


async def test_a_reactor_makes_again_what_is_lost_and_says_what_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_repair, "LOOK_SECONDS", 0.1)
    (tmp_path / "rules.yaml").write_text(RULES)
    settings = Settings.model_validate(
        {
            "ruleFiles": [str(tmp_path / "rules.yaml")], "receiver": {"listen": "127.0.0.1:0"},
            "bus": {"store": str(tmp_path / "nats"), "partitions": PARTITIONS},
        }
    )  # fmt: skip
    async with App(settings) as app:
        assert await app._not_ready() == []
        await app.bus.connection.api("STREAM.DELETE.REACTOR_FACTS", {})
        await until_whole(app.bus)
        await app.bus.connection.api("STREAM.DELETE.REACTOR_ACTIONS", {})
        await app.bus.connection.api("STREAM.CREATE.REACTOR_ACTIONS", {"name": "REACTOR_ACTIONS", "subjects": ["a.>"]})
        async with asyncio.timeout(60):
            while not any(one.startswith("bus: REACTOR_ACTIONS exists with") for one in await app._not_ready()):
                await asyncio.sleep(0.02)


async def test_paused_consumers_are_noticed_told_once_and_resumed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As `nats consumer pause` leaves them, for six hours: the queues, and what the deciders read with."""
    caplog.set_level(logging.ERROR)
    (tmp_path / "rules.yaml").write_text(RULES)
    settings = Settings.model_validate(
        {
            "ruleFiles": [str(tmp_path / "rules.yaml")], "receiver": {"listen": "127.0.0.1:0"},
            "bus": {"store": str(tmp_path / "nats"), "partitions": PARTITIONS},
        }
    )  # fmt: skip
    async with App(settings) as app:
        async with asyncio.timeout(60):
            while len(await consumers(app.bus, "REACTOR_FACTS")) < PARTITIONS:
                await asyncio.sleep(0.05)
        until = (Clock().now() + timedelta(hours=6)).isoformat()
        for stream in ("REACTOR_FACTS", "REACTOR_ACTIONS", "REACTOR_INBOX"):
            for one in await consumers(app.bus, stream):
                await app.bus.connection.api(f"CONSUMER.PAUSE.{stream}.{one['name']}", {"pause_until": until})
        said = Observation(
            target="service/east/shop/a", signal="probe", status=Health.HEALTHY, observed_at=Clock().now()
        )
        body = encode(said, id="1", source="/test", time=said.observed_at)
        facts = [Outgoing(subjects.observed(n, said.target, "probe-healthy"), body, f"f{n}") for n in range(PARTITIONS)]
        await app.bus.publish_all(facts)
        wanted = {"REACTOR_ACTIONS > executors", "REACTOR_INBOX > routers"}
        wanted |= {f"REACTOR_FACTS > {subjects.facts(number)}" for number in range(PARTITIONS)}
        told: set[str] = set()
        named: set[str] = set()
        async with asyncio.timeout(60):
            while not named >= wanted:
                told |= {*await app._not_ready()}
                named = {one.removeprefix("bus: ").partition(": ")[0] for one in told}
                await asyncio.sleep(0.05)
        assert named == wanted
        assert all("reactor pause '*'" in one for one in told)
        for stream in ("REACTOR_FACTS", "REACTOR_ACTIONS", "REACTOR_INBOX"):
            assert not [one["name"] for one in await consumers(app.bus, stream) if one.get("paused")]
        async with asyncio.timeout(60):
            while await app._not_ready():
                await asyncio.sleep(0.1)
    lines = [record.getMessage() for record in caplog.records if "paused" in record.getMessage()]
    assert len(lines) == 2  # one for the queues, one for the readings


async def consumers(bus: JetStreamBus, stream: str) -> list[dict[str, Any]]:
    return list((await bus.connection.api(f"CONSUMER.LIST.{stream}", {}))["consumers"])

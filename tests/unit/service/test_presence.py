"""A name is one process's; what the dead have left behind goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from bus import subjects
from bus.testing.memory import MemoryBus
from bus.topology import LEASES
from reactor.fleet import presence
from reactor.fleet.presence import Presence, Process, present
from reactor.process.bus_cleanup import LeaseCollector
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError

ANSWERS = "reactor.alive."


def process(name: str) -> Process:
    return Process(name, ("decider",), "digest", datetime(2026, 1, 1, tzinfo=UTC))


def test_what_a_process_says_is_read_as_it_was_said() -> None:
    said = Process("me", ("decider",), "digest", datetime(2026, 1, 1, tzinfo=UTC), ("a: wrong",), "1.2.3")
    assert Process.read(said.dump()) == said


def new(bus: MemoryBus, name: str = "me") -> Presence:
    return Presence(bus, process(name))


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus(Clock().now)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "DYING_SECONDS", 0.05)
    monkeypatch.setattr(presence, "AGAIN_ASKED_SECONDS", 0.001)


async def keys(bus: MemoryBus) -> set[str]:
    return {entry.key for entry in await bus.store(LEASES).entries(">")}


async def test_a_second_process_of_the_same_name_does_not_start(bus: MemoryBus) -> None:
    async with new(bus).here():
        with pytest.raises(SettingsError, match="another process on this bus is called me"):
            async with new(bus).here():
                pass
        assert [one.name for one in await present(bus)] == ["me"]
        async with new(bus, "other").here():
            assert [one.name for one in await present(bus)] == ["me", "other"]
    assert await keys(bus) == set()


async def test_of_two_that_start_at_the_same_moment_one_starts(bus: MemoryBus) -> None:
    left = asyncio.Event()

    async def live() -> str:
        try:
            async with new(bus).here():
                await left.wait()
                return "lived"
        except SettingsError:
            left.set()
            return "refused"

    assert sorted(await asyncio.gather(live(), live())) == ["lived", "refused"]


async def test_one_that_comes_back_waits_for_its_own_last_moments(
    bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "DYING_SECONDS", 30.0)
    came = asyncio.Event()

    async def come_back() -> None:
        async with new(bus).here():
            came.set()

    async with new(bus).here():
        task = asyncio.create_task(come_back())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not came.is_set()
    async with asyncio.timeout(60):
        await task


async def test_one_that_was_killed_is_followed_at_once(bus: MemoryBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "DYING_SECONDS", 30.0)
    monkeypatch.setattr(presence, "AGAIN_ASKED_SECONDS", 3600.0)
    await bus.store(LEASES).put(subjects.key(presence.KIND, "me"), process("me").dump(), revision=None)
    async with new(bus).here():
        assert [one.name for one in await present(bus)] == ["me"]


KINDS: dict[str, Callable[[str], tuple[str, str]]] = {
    "decider": lambda name: (subjects.key("member", name), name),
    "observer": lambda name: (subjects.key("observer-abcd-member", name), f"observer-abcd-{name}"),
    "process": lambda name: (subjects.key(presence.KIND, name), presence.KIND + name),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_dead_have_left_goes_and_what_the_living_say_stays(bus: MemoryBus, kind: str) -> None:
    store, leftovers = bus.store(LEASES), LeaseCollector(bus)
    dead, _ = KINDS[kind]("dead")
    quiet, answers = KINDS[kind]("quiet")
    beating, _ = KINDS[kind]("beating")
    await bus.announce(subjects.alive(answers))
    await store.put("owner.3", b"dead", revision=None)
    await store.put(subjects.key("layout"), b"{}", revision=None)

    async def say(key: str, name: str) -> None:
        await store.put(key, process(name).dump(), revision=None)

    for key, name in ((dead, "dead"), (quiet, "quiet"), (beating, "beating")):
        await say(key, name)
    await leftovers.look()
    await say(beating, "beating")
    assert dead in await keys(bus)  # it may be connecting again
    await leftovers.look()
    assert await keys(bus) == {quiet, beating, "owner.3", "layout"}


async def test_one_that_speaks_while_it_is_taken_away_stays(bus: MemoryBus) -> None:
    key, _ = KINDS["decider"]("back")
    store, leftovers = bus.store(LEASES), LeaseCollector(bus)
    await store.put(key, process("back").dump(), revision=None)
    [seen] = await store.entries(">")
    await store.put(key, process("back").dump(), revision=None)
    await leftovers._take_away(seen)
    assert await keys(bus) == {key}

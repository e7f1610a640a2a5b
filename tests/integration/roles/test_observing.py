"""Sources are shared: each runs in one process, and in another one when that process leaves or dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import pytest

from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus
from reactor.fleet import fleet as fleet_
from reactor.fleet.fleet import Fleet
from reactor.fleet.observer import KIND, Observer, Start
from tests.integration.roles.conftest import World, eventually, running

Make = Callable[..., AbstractAsyncContextManager[World]]
NAMES = [f"source-{number}" for number in range(6)]


class Running:
    """Processes that run each source."""

    def __init__(self) -> None:
        self.by: dict[str, list[str]] = {name: [] for name in NAMES}

    def jobs(self, process: str) -> dict[str, Start]:
        """Sources that say who runs them."""
        return {name: self._start(name, process) for name in NAMES}

    def _start(self, name: str, process: str) -> Start:
        async def run() -> None:
            self.by[name].append(process)
            try:
                await asyncio.Event().wait()
            finally:
                self.by[name].remove(process)

        return lambda: [asyncio.create_task(run())]

    def shared(self, processes: set[str]) -> bool:
        """True if each source runs once, and each process runs some."""
        owners = [process for running in self.by.values() for process in running]
        return all(len(running) == 1 for running in self.by.values()) and set(owners) == processes


def observer(world: World, name: str, running_: Running) -> Observer:
    return Observer(Fleet(world.bus, name, len(NAMES), world.clock, kind=KIND), running_.jobs(name))


async def test_each_source_runs_in_one_process(make_world: Make) -> None:
    where = Running()
    async with make_world() as world, running(observer(world, "one", where).run):
        await eventually(lambda: where.shared({"one"}))
        async with running(observer(world, "two", where).run):
            await eventually(lambda: where.shared({"one", "two"}))
        await eventually(lambda: where.shared({"one"}))
    assert all(not owners for owners in where.by.values())


async def test_observers_and_deciders_are_fleets_of_their_own(make_world: Make) -> None:
    where = Running()
    async with make_world() as world, world.decider("one") as decider, running(observer(world, "two", where).run):
        await eventually(lambda: where.shared({"two"}))
        assert decider.fleet.members() == ["one"]


async def test_a_member_that_connects_again_is_silent_until_it_is_heard_again_which_is_at_once(
    make_world: Make, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_, "HEARTBEAT", 3600.0)
    async with (
        make_world() as world,
        JetStreamBus.connect(server.url, name="one", timeout=timedelta(seconds=10)) as own,
        Fleet(world.bus, "two", len(NAMES), world.clock).joined(),
    ):
        one = Fleet(own, "one", len(NAMES), world.clock, losses=lambda: own.connection.losses)
        async with one.joined():
            assert one.members() == ["one", "two"]
            await own.connection.client.force_reconnect()
            await eventually(lambda: own.connection.losses == 1)
            assert (one.heard, one.present) == (False, True)
            await eventually(lambda: one.heard)
            assert one.members() == ["one", "two"]

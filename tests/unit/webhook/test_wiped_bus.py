"""A bus that was wiped: what processes remember of alerts is stored and said again, and Alertmanager is asked."""

from __future__ import annotations

import asyncio

import pytest

from bus.messages import Health
from bus.topology import ALERTS
from reactor.alerts.lifecycle import AlertLifecycle
from tests.unit.webhook.builders import Api, World, alert, moment, resolved, source


@pytest.fixture
def world() -> World:
    return World()


def wipe(world: World, *, at: float) -> None:
    """The bus comes back empty then."""
    world.clock.seconds = at
    world.bus.store(ALERTS).wipe()
    world.told.clear()


async def woken(*lifecycles: AlertLifecycle) -> None:
    """The processes notice it."""
    for lifecycle in lifecycles:
        lifecycle.facts_lost()
        async with asyncio.timeout(1):
            await lifecycle.wait(60)
        await lifecycle.sweep()


async def remembered(world: World) -> dict[str, str]:
    """Status of each alert in the bucket, by the service."""
    async with world.lifecycle() as lifecycle:
        states = [*lifecycle._alert_store.alert_cache]
    return {state.labels["service"]: state.status for state in states}


async def test_alerts_that_are_remembered_are_said_and_stored_again(world: World) -> None:
    async with world.lifecycle() as one, world.lifecycle() as two:
        await world.post(one, alert(), at=5)
        await world.post(one, alert("f2", service="cart"), at=5)
        await world.post(one, resolved("f2", service="cart"), at=50)
        await world.pass_time(two, 60)
        wipe(world, at=70)
        await woken(one, two)
        said = {(word.target.rpartition("/")[2], word.status, word.since) for word in world.told}
        assert said == {("checkout", Health.UNHEALTHY, moment(5)), ("cart", Health.UNKNOWN, None)}
        assert await remembered(world) == {"checkout": "firing", "cart": "resolved"}


async def test_posts_are_taken_as_before(world: World) -> None:
    """Revisions count from 1 again: a write that names an old one is refused."""
    async with world.lifecycle() as one, world.lifecycle() as two:
        for at in range(5, 305, 60):
            await world.post(one, alert(), at=at)
        await world.pass_time(two, 310)
        wipe(world, at=320)
        await woken(one, two)
        await world.post(two, resolved(ends=325), at=330)
        await world.pass_time(one, 332)
        assert await remembered(world) == {"checkout": "resolved"}
        await world.post(one, alert(starts=340), at=350)
    assert world.last() == "Unhealthy"


async def test_what_was_stored_meanwhile_is_kept_where_it_is_newer(world: World) -> None:
    async with world.lifecycle() as one:
        await world.post(one, alert(), at=5)
        wipe(world, at=70)
        async with world.lifecycle() as other:
            await world.post(other, alert(), at=71)
            await world.post(other, resolved(ends=72), at=73)
            await woken(one)
        assert await remembered(world) == {"checkout": "resolved"}
    assert world.last() == "Unknown resolved"


async def test_a_bucket_that_was_removed_alone_is_filled_again_within_a_minute(world: World) -> None:
    async with world.lifecycle() as one:
        await world.post(one, alert(), at=5)
        await world.pass_time(one, 60)
        wipe(world, at=61)
        await world.pass_time(one, 125)
        assert await remembered(world) == {"checkout": "firing"}


async def test_where_the_bus_goes_away_meanwhile_it_is_done_later(world: World) -> None:
    async with world.lifecycle() as one:
        await world.post(one, alert(), at=5)
        wipe(world, at=70)
        world.bus.down = True
        await woken(one)
        world.bus.down = False
        await world.pass_time(one, 73)
        assert await remembered(world) == {"checkout": "firing"}
    assert world.last() == "Unhealthy"


async def test_what_fired_meanwhile_is_polled_at_once(world: World) -> None:
    world.apis = {"a": Api()}
    async with world.lifecycle(source(matchers='alertname="Down"')) as one:
        await world.post(one, alert(), at=5)
        await world.pass_time(one, 40)
        wipe(world, at=41)
        world.apis["a"].lists(alert("f2", service="cart"))
        await woken(one)
    assert {word.target.rpartition("/")[2] for word in world.told} == {"checkout", "cart"}

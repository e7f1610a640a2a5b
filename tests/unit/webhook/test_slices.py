"""Thousands of standing alerts hold up nothing else that the process does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from bus.messages import WebhookPost
from tests.steps import step_limit, steps_measured
from tests.unit.webhook.builders import Api, World, alert, moment, source

ALERTS = 3000


@pytest.fixture
def steps() -> Iterator[list[float]]:
    with steps_measured() as taken:
        yield taken


async def test_reconciling_thousands_of_alerts_is_done_in_slices(steps: list[float]) -> None:
    world = World()
    world.apis = {"a": Api()}
    alerts = [alert(f"{n:016x}", service=f"s{n}") for n in range(ALERTS)]
    world.apis["a"].lists(*alerts)
    async with world.lifecycle(source(matchers=('alertname="Down"', 'service=~"s.*"'))) as lifecycle:
        for start in range(0, ALERTS, 500):
            await world.post(lifecycle, *alerts[start : start + 500], at=0)
        await world.pass_time(lifecycle, 31, step=31)
        await asyncio.sleep(0)
        steps.clear()
        await world.pass_time(lifecycle, 62, step=31)
        await asyncio.sleep(0)
    assert max(steps) < sum(steps) / 8


@pytest.mark.parametrize("many", [5_000, pytest.param(20_000, marks=pytest.mark.long)])
async def test_no_step_with_thousands_of_alerts_holds_the_process_for_a_tenth_of_a_second(
    steps: list[float], many: int
) -> None:
    """Coming in, standing, listed by an Alertmanager for the first time and again, and read after a restart."""
    world = World()
    world.apis = {"a": Api()}
    alerts = [alert(f"{n:016x}", service=f"s{n}") for n in range(many)]
    wide = source(matchers=('alertname="Down"', 'service=~"s.*"'), maxTargets=many)
    longest: dict[str, float] = {}

    async def noted(what: str) -> None:
        await asyncio.sleep(0)
        longest[what] = max(steps)
        steps.clear()

    posts = [
        WebhookPost(source="am", post="0" * 64, alerts=tuple(alerts[start : start + 1000]), observed_at=moment(0))
        for start in range(0, many, 1000)
    ]
    async with world.lifecycle(wide) as lifecycle:
        await asyncio.sleep(0)
        steps.clear()
        for post in posts:
            await lifecycle.take_post(post)
            await asyncio.sleep(0)
        await noted("posts")
        world.apis["a"].lists(*alerts)
        await noted("between")
        for at in (31, 62, 93):
            await world.pass_time(lifecycle, at, step=31)
            await noted(f"sweep {at}")
    await noted("stop")
    async with world.lifecycle(wide) as lifecycle:
        await noted("restart")
        await world.pass_time(lifecycle, 124, step=31)
        await noted("sweep after the restart")
    del longest["between"]
    limit = step_limit()
    assert {what: seconds for what, seconds in longest.items() if seconds > limit} == {}
    assert len({said.target for said in world.told}) == many

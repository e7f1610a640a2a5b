"""Ten thousand groups hold up nothing else that the process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from bus.messages import Health
from reactor.decide.decider import Decider
from reactor.decide.partition_context import PartitionContext
from tests.integration.roles.conftest import PARTITIONS, World, eventually, running
from tests.steps import step_limit, steps_measured

Make = Callable[..., AbstractAsyncContextManager[World]]
GROUPS = 10_000
AT_ONCE = 100
RULE = """
apiVersion: reactor/v1
rules:
- {{name: all, kind: Notification, match: "service/**", mode: Enforce, tolerationSeconds: 600}}
"""


@pytest.mark.alone
async def test_no_step_with_ten_thousand_groups_holds_the_process_for_a_tenth_of_a_second(make_world: Make) -> None:
    """Coming in, standing, and taken over by another decider."""
    longest: dict[str, float] = {}
    async with make_world(rule=RULE) as world:

        def decider(name: str) -> Decider:
            return Decider(PartitionContext(world.bus, world.clock, world.routing, PARTITIONS, name))

        with steps_measured() as steps:

            async def noted(what: str) -> None:
                await asyncio.sleep(0)
                longest[what] = max(steps)
                steps.clear()

            one = decider("one")
            async with running(one.run):
                await eventually(lambda: len(one.owned()) == PARTITIONS, within=60)
                for start in range(0, GROUPS, AT_ONCE):
                    targets = [f"service/east/shop/s{number}" for number in range(start, start + AT_ONCE)]
                    await asyncio.gather(*(world.see(target, Health.UNHEALTHY) for target in targets))
                await eventually(lambda: len(one.groups()) == GROUPS, within=120)
                await noted("coming in")
                await asyncio.sleep(2)  # two checkpoints
                await noted("standing")
            await noted("handed over")
            two = decider("two")
            async with running(two.run):
                await eventually(lambda: len(two.groups()) == GROUPS, within=120)
                await asyncio.sleep(2)
                await noted("taken over")
            await noted("stopped")
        limit = step_limit()
    assert {what: seconds for what, seconds in longest.items() if seconds > limit} == {}

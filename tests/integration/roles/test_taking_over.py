"""The new owner of a partition knows all that the owner before it knew."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from bus import subjects
from bus.messages import Backend, Health, Observation, Route, SetWeights
from bus.topology import FACTS, GROUPS
from reactor.route.publisher import FactPublisher
from rules.engine.routing import Routing
from rules.loader import load_rules
from tests.integration.roles.conftest import PARTITIONS, World, eventually

Make = Callable[..., AbstractAsyncContextManager[World]]
RULE = """
apiVersion: reactor/v1
rules:
- name: shop
  kind: TrafficFailover
  mode: {mode}
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, selector: app=shop}}
  tolerationSeconds: {toleration}
"""
PARTITION = subjects.partition_of("", "east/shop", PARTITIONS)  # all rules of a neighbourhood share its home


async def say(world: World, service: str, status: Health, *, ago: float = 0.0) -> None:
    seen_at = world.clock.now() - timedelta(seconds=ago)
    await world.publisher.publish(
        Observation(target=f"service/east/shop/{service}", status=status, observed_at=seen_at)
    )


async def list_route(world: World, *services: str) -> None:
    backends = tuple(Backend(service=name, weight=int(name == services[0])) for name in services)
    await world.publisher.publish(
        Route(
            cluster="east", kind="TrafficSplit", namespace="shop", name="web", labels={"app": "shop"},
            backends=backends, observed_at=world.clock.now(),
        )
    )  # fmt: skip


async def all_read(world: World) -> None:
    """Wait until the owner has stored that it has read all that was said."""
    newest = (await world.bus.extent(FACTS)).last
    async with world.bus.store(GROUPS).watch(subjects.key(str(PARTITION), "position")) as changes:
        async for change in changes:
            if not isinstance(change, str) and json.loads(change.value)["sequence"] >= newest:
                return


async def test_who_takes_over_knows_what_was_said_of_backends_that_no_route_had_yet(make_world: Make) -> None:
    """Sources repeat what they see only now and then: until then, nothing could be moved, away or there."""
    async with make_world(rule=RULE) as world:
        async with world.decider("one"):
            await say(world, "web", Health.UNHEALTHY)
            await say(world, "spare", Health.HEALTHY)
            await all_read(world)
        async with world.decider("two"), world.executor():
            await list_route(world, "web", "spare")
            action = await world.next_write()
    assert isinstance(action, SetWeights)
    assert action.weights == {"web": 0, "spare": 1}


async def test_an_old_word_that_came_last_is_not_what_was_said_last(make_world: Make) -> None:
    async with make_world(rule=RULE) as world:
        async with world.decider("one"):
            await say(world, "web", Health.HEALTHY)
            await say(world, "spare", Health.UNHEALTHY)
            await say(world, "spare", Health.HEALTHY, ago=5)
            await all_read(world)
        async with world.decider("two") as decider:
            await list_route(world, "web", "spare")
            await eventually(lambda: len(decider.groups()) == 1)
            [group] = decider.groups()
    spare = group.members["service/east/shop/spare"]
    assert spare.status is Health.UNHEALTHY


SOON = 5.0
OTHER = (
    RULE
    + """
- name: other
  kind: TrafficFailover
  mode: {mode}
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, selector: app=other}}
"""
)


def with_rules(world: World, text: str, toleration: float = 0.0) -> World:
    """The same bus, and other rule files."""
    routing = Routing(load_rules([("shop.yaml", text.format(mode="Enforce", toleration=toleration))]).rules)
    publisher = FactPublisher(world.bus, routing, PARTITIONS, world.clock, source="/test")
    return replace(world, routing=routing, publisher=publisher)


@pytest.mark.parametrize("old", [RULE.replace("app=shop", "app=old"), OTHER.replace("app=shop", "app=old")])
async def test_what_an_owner_with_old_rules_has_read_counts_for_those_who_know_the_new_ones(
    make_world: Make, old: str
) -> None:
    """A process with new rules published it, and the owner still had the old ones. Nothing is said again."""
    async with make_world(rule=RULE) as new:
        async with with_rules(new, old).decider("one") as decider:
            await list_route(new, "web", "spare")
            await say(new, "web", Health.UNHEALTHY)
            await say(new, "spare", Health.HEALTHY)
            await all_read(new)
            assert decider.groups() == []
        async with new.decider("two"), new.executor():
            action = await new.next_write(within=SOON)
    assert isinstance(action, SetWeights)
    assert action.weights == {"web": 0, "spare": 1}


async def test_what_is_stored_is_read_by_new_rules_once_and_undoes_nothing_newer(make_world: Make) -> None:
    async with make_world(rule=RULE, toleration=60.0) as world:
        async with world.decider("one") as decider:
            await list_route(world, "web", "spare")
            await say(world, "web", Health.UNHEALTHY, ago=5)
            await say(world, "web", Health.HEALTHY, ago=4)
            await say(world, "spare", Health.HEALTHY)
            await say(world, "web", Health.UNHEALTHY)
            await all_read(world)
            [before] = decider.groups()
        newer = with_rules(world, OTHER, toleration=60.0)
        async with newer.decider("two") as decider:
            await eventually(lambda: bool(decider.groups()))
            [after] = decider.groups()
            await position_says(world, newer.routing.rule_set)
    assert (after.members, after.state, after.position) == (before.members, before.state, before.position)


async def position_says(world: World, rules: str) -> None:
    async with world.bus.store(GROUPS).watch(subjects.key(str(PARTITION), "position")) as changes:
        async for change in changes:
            if not isinstance(change, str) and json.loads(change.value)["rules"] == rules:
                return

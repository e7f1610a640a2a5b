"""A partition asks for the looks that its windows lack, and answers executors on looks from after their question."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus, provision
from bus.messages import Action, Health, Observation, Pause, RefreshRequest, RouteRef, WantedReply, WantedRequest
from bus.port import Bus
from bus.testing.memory import MemoryBus
from bus.topology import FACTS
from reactor.decide import reader_state
from reactor.decide.decider import Decider
from reactor.decide.questions import ANSWER_WITHIN
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from rules.engine import signals
from rules.engine.routing import Routing
from rules.kinds.quorum.state import QuorumState
from rules.loader import load_rules
from tests.integration.roles.conftest import EAST, PARTITIONS, RULE, WEST, World, eventually

OBJECT = RouteRef(cluster="east", kind="TrafficSplit", namespace="shop", name="checkout").object
PARTITION = subjects.partition_of("checkout", OBJECT, PARTITIONS)
TOLERATION = 0.5
Make = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture(params=["memory", "nats"])
async def a_bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bus]:
    """A bus in memory, and one of a real server."""
    if request.param == "memory":
        yield MemoryBus(Clock().now)
        return
    async with (
        EmbeddedServer(tmp_path / "nats") as server,
        JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus,
    ):
        await provision(bus)
        yield bus


@pytest.fixture
def world(a_bus: Bus) -> World:
    """A rule with a short toleration, on either bus."""
    routing, clock = (
        Routing(load_rules([("shop.yaml", RULE.format(mode="Enforce", toleration=TOLERATION))]).rules),
        Clock(),
    )
    return World(a_bus, clock, routing, FactPublisher(a_bus, routing, PARTITIONS, clock, source="/test"))


@dataclass
class Source:
    """A source that can be asked: it says what it sees when its targets change, and where it is asked to."""

    world: World
    sees: dict[str, Health]
    silent: bool = False
    asked: list[tuple[datetime, RefreshRequest]] = field(default_factory=list)
    since: dict[str, datetime] = field(default_factory=dict)
    stale: dict[str, float] = field(default_factory=dict)
    deaf: set[str] = field(default_factory=set)
    """Targets of which it says nothing when it is asked."""

    async def change(self, target: str, status: Health) -> None:
        """See something else from now on."""
        self.sees[target], self.since[target] = status, self.world.clock.now()
        await self.say(target)

    async def say(self, target: str) -> None:
        now = self.world.clock.now()
        seen = Observation(
            target=target, status=self.sees[target], signal="probe", source="probe", observed_at=now,
            since=self.since.setdefault(target, now), stale_seconds=self.stale.get(target, 90),
        )  # fmt: skip
        await self.world.publisher.publish(seen)

    async def hear(self, body: bytes) -> None:
        request = RefreshRequest.model_validate_json(body)
        self.asked.append((self.world.clock.now(), request))
        for target in () if self.silent else sorted({*request.targets} - self.deaf):
            await self.say(target)


@asynccontextmanager
async def a_source(world: World) -> AsyncIterator[Source]:
    source = Source(world, {EAST: Health.HEALTHY, WEST: Health.HEALTHY})
    stop = await world.bus.listen(subjects.refresh("probe"), source.hear)
    await world.list_route(checkout=1, checkout_west=0)
    for target in source.sees:
        await source.say(target)
    try:
        yield source
    finally:
        await stop()


async def ask(world: World, action: str) -> WantedReply | None:
    question = WantedRequest(action=action, rule="checkout", object=OBJECT)
    body = question.model_dump_json(by_alias=True).encode()
    answer = await world.bus.request(subjects.wanted(PARTITION), body, timedelta(seconds=60))
    return None if answer is None else WantedReply.model_validate_json(answer)


async def asked_for(decider: Decider) -> Action:
    """Wait until an action is asked for, which is not carried out."""
    await eventually(lambda: any(group.outbox for group in decider.groups()))
    [group] = decider.groups()
    return group.outbox[0].action


async def test_a_window_that_is_over_asks_the_source_and_acts_once_the_look_has_come(world: World) -> None:
    async with world.decider("one"), world.executor(), a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await world.next_write()
    over = source.since[EAST] + timedelta(seconds=TOLERATION)
    asked_at, request = source.asked[0]
    assert over <= request.not_before <= asked_at <= action.decided_at
    assert EAST in request.targets
    assert action.proven_at is not None
    assert action.proven_at >= over


async def test_a_source_that_does_not_answer_is_asked_every_second_and_nothing_is_done(world: World) -> None:
    async with world.decider("one") as decider, world.executor(), a_source(world) as source:
        source.silent = True
        await source.change(EAST, Health.UNHEALTHY)
        await eventually(lambda: len(source.asked) >= 4)
        times = [at for at, request in source.asked if EAST in request.targets]
        assert min(later - one for one, later in itertools.pairwise(times)) > timedelta(seconds=0.4)
        assert times[-1] - times[0] < timedelta(seconds=len(times) + 2)
        await eventually(lambda: any(g.held and g.held.reason == "SourceSilent" for g in decider.groups()))
        assert world.written == []
        source.silent = False
        await world.next_write()


async def test_a_target_that_is_well_when_it_is_asked_about_keeps_its_traffic(world: World) -> None:
    async with world.decider("one") as decider, world.executor(), a_source(world) as source:
        source.silent = True  # nothing is said of what it sees from now on until it was asked
        await source.change(EAST, Health.UNHEALTHY)
        await eventually(lambda: any(m.window for g in decider.groups() for m in g.members.values()))
        source.sees[EAST], source.since[EAST] = Health.HEALTHY, world.clock.now()
        await eventually(lambda: bool(source.asked))
        source.silent = False
        await eventually(lambda: all(m.window is None for g in decider.groups() for m in g.members.values()))
    assert world.written == []


async def test_an_executor_that_asks_gets_a_yes_after_a_fresh_look(world: World) -> None:
    async with world.decider("one") as decider, a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await asked_for(decider)
        before = world.clock.now()
        answer = await ask(world, action.id)
    assert answer is not None
    assert answer.wanted
    assert answer.at >= before
    assert max(request.not_before for _, request in source.asked) >= before


async def test_an_executor_that_asks_gets_a_no_where_the_present_speaks_against_it(world: World) -> None:
    async with world.decider("one") as decider, a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await asked_for(decider)
        source.sees[EAST], source.since[EAST] = Health.HEALTHY, world.clock.now()
        answer = await ask(world, action.id)
    assert answer is not None
    assert not answer.wanted
    assert answer.detail


async def test_an_executor_that_asks_gets_a_no_for_what_is_not_asked_for(world: World) -> None:
    async with world.decider("one") as decider, a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await asked_for(decider)
        answer = await ask(world, f"{action.id}0")
    assert answer is not None
    assert (answer.wanted, answer.detail) == (False, "it is no longer asked for")


async def test_an_executor_that_asks_gets_a_no_while_the_rule_is_paused(world: World) -> None:
    async with world.decider("one") as decider, a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await asked_for(decider)
        stop = Pause(rule="*", by="ann", reason="upgrade", observed_at=world.clock.now())
        await world.publisher.publish(stop)
        await eventually(lambda: all(group.paused for group in decider.groups()))
        answer = await ask(world, action.id)
    assert answer is not None
    assert not answer.wanted


async def test_an_executor_that_asks_gets_no_answer_while_the_source_is_silent(world: World) -> None:
    async with world.decider("one") as decider, a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await asked_for(decider)
        source.silent = True
        began = world.clock.now()
        assert await ask(world, action.id) is None
        assert world.clock.now() - began >= ANSWER_WITHIN


async def test_questions_that_wait_for_a_source_keep_the_partition_from_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.decide.questions.ANSWER_WITHIN", timedelta(seconds=40))
    async with world.decider("one") as decider, a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await asked_for(decider)
        source.silent = True
        asking = [asyncio.create_task(ask(world, action.id)) for _ in range(50)]
        await eventually(lambda: len(source.asked) >= 3)
        await source.change(EAST, Health.HEALTHY)
        await eventually(lambda: all(o.action.id != action.id for g in decider.groups() for o in g.outbox), within=20)
        answers = await asyncio.gather(*asking)
    assert [answer is not None and answer.wanted for answer in answers] == [False] * 50


async def test_a_partition_that_was_given_away_answers_no_more(world: World) -> None:
    async with world.decider("one") as decider, a_source(world) as source:
        await source.change(EAST, Health.UNHEALTHY)
        action = await asked_for(decider)
    assert await ask(world, action.id) is None
    assert (await world.bus.extent(FACTS)).last > 0


async def test_silence_that_counts_as_bad_is_counted_from_the_start_after_an_outage_of_the_bus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that could not hear the source cannot claim that it was silent. Times are a tenth of those in
    production."""
    monkeypatch.setattr(signals, "SILENT_SECONDS", 1.5)
    monkeypatch.setattr(reader_state, "LAP", timedelta(seconds=0.5))
    clock = Clock()
    bus = MemoryBus(clock.now)
    rules = load_rules(
        [("shop.yaml", RULE.format(mode="Enforce", toleration=1.0) + "  treatUnknownAs: Unhealthy\n")]
    ).rules
    routing = Routing(rules)
    world = World(bus, clock, routing, FactPublisher(bus, routing, PARTITIONS, clock, source="/test"))
    async with world.decider("one") as decider, a_source(world) as source:
        source.stale[EAST], source.deaf = 0.5, {EAST}
        await source.say(EAST)
        await eventually(lambda: any(EAST in request.targets for _, request in source.asked))
        bus.down = True
        await asyncio.sleep(2)  # the outage
        bus.down = False
        back = clock.now()
        action = await asked_for(decider)
    assert action.decided_at - back >= timedelta(seconds=1.4)


ZONE = """
apiVersion: reactor/v1
sources:
- {name: zone-a, kind: Quorum, members: node/prod/a-*, target: zone/prod/a, unhealthyAt: 1}
rules: []
"""


async def test_a_quorum_that_is_asked_asks_its_members_sources_and_says_its_judgement_again(a_bus: Bus) -> None:
    routing, clock = Routing.of(load_rules([("zone.yaml", ZONE)])), Clock()
    world = World(a_bus, clock, routing, FactPublisher(a_bus, routing, PARTITIONS, clock, source="/test"))
    source = Source(world, {f"node/prod/a-{number}": Health.HEALTHY for number in range(3)})
    stop = await a_bus.listen(subjects.refresh("probe"), source.hear)
    async with world.decider("one") as decider:
        for node in source.sees:
            await source.say(node)
        await eventually(lambda: any(len(group.members) == 3 and group.state.said for group in decider.groups()))
        wanted_from = clock.now()
        request = RefreshRequest(targets=("zone/prod/a",), not_before=wanted_from)
        await a_bus.notify(subjects.refresh("zone-a"), request.model_dump_json(by_alias=True).encode())

        def proven_until() -> datetime:
            [group] = decider.groups()
            assert isinstance(group.state, QuorumState)
            assert group.state.said is not None
            assert group.state.said.proven_until is not None
            return group.state.said.proven_until

        await eventually(lambda: proven_until() >= wanted_from)
        assert set(source.asked[-1][1].targets) == set(source.sees)
        [group] = decider.groups()
        assert group.state.said is not None
        await eventually(lambda: decider.groups()[0].state.said.said_at >= wanted_from)
    await stop()

"""Executors with actions that come twice, late, from other rules, or that they cannot work on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from time import time_ns

import nats
import pytest
from nats.aio.msg import Msg

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import decode, encode
from bus.jetstream import JetStreamBus
from bus.jetstream.keyvalue import KeyValueStore
from bus.messages import DecisionRecord, Mode, Outcome, RouteRef, SetWeights, iso
from bus.port import KeyValueEntry, Outgoing
from bus.topology import ACTIONS, DECISIONS, FACTS, GROUPS, INTENTS
from reactor.execute.executor import Executor
from reactor.execute.intent import Intent
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from rules.core.group import Group, OutboxEntry
from rules.engine.group_codec import dump_group
from rules.engine.routing import scope_of
from rules.kinds.traffic.state import TrafficState
from tests.integration.roles.conftest import PARTITIONS, RULE, World, eventually, running

Make = Callable[..., AbstractAsyncContextManager[World]]
ROUTE = "east/shop/TrafficSplit/checkout"


def action(world: World, *, rule: str = "checkout", generation: int = 1, late: float = 0.0) -> SetWeights:
    """`late`: seconds after now at which it was decided."""
    return SetWeights(
        id=f"{rule}/{ROUTE}/{generation}", rule=rule, object=ROUTE, generation=generation, mode=Mode.ENFORCE,
        because="PrimaryUnhealthy", decided_at=world.clock.now() + timedelta(seconds=late),
        route=RouteRef(cluster="east", kind="TrafficSplit", namespace="shop", name="checkout"),
        weights={"checkout": 0, "checkout-west": 1},
    )  # fmt: skip


async def ask(world: World, asked: SetWeights, name: str, *, partition: int = 0) -> None:
    subject = subjects.action(partition, "SetWeights", asked.object)
    await world.bus.publish(Outgoing(subject, encode(asked, id=name, source="/test", time=asked.decided_at), name))


def background() -> float:
    """Number of quarantined actions."""
    return float(telemetry.quarantined.labels(ACTIONS.name)._value.get())


class Ahead(Clock):
    """An hour later than the bus."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


def too_late(world: World) -> Executor:
    """One that comes to everything an hour after it was asked for."""
    return Executor(world.bus, Ahead(), world.publisher, world.carry_out)


async def test_what_is_asked_for_again_is_done_once(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        first, second = action(world), action(world, generation=2)
        for number, asked in enumerate((first, first, second)):
            await ask(world, asked, f"m{number}")
        await eventually(lambda: second in world.written)
        assert world.written == [first, second]


async def test_what_owners_of_two_releases_publish_under_two_ids_is_done_once(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        asked, later = action(world), action(world, generation=2)
        await ask(world, asked, f"{asked.id}#1")
        await eventually(lambda: world.written == [asked])
        await ask(world, asked, f"{asked.id}@{iso(asked.decided_at)}#1")
        await ask(world, later, f"{later.id}@{iso(later.decided_at)}#1")
        await eventually(lambda: later in world.written)
        assert world.written == [asked, later]


async def test_a_group_that_was_forgotten_and_counts_from_one_again_is_acted_for_again(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        old = [action(world, generation=number) for number in (1, 2, 3)]
        for number, asked in enumerate(old):
            await ask(world, asked, f"old{number}")
        await eventually(lambda: world.written == old)
        new = [action(world, generation=number, late=60) for number in (1, 2)]
        for number, asked in enumerate(new):
            await ask(world, asked, f"new{number}")
        await eventually(lambda: world.written == [*old, *new])


async def test_the_first_action_on_an_object_is_begun_without_a_look_at_what_was_begun_before(
    make_world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    get = KeyValueStore.get

    async def counted(store: KeyValueStore, key: str) -> KeyValueEntry:
        looks.append(key)
        return await get(store, key)

    monkeypatch.setattr(KeyValueStore, "get", counted)
    async with make_world() as world, world.executor():
        first, second = action(world), action(world, generation=2)
        await ask(world, first, "first")
        await eventually(lambda: world.written == [first])
        assert looks == []
        await ask(world, second, "second")
        await eventually(lambda: world.written == [first, second])
        assert len(looks) == 1


async def test_an_older_decision_is_refused_also_where_clocks_are_a_little_apart(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        newer, older = action(world, generation=2), action(world, generation=1, late=2)
        await ask(world, newer, "newer")
        await eventually(lambda: world.written == [newer])
        await ask(world, older, "older")
        assert (await outcome(world, older)).reason == "Stale"
        assert world.written == [newer]


@pytest.mark.parametrize("word", [b"\xff", b"[" * 100_000, b"{}"], ids=lambda word: repr(word[:2]))
async def test_an_intent_that_cannot_be_read_holds_up_no_action(make_world: Make, word: bytes) -> None:
    async with make_world() as world:
        asked = action(world)
        key = subjects.key(asked.rule, asked.object)
        await world.bus.store(INTENTS).put(key, word, revision=None)
        before = telemetry.quarantined.labels(f"KV_{INTENTS.name}")._value.get()
        async with world.executor():
            await ask(world, asked, "m")
            assert (await outcome(world, asked)).status == "Done"
        assert world.written == [asked]
        assert telemetry.quarantined.labels(f"KV_{INTENTS.name}")._value.get() == before + 1
        assert Intent.read((await world.bus.store(INTENTS).get(key)).value).is_of(asked)


async def test_an_action_of_a_rule_that_is_not_known_here_waits_for_a_member_that_knows_it(make_world: Make) -> None:
    newer = RULE.replace("name: checkout\n  kind", "name: newer-than-ours\n  kind")
    async with make_world(rule=newer) as other, make_world() as world, world.executor():
        asked = action(world, rule="newer-than-ours")
        await ask(world, asked, "m", partition=5)
        known = action(world)
        await ask(world, known, "known")
        await eventually(lambda: world.written == [known])
        async with other.answers(), other.executor():
            assert (await outcome(world, asked, partition="5")).status == "Done"
        assert (world.written, other.written) == ([known], [asked])


async def test_an_action_that_no_rule_allows_is_quarantined_after_ten_minutes(make_world: Make) -> None:
    async with make_world() as world:
        before = background()
        await ask(world, action(world, rule="unheard-of"), "m")
        async with running(too_late(world).run):
            await eventually(lambda: background() == before + 1)
        assert world.written == []


async def test_a_message_of_another_type_among_the_actions_is_quarantined_once(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        before, at = background(), world.clock.now()
        said = Outcome(action="checkout/x/1", status="Done", observed_at=at)
        body = encode(said, id="o", source="/test", time=at)
        await world.bus.publish(Outgoing(subjects.action(0, "SetWeights", ROUTE), body, "o"))
        await eventually(lambda: background() == before + 1)
        good = action(world)
        await ask(world, good, "good")
        await eventually(lambda: world.written == [good])
        assert background() == before + 1


async def test_an_action_that_another_client_pushes_into_the_executors_inbox_is_not_carried_out(
    make_world: Make, server: EmbeddedServer
) -> None:
    async with make_world() as world, world.executor():
        assert isinstance(world.bus, JetStreamBus)
        inboxes, foreign = set[str](), list[str]()
        world.bus.connection.on_foreign = lambda stream, _: foreign.append(stream)

        async def heartbeat(message: Msg) -> None:
            if (message.headers or {}).get("Status") == "100":
                inboxes.add(message.subject)

        client = await nats.connect(server.url, allow_reconnect=False)
        await client.subscribe("_INBOX_reactor.>", cb=heartbeat)
        await eventually(lambda: bool(inboxes))
        forged = action(world)
        body = encode(forged, id="f", source="/reactor/decider", time=forged.decided_at)
        for inbox in list(inboxes):
            # A reply of $JS.ACK the server itself refuses.
            await client.publish(inbox, body, reply=f"_INBOX.x.x.x.1.99.99.{time_ns()}.0")
        await client.flush()
        await eventually(lambda: len(foreign) >= 1)
        assert set(foreign) == {ACTIONS.name}
        good = action(world, generation=2)
        await ask(world, good, "good")
        await eventually(lambda: good in world.written)
        assert world.written == [good]
        await client.close()


async def test_an_action_that_cannot_be_worked_on_does_not_hold_up_the_others(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        broken, good = action(world, rule="broken"), action(world)
        await world.bus.store(INTENTS).put(subjects.key("broken", ROUTE), b"[]", revision=None)
        await ask(world, broken, "broken")
        await ask(world, good, "good")
        await eventually(lambda: world.written == [good])
        await ask(world, action(world, generation=2), "next")
        await eventually(lambda: len(world.written) == 2)


async def test_what_is_owed_when_a_partition_is_taken_over_is_in_the_audit(make_world: Make) -> None:
    async with make_world() as world:
        asked, rule = action(world), world.routing.rules["checkout"]
        partition = subjects.partition_of("checkout", scope_of(rule, ROUTE), PARTITIONS)
        group = Group(
            "checkout",
            ROUTE,
            TrafficState(),
            generation=1,
            outbox=(OutboxEntry(asked, asked.decided_at + timedelta(hours=1)),),
        )
        await world.bus.store(GROUPS).put(subjects.group(partition, "checkout", ROUTE), dump_group(group), revision=0)
        async with (
            world.decider("one"),
            world.bus.read(DECISIONS, f"{subjects.ROOT}.decisions.>", after=0) as reading,
        ):
            [told] = await reading.next(timedelta(seconds=60))
        record = decode(told.body).data
        assert isinstance(record, DecisionRecord)
        assert [one["id"] for one in record.actions] == [asked.id]


async def test_what_is_already_so_is_not_done_while_an_older_write_may_be_on_its_way(make_world: Make) -> None:
    async with make_world() as world:
        older, newer = action(world, generation=1), action(world, generation=2)
        intents, key, now = world.bus.store(INTENTS), subjects.key("checkout", ROUTE), world.clock.now()
        await intents.put(key, Intent.of(older).dump(), revision=0)
        world.answer = lambda asked: Outcome(action=asked.id, status="Done", wrote=False, observed_at=now)
        async with world.executor():
            await ask(world, newer, "newer")
            said = await outcome(world, newer)
            assert (said.status, said.reason) == ("Failed", "InProgress")
            begun = Intent.read((await intents.get(key)).value)
            assert begun.is_of(newer)
            assert begun.has_rival(now)
            over = replace(begun, older=iso(now - timedelta(seconds=1)))
            await intents.put(key, over.dump(), revision=None)
            await ask(world, newer, "again")
            async with asyncio.timeout(60):
                while not Intent.read((await intents.get(key)).value).done:
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize("done", [True, False])
async def test_what_was_begun_and_is_called_off_is_looked_at_and_told_as_it_is(make_world: Make, done: bool) -> None:
    """The process that began it, or its bus, was gone before anyone knew whether it was written."""
    async with make_world() as world, world.answers(lambda _: False):
        asked, now = action(world, late=-10), world.clock.now()
        intents, key = world.bus.store(INTENTS), subjects.key("checkout", ROUTE)
        await intents.put(key, Intent.of(asked).dump(), revision=0)
        refused = {"status": "Refused", "reason": "CalledOff", "detail": "the test says so"}
        world.answer = lambda asked: Outcome.model_validate(
            {"action": asked.id, "observed_at": now, **({"status": "Done", "wrote": False} if done else refused)}
        )
        async with world.executor():
            await ask(world, asked, "again")
            said = await outcome(world, asked)
            assert (said.status, said.reason) == (("Done", None) if done else ("Refused", "CalledOff"))
            assert Intent.read((await intents.get(key)).value).done is done


async def test_what_is_called_off_before_it_was_begun_is_not_looked_at(make_world: Make) -> None:
    async with make_world() as world, world.answers(lambda _: False), world.executor():
        asked = action(world, late=-10)
        await ask(world, asked, "first")
        assert (await outcome(world, asked)).reason == "CalledOff"
        assert world.written == []


async def outcome(world: World, asked: SetWeights, *, partition: str = "*") -> Outcome:
    subject = f"{subjects.ROOT}.facts.{partition}.outcome.{subjects.token(asked.id)}"
    async with world.bus.read(FACTS, subject, after=0) as reading:
        told, *_ = await reading.next(timedelta(seconds=60))  # in each partition that it concerns
    found = decode(told.body).data
    assert isinstance(found, Outcome)
    return found

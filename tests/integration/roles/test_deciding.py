"""From a fact on the bus to an action carried out, through real deciders and executors on a real nats-server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta

import nats
import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import decode, encode
from bus.errors import Refused
from bus.jetstream import JetStreamBus, provision
from bus.messages import Action, Health, Observation, Outcome, Pause, Resume, SetWeights
from bus.port import Delivery, Outgoing
from bus.subjects import ROOT, owner
from bus.topology import DECISIONS, FACTS, GROUPS, ROUTERS
from reactor.decide.checkpoint_pace import CHECKPOINT
from reactor.decide.decider import Decider
from reactor.decide.partition import Partition
from reactor.decide.watermark import Watermark
from reactor.runtime import telemetry
from rules.core.reasons import Held
from tests.integration.roles.conftest import EAST, PARTITIONS, WEST, World, eventually, running

Make = Callable[..., AbstractAsyncContextManager[World]]
AWAY = {"checkout": 0, "checkout-west": 1}
HOME = {"checkout": 1, "checkout-west": 0}
PAUSED = 5.0
GOOD, BAD = Health.HEALTHY, Health.UNHEALTHY


async def healthy(world: World) -> None:
    await world.list_route(checkout=1, checkout_west=0)
    await world.see(EAST, Health.HEALTHY)
    await world.see(WEST, Health.HEALTHY)


def weights(action: Action) -> dict[str, int]:
    assert isinstance(action, SetWeights)
    return action.weights


async def test_a_dead_primary_fails_over_and_back(make_world: Make) -> None:
    async with make_world() as world, world.decider("one"), world.executor():
        await healthy(world)
        await world.see(EAST, Health.UNHEALTHY)
        assert weights(await world.next_write()) == AWAY
        await world.see(EAST, Health.HEALTHY)
        assert weights(await world.next_write()) == HOME
    assert len(world.written) == 2


async def test_a_restart_forgets_no_deadline(make_world: Make) -> None:
    """The window over which it was decided is the one that the first decider opened: by what is recorded of it."""
    async with make_world(toleration=1.5) as world:
        async with world.decider("one") as decider:
            await healthy(world)
            await world.see(EAST, Health.UNHEALTHY)
            opened = world.clock.now()
            await eventually(lambda: any(group.next_deadline for group in decider.groups()))
        async with (
            world.decider("two"),
            world.executor(),
            world.bus.read(DECISIONS, f"{ROOT}.decisions.>", after=0) as log,
        ):
            action = await world.next_write()
            record = decode((await log.next(timedelta(seconds=60)))[-1].body).data
        assert weights(action) == AWAY
        assert action.decided_at - opened > timedelta(seconds=1.4)
        [window] = [one for one in record.evidence if one.target == EAST]
        assert window.window_began <= opened
        assert timedelta(seconds=1.4) < window.window_ended - window.window_began < timedelta(seconds=3)


async def test_what_is_heard_while_no_process_decides_is_decided_later(make_world: Make) -> None:
    async with make_world() as world:
        await healthy(world)
        await world.see(EAST, Health.UNHEALTHY)
        async with world.decider("one"), world.executor():
            assert weights(await world.next_write()) == AWAY


async def test_a_recovery_that_is_still_unread_stops_the_failover(make_world: Make) -> None:
    """The window would be over by now, but what ends it is in the stream already."""
    async with make_world(toleration=3) as world:
        async with world.decider("one") as decider:
            await healthy(world)
            await world.see(EAST, Health.UNHEALTHY)
            await eventually(lambda: any(group.next_deadline for group in decider.groups()))
        await world.see(EAST, Health.HEALTHY)
        await asyncio.sleep(3.1)  # no process decides: this is the time that passes
        async with world.decider("two") as decider, world.executor():
            await eventually(lambda: [m.window for g in decider.groups() for m in g.members.values()] == [None, None])
    assert world.written == []


async def test_a_window_waits_for_what_is_in_the_hands_of_a_router(make_world: Make) -> None:
    """The secondary's failure came in, and the router that took it is cut off: no process moves traffic there."""
    async with make_world(toleration=0.3) as world, world.decider("one") as decider, world.executor():
        await healthy(world)
        waits = telemetry.holds.labels("", Held.CATCHING_UP)
        before = waits._value.get()
        async with world.bus.work(ROUTERS, batch=1) as router:
            failed = Observation(target=WEST, status=Health.UNHEALTHY, observed_at=world.clock.now())
            body = encode(failed, id="1", source="/test", time=failed.observed_at)
            await world.bus.publish(Outgoing(subjects.observation("health", WEST), body, "1"))
            [taken] = await router.next(timedelta(seconds=60))
            await world.see(EAST, Health.UNHEALTHY)
            await eventually(lambda: waits._value.get() > before)
            await world.publisher.publish(failed)
            await router.ack([taken])
        await eventually(lambda: any(g.held and g.held.reason == "NoHealthySecondary" for g in decider.groups()))
    assert world.written == []


async def test_what_is_read_while_it_is_asked_whether_all_is_known_is_taken_first(
    make_world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The secondary's failure is given to the reader between the question and the decision."""
    asked, is_late = Watermark.up_to, False

    async def slowly(self: Watermark, moment: datetime, taken: int) -> datetime | None:
        nonlocal is_late
        is_end_of_window = moment in {group.next_deadline for group in decider.groups()}  # others ask at their start
        if is_end_of_window and not is_late:
            is_late = True
            await world.see(WEST, Health.UNHEALTHY)
            await eventually(lambda: decider.unread() > 0)
        return await asked(self, moment, taken)

    async with make_world(toleration=0.3) as world, world.decider("one") as decider, world.executor():
        await healthy(world)
        await eventually(lambda: [m.status for g in decider.groups() for m in g.members.values()] == [GOOD, GOOD])
        monkeypatch.setattr(Watermark, "up_to", slowly)
        await world.see(EAST, Health.UNHEALTHY)
        await eventually(lambda: any(g.held and g.held.reason == "NoHealthySecondary" for g in decider.groups()))
    assert is_late
    assert world.written == []


async def test_facts_that_never_pause_hold_up_no_window(make_world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that it is asked whether all is known, another one comes."""
    asked = Watermark.up_to

    async def meanwhile(self: Watermark, moment: datetime, taken: int) -> datetime | None:
        until = await asked(self, moment, taken)
        await world.see(EAST, Health.UNHEALTHY)
        await asyncio.sleep(0.02)  # the reader gets it, where it reads meanwhile
        return until

    async with make_world(toleration=0.3) as world, world.decider("one"), world.executor():
        await healthy(world)
        await world.see(EAST, Health.UNHEALTHY)
        monkeypatch.setattr(Watermark, "up_to", meanwhile)
        assert weights(await world.next_write()) == AWAY


async def test_partitions_write_their_checkpoints_one_after_the_other_and_decide_meanwhile(make_world: Make) -> None:
    """With all at once, what a decision has to store waits for all of these on a busy disk."""
    async with make_world(toleration=30) as world:
        shared = world.shared("one")
        decider = Decider(shared)
        async with shared.writers, running(decider.run):
            await healthy(world)
            await world.see(EAST, Health.UNHEALTHY)
            await eventually(lambda: any(group.next_deadline for group in decider.groups()))
            due = world.clock.monotonic() + 2 * CHECKPOINT.total_seconds()
            await eventually(lambda: world.clock.monotonic() > due)
            await world.see(WEST, Health.UNHEALTHY)
            await eventually(lambda: [m.status for g in decider.groups() for m in g.members.values()] == [BAD, BAD])
            assert not await world.bus.store(GROUPS).entries(">")
            shared.writers.release()
            async with asyncio.timeout(30):
                while not await world.bus.store(GROUPS).entries(">"):
                    await asyncio.sleep(0.05)
            await shared.writers.acquire()


async def test_a_decider_knows_how_many_facts_it_has_not_decided_on(
    make_world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_world() as world:
        decider, taking, goes_on = Decider(world.shared("one")), asyncio.Event(), asyncio.Event()
        take = Partition._take

        async def slow(partition: Partition, deliveries: Sequence[Delivery]) -> None:
            taking.set()
            await goes_on.wait()
            await take(partition, deliveries)

        monkeypatch.setattr(Partition, "_take", slow)
        async with running(decider.run):
            await eventually(lambda: len(decider.owned()) == PARTITIONS)
            await world.see(EAST, Health.UNHEALTHY)
            await taking.wait()
            for _ in range(3):
                await world.see(EAST, Health.UNHEALTHY)
            await eventually(lambda: decider.unread() == 3)
            goes_on.set()
            await eventually(lambda: decider.unread() == 0)


async def test_an_action_that_failed_is_tried_again_with_the_same_id(make_world: Make) -> None:
    async with make_world() as world:
        answers = iter(["Failed", "Done"])

        def answer(action: Action) -> Outcome:
            return Outcome.model_validate(
                {
                    "action": action.id,
                    "status": next(answers),
                    "reason": "ApiUnavailable",
                    "observedAt": world.clock.now(),
                }
            )

        world.answer = answer
        async with world.decider("one") as decider, world.executor():
            await healthy(world)
            await world.see(EAST, Health.UNHEALTHY)
            first = await world.next_write()
            await eventually(lambda: any(g.held and g.held.reason == "ActionFailed" for g in decider.groups()))
            second = await world.next_write()
            await eventually(lambda: all(not g.outbox and g.held is None for g in decider.groups()))
    assert first.id == second.id


async def test_a_dry_run_is_recorded_and_asks_for_no_approval(make_world: Make) -> None:
    async with make_world(mode="DryRun") as world:
        async with (
            world.decider("one"),
            world.executor(),
            world.bus.read(DECISIONS, f"{ROOT}.decisions.>", after=0) as log,
        ):
            await healthy(world)
            await world.see(EAST, Health.UNHEALTHY)
            record = decode((await log.next(timedelta(seconds=60)))[0].body).data
        assert record.actions[0]["weights"] == AWAY
        assert record.actions[0]["mode"] == "DryRun"
        # Not by its facts: where they were read before all was known, a moment that passes decides, as with any window.
        assert (EAST, Health.UNHEALTHY) in [(one.target, one.status) for one in record.evidence]
    assert world.written == []


async def test_a_paused_rule_waits_until_it_is_resumed(make_world: Make) -> None:
    async with make_world() as world, world.decider("one") as decider, world.executor():
        await healthy(world)
        now = world.clock.now()
        await world.publisher.publish(Pause(rule="check*", by="ann", reason="upgrade", observed_at=now))
        await world.see(EAST, Health.UNHEALTHY)
        await eventually(lambda: any(g.held and g.held.reason == "Paused" for g in decider.groups()))
        assert world.written == []
        await world.publisher.publish(Resume(rule="*", by="ann", observed_at=world.clock.now()))
        assert weights(await world.next_write()) == AWAY


async def test_a_restart_forgets_no_deadline_of_a_pause(make_world: Make) -> None:
    async with make_world() as world, world.executor():
        async with world.decider("one") as decider:
            await healthy(world)
            asked = world.clock.now()
            pause = Pause(rule="check*", by="ann", reason="upgrade", for_seconds=PAUSED, observed_at=asked)
            await world.publisher.publish(pause)
            await world.see(EAST, Health.UNHEALTHY)
            await eventually(lambda: any(g.held and g.held.reason == "Paused" for g in decider.groups()))
        async with world.decider("two"):
            assert weights(await world.next_write()) == AWAY
            assert world.clock.now() >= asked + timedelta(seconds=PAUSED)


async def test_two_deciders_share_the_partitions_and_act_once(make_world: Make) -> None:
    async with make_world() as world, world.executor(), world.decider("one") as one, world.decider("two") as two:
        await eventually(lambda: bool(one.owned() and two.owned()))
        await eventually(lambda: sorted(one.owned() + two.owned()) == list(range(PARTITIONS)))
        await healthy(world)
        await world.see(EAST, Health.UNHEALTHY)
        assert weights(await world.next_write()) == AWAY
        await eventually(lambda: all(not g.outbox for g in [*one.groups(), *two.groups()]))
    assert len(world.written) == 1


@pytest.mark.alone
async def test_a_decider_that_leaves_is_replaced_within_a_second(make_world: Make) -> None:
    async with make_world() as world, world.executor(), world.decider("one") as one:
        async with world.decider("two") as two:
            await eventually(lambda: bool(two.owned()))
        await eventually(lambda: one.owned() == list(range(PARTITIONS)), within=1.0)


async def test_a_former_owner_cannot_publish_any_more(make_world: Make) -> None:
    async with make_world() as world:
        old = await world.bus.acquire_epoch(owner(3), "old")
        await world.bus.acquire_epoch(owner(3), "new")
        try:
            await world.bus.publish(Outgoing(f"{ROOT}.actions.3.x.y", b"{}", "late", old))
        except Refused:
            return
    raise AssertionError("the server took a message of a former owner")


async def test_an_unreadable_message_stops_nothing(make_world: Make) -> None:
    async with make_world() as world, world.decider("one"), world.executor():
        for partition in range(PARTITIONS):
            await world.bus.publish(Outgoing(f"{ROOT}.facts.{partition}.x.y", b"\xff{", f"bad{partition}"))
            await world.bus.publish(Outgoing(f"{ROOT}.actions.{partition}.x.y", b"[]", f"bad{partition}"))
        await healthy(world)
        await world.see(EAST, Health.UNHEALTHY)
        assert weights(await world.next_write()) == AWAY


async def test_an_action_already_done_is_not_done_again(make_world: Make) -> None:
    """A redelivery after the outcome was published: the intent says that it is done."""
    async with make_world() as world, world.decider("one"), world.executor():
        await healthy(world)
        await world.see(EAST, Health.UNHEALTHY)
        action = await world.next_write()
        body = encode(action, id="again", source="/test", time=action.decided_at)
        await world.bus.publish(Outgoing(f"{ROOT}.actions.0.setweights.again", body, "again"))
        await world.see(EAST, Health.HEALTHY)
        assert weights(await world.next_write()) == HOME
    assert [weights(action) for action in world.written] == [AWAY, HOME]


async def test_a_trace_that_comes_in_is_carried_to_the_action_and_its_outcome(make_world: Make) -> None:
    """The trace of a probe's observation goes along on every hop, to the outcome."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with make_world() as world, world.decider("one"), world.executor():
        await healthy(world)
        failure = Observation(target=EAST, status=Health.UNHEALTHY, observed_at=world.clock.now())
        await world.publisher.publish(failure, "traced", trace)
        await world.next_write()
        async with world.bus.read(FACTS, f"{ROOT}.facts.*.outcome.>", after=0) as outcomes:
            [outcome] = await outcomes.next(timedelta(seconds=60))
    assert outcome.traceparent == trace


async def recreate_facts(world: World, server: EmbeddedServer) -> None:
    """As an operator might, or a restore from a backup that did not hold them."""
    client = await nats.connect(server.url)
    await client.jetstream().delete_stream(FACTS.name)
    await client.close()
    async with JetStreamBus.connect(server.url, name="operator", timeout=timedelta(seconds=10)) as bus:
        await provision(bus)


def unhealthy(decider: Decider) -> bool:
    return any(member.window is not None for group in decider.groups() for member in group.members.values())


async def test_deciders_go_on_hearing_when_the_stream_of_facts_is_created_again(
    make_world: Make, server: EmbeddedServer
) -> None:
    async with make_world(toleration=60.0) as world, world.decider("one") as decider:
        await healthy(world)
        for status in (Health.HEALTHY, Health.UNHEALTHY):
            await world.see(EAST, status)
        await eventually(lambda: unhealthy(decider))
        await recreate_facts(world, server)
        await world.see(EAST, Health.HEALTHY)
        await eventually(lambda: bool(decider.groups()) and not unhealthy(decider))


async def test_who_takes_over_hears_when_the_stream_of_facts_was_created_again_meanwhile(
    make_world: Make, server: EmbeddedServer
) -> None:
    async with make_world(toleration=60.0) as world:
        async with world.decider("one") as decider:
            await healthy(world)
            for status in (Health.HEALTHY, Health.UNHEALTHY):
                await world.see(EAST, status)
            await eventually(lambda: unhealthy(decider))
        await recreate_facts(world, server)
        async with world.decider("two") as decider:
            await eventually(lambda: unhealthy(decider))  # no source has said that it is over
        async with world.decider("three") as decider:
            await eventually(lambda: bool(decider.groups()))
            await world.see(EAST, Health.HEALTHY)
            await eventually(lambda: bool(decider.groups()) and not unhealthy(decider))

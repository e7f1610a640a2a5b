"""No cluster takes another one's slots, and one that does not answer is tried by one action at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from bus.messages import Action, Outcome
from reactor.actions.outcomes import Waited
from reactor.execute import slots
from reactor.execute.slots import Slots
from reactor.runtime.clock import Clock
from tests.clock import on_virtual_time, virtual_clock
from tests.unit.actions.builders import notify, route, set_weights
from tests.unit.actions.workload.builders import cancel, evict, place, purge, set_taints
from tests.unit.actions.zone.builders import zone_step
from tests.unit.webhook.builders import counted

CONCURRENCY = 8


class Stepped(Clock):
    """Time that goes on only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "PATIENCE_SECONDS", 0.01)
        yield


def to(cluster: str) -> Action:
    return set_weights({"p": 0}, route().model_copy(update={"cluster": cluster}))


def answer(action: Action, reason: str | None = None) -> Outcome:
    status: Any = "Failed" if reason else "Done"
    return Outcome(action=action.id, status=status, reason=reason, observed_at=Clock().now())


@pytest.mark.parametrize(
    ("action", "peers"),
    [
        (to("east"), {"east"}),
        (zone_step("Fence"), {"prod"}),
        (place({"member1": 1, "member2": 1}), {"member1", "member2"}),
        (evict("member1"), {"member1"}),
        (purge("member1"), {"member1"}),
        (cancel("member1"), {"member1"}),
        (evict("member1", carrier="Karmada"), {"Karmada"}),
        (set_taints("member1", carrier="Karmada"), {"Karmada"}),
        (set_taints("member1", carrier="Kubernetes"), set()),
        (notify("ops"), {"notifier ops"}),
    ],
)
def test_every_kind_of_action_says_whom_it_writes_to(action: Action, peers: set[str]) -> None:
    assert action.peers == peers


async def test_a_cluster_gets_a_quarter_of_the_slots_and_the_others_get_theirs() -> None:
    some, over = Slots(CONCURRENCY, Clock()), asyncio.Event()

    async def hang() -> Outcome:
        await over.wait()
        return answer(to("dead"))

    hanging = [asyncio.create_task(some.run(to("dead"), hang)) for _ in range(CONCURRENCY // slots.SHARE)]
    await asyncio.sleep(0)

    async def work() -> Outcome:
        return answer(to("well"))

    with pytest.raises(Waited, match="no slot is free for dead") as error:
        await some.run(to("dead"), work)
    assert error.value.after == slots.BUSY_SECONDS
    assert (await some.run(to("well"), work)).status == "Done"
    over.set()
    await asyncio.gather(*hanging)
    assert (await some.run(to("dead"), work)).status == "Done"


async def test_a_cluster_that_answers_gets_more_slots_but_never_those_that_are_left_to_the_others() -> None:
    some, over, running = Slots(CONCURRENCY, Clock()), asyncio.Event(), list[str]()

    async def work() -> Outcome:
        return answer(to("well"))

    async def hang() -> Outcome:
        running.append("well")
        await over.wait()
        return answer(to("well"))

    first = asyncio.create_task(some.run(to("well"), hang))  # while it lasts, the share is kept
    await asyncio.sleep(0)
    for _ in range(2 * CONCURRENCY):
        await some.run(to("well"), work)
    rest = [asyncio.create_task(some.run(to("well"), hang)) for _ in range(CONCURRENCY)]
    await asyncio.wait(rest, timeout=0.2)  # those that get no slot give up
    over.set()
    await asyncio.gather(first, *rest, return_exceptions=True)
    assert len(running) == CONCURRENCY - CONCURRENCY // slots.SHARE


async def test_after_a_time_out_one_action_at_a_time_is_tried_until_one_is_answered() -> None:
    clock = Stepped()
    some, tried = Slots(CONCURRENCY, clock), asyncio.Event()

    async def time_out() -> Outcome:
        clock.passed += slots.TIMED_OUT_SECONDS
        return answer(to("dead"), "ApiUnavailable")

    async def trial() -> Outcome:
        await tried.wait()
        return answer(to("dead"))

    async def work() -> Outcome:
        return answer(to("dead"))

    await some.run(to("dead"), time_out)
    trying = asyncio.create_task(some.run(to("dead"), trial))
    await asyncio.sleep(0)
    before = counted("reactor_action_slots_refused_total", peer="dead", reason="silent")
    for _ in range(2):
        with pytest.raises(Waited, match="dead did not answer"):
            await some.run(to("dead"), work)
    assert counted("reactor_action_slots_refused_total", peer="dead", reason="silent") == before + 2
    assert (await some.run(to("well"), work)).status == "Done"
    tried.set()
    await trying
    assert len(await asyncio.gather(*(some.run(to("dead"), work) for _ in range(2)))) == 2


async def test_a_refusal_at_once_is_an_answer() -> None:
    some, at_work = Slots(CONCURRENCY, Clock()), asyncio.Barrier(2)

    async def refused() -> Outcome:
        return answer(to("busy"), "ApiUnavailable")

    async def hang() -> Outcome:
        await at_work.wait()  # until both are at work
        return answer(to("busy"))

    await some.run(to("busy"), refused)
    async with asyncio.timeout(60):
        both = await asyncio.gather(*(some.run(to("busy"), hang) for _ in range(2)))
    assert [one.status for one in both] == ["Done", "Done"]


def test_where_no_other_waits_each_slot_that_gets_free_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API takes 0.9 s: those that went back to the queue together would miss each time when slots are free."""
    monkeypatch.setattr(slots, "PATIENCE_SECONDS", 0.5)

    async def crowd() -> float:
        clock = virtual_clock()
        some = Slots(36, clock, crowded=lambda: False)

        async def work() -> Outcome:
            await clock.sleep(0.9)
            return answer(to("slow"))

        async def done() -> None:
            while True:
                try:
                    await some.run(to("slow"), work)
                except Waited:  # left before the pause: what was raised would keep the share
                    pass
                else:
                    return
                await clock.sleep(slots.BUSY_SECONDS)

        began = clock.monotonic()
        await asyncio.gather(*(done() for _ in range(60)))
        return clock.monotonic() - began

    # 9 at first, one more with each answer up to 27: 9, 18, 27, and the other 6. By way of the queue: 6.9 s.
    assert on_virtual_time(crowd()) == pytest.approx(4 * 0.9)


async def test_what_waits_for_a_cluster_that_times_out_meanwhile_does_not_hang_after_it() -> None:
    clock, over = Stepped(), asyncio.Event()
    some, worked = Slots(CONCURRENCY, clock, crowded=lambda: False), list[str]()

    async def time_out() -> Outcome:
        await over.wait()
        clock.passed += slots.TIMED_OUT_SECONDS
        return answer(to("dead"), "ApiUnavailable")

    async def work() -> Outcome:
        worked.append("dead")
        return answer(to("dead"))

    hanging = [asyncio.create_task(some.run(to("dead"), time_out)) for _ in range(CONCURRENCY // slots.SHARE)]
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(some.run(to("dead"), work)) for _ in range(2)]
    await asyncio.sleep(0)
    over.set()
    given_up = await asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.gather(*hanging)
    assert (worked, [type(one) for one in given_up]) == ([], [Waited, Waited])


async def test_who_waits_for_a_slot_goes_back_once_others_wait_behind_it() -> None:
    over, crowded = asyncio.Event(), False
    some = Slots(CONCURRENCY, Clock(), crowded=lambda: crowded)

    async def hang() -> Outcome:
        await over.wait()
        return answer(to("slow"))

    hanging = [asyncio.create_task(some.run(to("slow"), hang)) for _ in range(CONCURRENCY // slots.SHARE)]
    await asyncio.sleep(0)
    waiting = asyncio.create_task(some.run(to("slow"), hang))
    await asyncio.wait({waiting}, timeout=5 * slots.PATIENCE_SECONDS)
    assert not waiting.done()
    crowded = True
    with pytest.raises(Waited, match="no slot is free for slow"):
        await waiting
    over.set()
    await asyncio.gather(*hanging)

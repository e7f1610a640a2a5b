"""A yes rests on what was seen a moment ago, though one of several sources took long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from bus.messages import RefreshRequest, WantedReply, WantedRequest
from reactor.decide import questions
from reactor.decide.questions import Questions
from reactor.decide.refreshing import Refresher
from reactor.runtime.clock import Clock
from rules.engine.evidence import Confirmation, Lack
from rules.engine.groups import GroupStore
from rules.engine.subscriptions import RuleObject
from tests.clock import on_virtual_time, virtual_clock

START = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = WantedRequest(action="a/1", rule="a", object="o").model_dump_json(by_alias=True).encode()


def questions_of(store: object, clock: Clock) -> Questions:
    """Questions to one that is store and sources together."""
    return Questions(lambda: cast("GroupStore", store), cast("Refresher", store), clock, lambda: None)


class Fleet:
    """Two sources: the first answers at once, and what it sees is good from `recovers` on; the second answers late."""

    def __init__(self, *, late: float, recovers: float) -> None:
        self.seconds, self._late, self._recovers = 0.0, late, recovers
        self._first: list[float] = []
        self.questions = questions_of(self, cast("Clock", self))

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    async def ask(self, lacks: Sequence[Lack]) -> None:
        """Looks take half a second of this world, and are decided on. Who has answered is not asked."""
        if any(lack.source == "first" for lack in lacks):
            self._first.append(self.seconds)
        self.seconds += 0.5
        self.questions.decided([("a", "o")])

    def confirmed_by(self, rule: str, object_: str) -> frozenset[tuple[str, str]]:
        return frozenset({(rule, object_)})

    def confirm(self, _rule: str, _object: str, _action: str, since: datetime, _now: datetime) -> Confirmation:
        seen = [at for at in self._first if at >= (since - START).total_seconds()]
        if seen and seen[-1] >= self._recovers:
            return Confirmation(wanted=False, detail="it is well")
        missing = [*([] if seen else ["first"]), *([] if self.seconds >= self._late else ["second"])]
        if not missing:
            return Confirmation(wanted=True)
        return Confirmation(wanted=None, lacks=tuple(Lack(one, "t", since, "") for one in missing))

    async def answer(self) -> dict[str, Any] | None:
        said = await self.questions.answer(ASKED)
        return WantedReply.model_validate_json(said).model_dump() if said is not None else None


async def test_a_target_that_recovers_while_another_source_is_slow_is_not_left() -> None:
    said = await Fleet(late=2.0, recovers=2.0).answer()
    assert said is not None
    assert (said["wanted"], said["detail"]) == (False, "it is well")


async def test_what_is_still_bad_is_a_yes_though_one_source_is_slow() -> None:
    fleet = Fleet(late=3.0, recovers=99.0)
    said = await fleet.answer()
    assert said is not None
    assert (said["wanted"], said["at"]) == (True, fleet.now())


class Waiting:
    """A store in which two actions wait for a look. Counts how often each is judged."""

    def __init__(self) -> None:
        self.judged = {"o": 0, "p": 0}
        self.seen = {"o": False, "p": False}
        self.asked = asyncio.Event()
        self.questions = questions_of(self, cast("Clock", self))

    def now(self) -> datetime:
        return START

    async def ask(self, _lacks: Sequence[Lack]) -> None:
        if all(self.judged.values()):
            self.asked.set()

    def confirmed_by(self, rule: str, object_: str) -> frozenset[tuple[str, str]]:
        return frozenset({(rule, object_), (rule, "*")})

    def confirm(self, _rule: str, object_: str, _action: str, _since: datetime, _now: datetime) -> Confirmation:
        self.judged[object_] += 1
        return Confirmation(wanted=True if self.seen[object_] else None)

    async def answer(self, object_: str) -> bool:
        said = await self.questions.answer(
            WantedRequest(action=f"a/{object_}", rule="a", object=object_).model_dump_json(by_alias=True).encode()
        )
        assert said is not None
        return WantedReply.model_validate_json(said).wanted


@pytest.mark.parametrize("decided", ["o", "*"])
async def test_a_question_is_judged_again_by_decisions_of_its_own_groups_and_of_no_other(
    monkeypatch: pytest.MonkeyPatch, decided: str
) -> None:
    monkeypatch.setattr(questions, "LOOK", 60.0)  # no answer by the time alone
    waiting = Waiting()
    first, second = (asyncio.create_task(waiting.answer(object_)) for object_ in ("o", "p"))
    await waiting.asked.wait()
    for other in range(100):
        waiting.questions.decided([("a", f"other{other}")])
    waiting.seen["o"] = True
    waiting.questions.decided([("a", decided)])
    async with asyncio.timeout(5):
        assert await first
    assert waiting.judged == {"o": 2, "p": 2 if decided == "*" else 1}
    waiting.seen["p"] = True
    waiting.questions.decided([("a", "p")])
    async with asyncio.timeout(5):
        assert await second


class Judge:
    """A store whose one judge is asked for what its members have shown already: no look is missing."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.questions = Questions(
            lambda: cast("GroupStore", self), cast("Refresher", Nobody()), Clock(), lambda: self.did.append("decide")
        )  # fmt: skip

    def ask(self, _key: RuleObject, _since: datetime, _now: datetime) -> list[Lack]:
        self.did.append("ask")
        return []


class Nobody:
    """No source."""

    async def ask(self, _lacks: Sequence[Lack]) -> None:
        """Ask it nothing."""


async def test_a_judge_that_is_asked_decides_though_no_fact_comes() -> None:
    judge = Judge()
    request = RefreshRequest(targets=("zone/prod/a",), not_before=START)
    await judge.questions.refresh(("@quorum.zone-a", "*"), request.model_dump_json(by_alias=True).encode())
    assert judge.did == ["ask", "decide"]


async def test_without_evidence_there_is_no_answer() -> None:
    assert await Fleet(late=99.0, recovers=99.0).answer() is None


class Sources:
    """Sources on a busy machine: one look of each at a time, of which each `takes` so many seconds until it is known
    here. What `quick` sees is good from `recovers` on."""

    def __init__(self, clock: Clock, *, recovers: datetime | None = None, **takes: float) -> None:
        self._clock, self._takes, self._recovers = clock, takes, recovers
        self.seen = dict.fromkeys(takes, START)
        self._looking = set[str]()
        self.questions = questions_of(self, clock)

    async def ask(self, lacks: Sequence[Lack]) -> None:
        for source in {lack.source for lack in lacks} - self._looking:
            self._looking.add(source)
            asyncio.get_running_loop().call_later(self._takes[source], self._known, source, self._clock.now())

    def _known(self, source: str, began: datetime) -> None:
        self.seen[source] = began
        self._looking.discard(source)
        self.questions.decided([("a", "o")])

    def confirmed_by(self, rule: str, object_: str) -> frozenset[tuple[str, str]]:
        return frozenset({(rule, object_)})

    def confirm(self, _rule: str, _object: str, _action: str, since: datetime, _now: datetime) -> Confirmation:
        if self._recovers is not None and self.seen["quick"] >= self._recovers:
            return Confirmation(wanted=False)
        lacks = tuple(Lack(source, "t", since, "") for source, seen in self.seen.items() if seen < since)
        return Confirmation(wanted=None if lacks else True, lacks=lacks)


async def _asked_of_a_busy(takes: float) -> bool:
    return await Sources(virtual_clock(), busy=takes).questions.answer(ASKED) is not None


@pytest.mark.parametrize("takes", [0.2, 0.9, 1.3, 1.7])
def test_on_a_machine_so_busy_that_each_look_takes_more_than_a_second_there_is_an_answer(takes: float) -> None:
    assert on_virtual_time(_asked_of_a_busy(takes))


def test_what_was_seen_more_than_two_seconds_ago_is_no_reason_for_a_yes() -> None:
    assert not on_virtual_time(_asked_of_a_busy(2.5))


async def _asked_until_answered(sources: Sources, clock: Clock) -> tuple[bool, float]:
    """Ask without end, with the pauses of an executor. Gives the answer, and after how many seconds it was given."""
    began = clock.now()
    while (said := await sources.questions.answer(ASKED)) is None:
        await clock.sleep(0.5)
    return WantedReply.model_validate_json(said).wanted, (clock.now() - began).total_seconds()


async def _asked_of_the_slow(takes: float) -> tuple[float, float]:
    clock = virtual_clock()
    sources = Sources(clock, slow=takes)
    wanted, after = await _asked_until_answered(sources, clock)
    assert wanted
    return after, (clock.now() - sources.seen["slow"]).total_seconds()


@pytest.mark.parametrize("takes", [2.5, 4.0, 7.0, 8.0])
def test_a_server_that_is_slow_for_good_delays_an_action_and_does_not_prevent_it(takes: float) -> None:
    after, age = on_virtual_time(_asked_of_the_slow(takes))
    assert 30 < after < 60
    assert takes <= age <= 10


async def _recovers_beside_the_slow(recovers: float) -> tuple[bool, float]:
    clock = virtual_clock()
    sources = Sources(clock, recovers=clock.now() + timedelta(seconds=recovers), slow=7.0, quick=0.1)
    return await _asked_until_answered(sources, clock)


@pytest.mark.parametrize("recovers", [30 + n / 4 for n in range(60)])
def test_beside_a_server_that_is_slow_for_good_what_others_see_is_seen_within_a_second(recovers: float) -> None:
    wanted, after = on_virtual_time(_recovers_beside_the_slow(recovers))
    assert not wanted or recovers > after - 1.5

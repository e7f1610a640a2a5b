"""Promises of shared guards over any history, and over any bus that delays, doubles and loses messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bus.messages import AcquireReply, AcquireRequest, Action, Fact, Health, Observation, SetWeights
from rules.core.group import Group
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.limits.limiter import LimiterRule
from rules.limits.state import LimiterState
from rules.rehearsal.simulation import at, second
from rules.rulefile.guards import FileGuard, Guards
from tests.examples import many
from tests.unit.rules.builders import Event, paused, resumed
from tests.unit.rules.guards.world import Answers, Delays, World, down, home, shared, up, webs

QUICK = settings(max_examples=60)
COUNT = 4
QUIET = 2000
"""Seconds after the last event in which everything waits its turn out."""
TURNS = st.lists(
    st.tuples(
        st.integers(0, 40), st.sampled_from(["down", "down", "up", "pause", "resume"]), st.integers(0, COUNT - 1)
    ),
    min_size=1, max_size=12,
)  # fmt: skip
BUS = st.lists(st.sampled_from([(0.0,), (0.5,), (3.0,), (0.5, 4.0), ()]), min_size=1, max_size=7)
"""Carrying of messages, one after the other and from the start again: at once, late, twice, or never."""
LOSSES = 30
"""After so many messages none is lost any more: a loss that always hits the same message would have no end."""
OUTCOMES = st.lists(st.sampled_from([1, 5, 30]), min_size=1, max_size=5)


def history(turns: Sequence[tuple[int, str, int]]) -> tuple[list[Event], float]:
    events, now = home(COUNT), 1.0
    for pause, what, number in turns:
        now += pause
        match what:
            case "down":
                events += down(number, at=now)
            case "up":
                events += up(number, at=now)
            case "pause":
                events.append(paused(f"w{number}", at=now))
            case "resume":
                events.append(resumed(at=now))
    return [*events, resumed(at=now + 1)], now + QUIET


def carried(bus: Sequence[Sequence[float]]) -> Delays:
    """Only verdicts are lost: what a group says is said again, but not within the patience of every test."""
    number = 0

    def delays(fact: Fact, _now: float) -> Sequence[float]:
        nonlocal number
        number += 1
        way = bus[number % len(bus)]
        return way if way or (isinstance(fact, AcquireReply) and number < LOSSES) else (1.0,)

    return delays


def answered(times: Sequence[int]) -> Answers:
    return lambda action, now: [(now + times[action.generation % len(times)], "Done")]


def away(action: Action) -> bool:
    """True if guards limit the action; the way back needs none."""
    return isinstance(action, SetWeights) and action.because == "PrimaryUnhealthy"


class Watched(World):
    """A world that is looked at after each step."""

    most: int = 1
    crowded: str = ""

    def _step(self, now: float) -> None:
        super()._step(now)
        flying = [
            group.object
            for group in self.group_store.groups.values()
            if any(owed.wanted and away(owed.action) for owed in group.outbox)
        ]
        if len(flying) > self.most:
            self.crowded = f"at {now}: {flying}"


def moved(world: World) -> set[int]:
    """Numbers of the rules whose traffic is on the secondary."""
    return {
        number
        for number in range(COUNT)
        if (state := world.group(f"w{number}").state.route) is not None and dict(state.backends)[f"b{number}"]
    }


def failed(turns: Sequence[tuple[int, str, int]]) -> set[int]:
    """Numbers of the rules whose primary is down at the end."""
    last = {number: what for _, what, number in turns if what in ("down", "up")}
    return {number for number, what in last.items() if what == "down"}


# --- limits --------------------------------------------------------------------------------------------------------


@given(TURNS, BUS, OUTCOMES, st.integers(1, 3))
@many(60)
def test_never_more_than_max_concurrent_are_in_flight(turns: Any, bus: Any, times: Any, most: int) -> None:
    events, until = history(turns)
    world = Watched(webs(COUNT), [shared(maxConcurrent=most)], delays=carried(bus), answers=answered(times))
    world.most = most
    world.play(*events, until=until)
    assert world.crowded == ""
    assert moved(world) == failed(turns)


@given(TURNS, BUS, OUTCOMES, st.sampled_from([0.05, 0.5, 3]))
@many(60)
def test_never_more_than_one_and_the_rate_are_granted(turns: Any, bus: Any, times: Any, rate: float) -> None:
    events, until = history(turns)
    world = World(webs(COUNT), [shared(ratePerSecond=rate)], delays=carried(bus), answers=answered(times))
    world.play(*events, until=until)
    first: dict[tuple[str, int], float] = {}
    for _, decision in world.decisions:
        for fact in decision.emits:
            if isinstance(fact, AcquireReply) and fact.granted:
                first.setdefault((fact.object, fact.generation), second(fact.observed_at))
    moments = sorted(first.values())
    for one, other in pairwise(moments):
        assert other - one >= 1 / rate - 0.001
    assert moved(world) == failed(turns)


GUARDS = st.lists(
    st.sampled_from([
        shared(name="a", maxConcurrent=1), shared(name="b", maxConcurrent=2), shared(name="c", ratePerSecond=0.2),
        shared(name="d", maxUnhealthy="75%", rounding="Down", peers="service/*/*/a*"),
        shared(name="e", maxConcurrent=1, ratePerSecond=0.1),
        shared(name="f", rules=["w[01]"], maxConcurrent=1), shared(name="g", rules=["w[12]"], maxConcurrent=1),
        shared(name="h", rules=["w[023]"], maxConcurrent=1, ratePerSecond=1),
        shared(name="i", rules=["w[03]"], maxUnhealthy="75%", rounding="Down", peers="service/*/*/a*", maxConcurrent=1),
    ]),
    unique_by=lambda guard: guard.name, min_size=1, max_size=6,
)  # fmt: skip


@given(TURNS, BUS, OUTCOMES, GUARDS)
@many(60)
def test_each_group_gets_a_turn_whatever_the_guards(turns: Any, bus: Any, times: Any, guards: list[FileGuard]) -> None:
    events, until = history(turns)
    world = World(webs(COUNT), guards, delays=carried(bus), answers=answered(times)).play(*events, until=until)
    too_many = len(failed(turns)) > 3 and any(guard.name in ("d", "i") for guard in guards)
    assert too_many or moved(world) == failed(turns)
    if not too_many:
        budgets = [group.state for group in world.group_store.groups.values() if isinstance(group.state, LimiterState)]
        assert not [claim for budget in budgets for claim in budget.queue if claim.wanted]  # all were given back


def as_meant(claim: AcquireRequest) -> tuple[datetime, int, bool]:
    """The order in which a group's requests were meant: what it gave back in the moment in which it asked is given
    back, also where the bus turns the two round."""
    return claim.observed_at, claim.generation, not claim.wanted


@given(TURNS, BUS, OUTCOMES, GUARDS)
@many(60)
def test_every_claim_is_answered_when_it_is_heard(turns: Any, bus: Any, times: Any, guards: list[FileGuard]) -> None:
    events, until = history(turns)
    world = World(webs(COUNT), guards, delays=carried(bus), answers=answered(times)).play(*events, until=until)
    said: dict[tuple[float, str], set[tuple[str, int]]] = defaultdict(set)
    for now, decision in world.decisions:
        for fact in decision.emits:
            if isinstance(fact, AcquireReply):
                said[now, fact.guard].add((fact.object, fact.generation))
    newest: dict[tuple[str, str], AcquireRequest] = {}
    for now, facts in groupby(world.heard, key=lambda one: one[0]):
        claims = [fact for _, fact in facts if isinstance(fact, AcquireRequest)]
        for claim in sorted(claims, key=as_meant):
            last = newest.get((claim.guard, claim.object), claim)
            if as_meant(claim) >= as_meant(last):
                newest[claim.guard, claim.object] = claim
        for claim in claims:
            if claim.wanted and newest[claim.guard, claim.object] is claim:  # neither late, nor given back at once
                assert (claim.object, claim.generation) in said[now, claim.guard]


# --- restarts, order -----------------------------------------------------------------------------------------------


@given(TURNS, BUS, OUTCOMES, GUARDS)
@many(60)
def test_a_restart_at_any_moment_changes_nothing(turns: Any, bus: Any, times: Any, guards: list[FileGuard]) -> None:
    events, until = history(turns)
    whole, restarted = (
        World(webs(COUNT), guards, delays=carried(bus), answers=answered(times), restarts=restarts).play(
            *events, until=until
        )
        for restarts in (False, True)
    )
    assert whole.times == restarted.times
    assert whole.holds == restarted.holds
    assert whole.heard == restarted.heard


WORDS = st.lists(
    st.tuples(
        st.integers(0, 20), st.sampled_from("xyz"),
        st.sampled_from(["claim", "claim", "give", "good", "bad", "unknown"]), st.integers(0, 4),
    ),
    max_size=25,
)  # fmt: skip
LIMITS = st.sampled_from([
    Guards(max_concurrent=1), Guards(rate_per_second=0.1), Guards(max_concurrent=2, rate_per_second=0.5),
    Guards(max_unhealthy=1, max_concurrent=1), Guards(min_healthy=2, rate_per_second=0.2),
    Guards.model_validate(
        {"ratePerSecond": 1, "disruption": {"unhealthyAt": "60%", "secondaryRatePerSecond": 0.05}}, strict=False
    ),
])  # fmt: skip


def instants(words: Sequence[tuple[int, str, str, int]]) -> list[tuple[float, list[Fact]]]:
    """Facts by the instants in which they are heard, some of them late. One moment has one fact of each name."""
    now, generation, out = 0.0, defaultdict[str, int](lambda: 1), list[tuple[float, list[Fact]]]()
    spoken = set[tuple[str, float]]()
    for pause, name, what, late in words:
        now += pause
        moment = max(now - late, 0.0)
        if (name, moment) in spoken:
            continue
        spoken.add((name, moment))
        fact: Fact
        if what in ("claim", "give"):
            fact = AcquireRequest(
                guard="all", rule="w", object=name, generation=generation[name], wanted=what == "claim",
                observed_at=at(moment),
            )  # fmt: skip
            generation[name] += what == "give"
        else:
            status = {"good": Health.HEALTHY, "bad": Health.UNHEALTHY, "unknown": Health.UNKNOWN}[what]
            fact = Observation(target=f"cluster/{name}", status=status, observed_at=at(moment), stale_seconds=30)
        if out and out[-1][0] == now:
            out[-1][1].append(fact)
        else:
            out.append((now, [fact]))
    return out


def desk(limits: Guards) -> LimiterRule:
    return LimiterRule(name="@all", guards=limits, guarded=("w",), peers=("cluster/*",))


@given(WORDS, LIMITS, st.randoms(use_true_random=False))
@QUICK
def test_facts_of_one_instant_count_the_same_in_any_order(words: Any, limits: Guards, random: Any) -> None:
    rule = desk(limits)
    straight = shuffled = Group("@all", "*", LimiterState())
    for now, facts in instants(words):
        one = decide(rule, straight, facts, at(now))
        other = decide(rule, shuffled, random.sample(facts, len(facts)), at(now))
        assert (one.group, set(one.emits)) == (other.group, set(other.emits))
        straight, shuffled = one.group, other.group


@given(WORDS, LIMITS, st.data())
@QUICK
def test_what_comes_again_changes_nothing(words: Any, limits: Guards, data: st.DataObject) -> None:
    rule, group = desk(limits), Group("@all", "*", LimiterState())
    heard: list[Fact] = []
    for now, facts in instants(words):
        group = decide(rule, group, facts, at(now)).group
        heard += facts
        again = decide(rule, group, [data.draw(st.sampled_from(heard))], at(now))
        assert again.group == group


@given(WORDS, LIMITS, st.lists(st.integers(0, 300), max_size=20))
@QUICK
def test_looking_more_often_and_restarts_change_no_verdict(words: Any, limits: Guards, looks: list[int]) -> None:
    rule = desk(limits)

    def verdicts(extra: list[int], *, restarts: bool) -> list[Fact]:
        group, out, now = Group("@all", "*", LimiterState()), list[Fact](), 0.0
        waiting = instants(words)
        while now <= 1500:
            facts = [fact for when, together in waiting if when <= now for fact in together]
            waiting = [one for one in waiting if one[0] > now]
            decision = decide(rule, load_group(dump_group(group)) if restarts else group, facts, at(now))
            group, out = decision.group, [*out, *decision.emits]
            moments = [waiting[0][0]] if waiting else []
            moments += [second(group.next_deadline)] if group.next_deadline is not None else []
            moments += [look for look in extra if look > now]
            now = min(moments, default=1501)
        return out

    assert verdicts([], restarts=False) == verdicts(looks, restarts=True)

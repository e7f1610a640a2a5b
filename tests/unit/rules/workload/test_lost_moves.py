"""Moves of which a group does not know: their record was lost with the store of the bus, or an outcome never came."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Action, CancelEviction, CopyRecord, Evict, Fact, Outcome, Place, Purge
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator, at
from tests.unit.rules.builders import Event, outcome, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    copy,
    fact,
    held_copy,
    holds,
    member,
    placement,
    workload_rule,
)

TOLERATION, RECOVERY = 60, 30
MADE = {"m1": -9000.0, "m2": -100.0, "m3": -100.0}
FIRST, SECOND = "m1", "m2"


def rule(**keys: Any) -> dict[str, Any]:
    application = {"decisionConditions": {"tolerationSeconds": TOLERATION}, "gracePeriodSeconds": 600}
    one = placement("m1", "m2", "m3", spread={"minGroups": 1, "maxGroups": 1})
    return workload_rule(failover={"application": application}, recoverySeconds=RECOVERY, placement=one) | keys


def told(name: str, *, second: float = 0, by: str = "nginx", made: float | None = None, **record: Any) -> Event:
    """A copy as it is listed, with what it says of itself."""
    made_at = at(MADE[name] if made is None else made)
    return held_copy(name, 1, at=second, record=CopyRecord(created_at=made_at, rule=by, **record))


LEAVES: dict[str, Any] = {"leaves": "TolerationElapsed", "stays": (SECOND,)}
MOVED = [told(FIRST, **LEAVES), told(SECOND, placed_for=(FIRST,))]
PLACED = [told(FIRST, by=""), told(SECOND, placed_for=(FIRST,))]
BACK = [told(FIRST), told(SECOND, placed_for=(FIRST,), leaves="Recovered", stays=(FIRST,))]


def health(first: str, second: str, *, second_of: float = 1) -> list[Event]:
    return [copy(FIRST, first, at=second_of), copy(SECOND, second, at=second_of)]


@pytest.mark.parametrize("first", ["Healthy", "Unhealthy", "Unknown"])
def test_a_copy_that_leaves_goes_when_the_one_that_stays_is_healthy(first: str) -> None:
    assert acts(rule(), *MOVED, *health(first, "Healthy")) == [(1.0, "Purge", FIRST)]


def test_a_move_that_was_found_says_so() -> None:
    assert holds(rule(), *MOVED, *health("Unhealthy", "Unknown"), until=20) == [(0.0, "MoveFound")]


def test_a_copy_that_leaves_stays_after_all_only_when_it_is_proven_good() -> None:
    assert acts(rule(), *MOVED, copy(SECOND, "Unhealthy", at=1), until=50) == []
    found = acts(rule(), *MOVED, *health("Healthy", "Unhealthy"), until=50)
    assert found[0] == (31.0, "CancelEviction", FIRST)


def test_what_was_placed_for_a_copy_that_stays_after_all_goes() -> None:
    found = acts(rule(), *MOVED, *health("Healthy", "Unhealthy"))
    assert found == [(31.0, "CancelEviction", FIRST), (31.0, "Evict", SECOND), (31.0, "Purge", SECOND)]


def test_a_newer_copy_is_too_many_when_the_older_one_is_proven_good() -> None:
    assert acts(rule(), *PLACED, *health("Healthy", "Healthy")) == [(31.0, "Evict", SECOND), (31.0, "Purge", SECOND)]


def test_an_older_copy_that_is_bad_leaves_after_its_toleration() -> None:
    found = acts(rule(), *PLACED, *health("Unhealthy", "Healthy"))
    assert found == [(61.0, "Evict", FIRST), (61.0, "Purge", FIRST)]


def test_an_older_copy_that_is_listed_later_leaves_as_well() -> None:
    late = told(FIRST, second=500, **LEAVES)
    found = acts(rule(), told(SECOND, placed_for=(FIRST,)), copy(SECOND, "Healthy", at=1), late)
    assert found == [(500.0, "Purge", FIRST)]


def test_a_copy_that_is_one_too_many_goes_when_the_other_one_is_healthy() -> None:
    assert acts(rule(), *BACK, *health("Healthy", "Unhealthy")) == [(1.0, "Purge", SECOND)]


def test_a_copy_that_is_one_too_many_takes_the_place_of_one_that_has_to_leave() -> None:
    found = acts(rule(), *BACK, *health("Unhealthy", "Healthy"))
    assert found == [(61.0, "CancelEviction", SECOND), (61.0, "Evict", FIRST), (61.0, "Purge", FIRST)]


NOTHING_FOUND = {
    "the copy for which another one was made came later": [told(FIRST, by="", made=-50), PLACED[1]],
    "nobody knows when it came": [held_copy(FIRST, 1, at=0), PLACED[1]],
    "it is marked by another rule": [told(FIRST, by="other", **LEAVES), told(SECOND)],
    "it was made by another rule": [PLACED[0], told(SECOND, by="other", placed_for=(FIRST,))],
    "what was to stay beside it is not there": [told(FIRST, **{**LEAVES, "stays": ("m3",)}), told(SECOND)],
    "no other copy is there": [told(FIRST, **LEAVES)],
    "an earlier release has marked it, and did not say what stays": [
        told(FIRST, **{**LEAVES, "stays": ()}),
        told(SECOND),
    ],
    "it was made from the manifest of a marked one": [told(FIRST, **LEAVES, decided_at=at(-9500)), told(SECOND)],
    "both leave": [MOVED[0], BACK[1]],
}


@pytest.mark.parametrize("copies", NOTHING_FOUND.values(), ids=NOTHING_FOUND)
def test_nothing_is_found_where(copies: list[Event]) -> None:
    events = [*copies, *health("Healthy", "Healthy")]
    assert (acts(rule(), *events), holds(rule(), *events)) == ([], [])


@pytest.mark.parametrize("mode", ["DryRun", "Off"])
def test_a_rule_that_only_looks_finds_nothing(mode: str) -> None:
    assert acts(rule(mode=mode), *MOVED, *health("Healthy", "Healthy")) == []


def test_a_late_inventory_brings_no_move_back() -> None:
    """The mark was taken off since, by an action of this group."""
    events = [*MOVED, *health("Healthy", "Unhealthy"), copy(SECOND, "Healthy", at=50), *MOVED[:1]]
    late = told(FIRST, second=200, **LEAVES)
    assert acts(rule(), *events, late) == acts(rule(), *events)


class Lost:
    """A rule of which each Place is done, and the outcomes of whose evictions never come."""

    def __init__(self) -> None:
        self.store = GroupStore(Routing.of(rule_set(rule())))
        self.player = Simulator(self.store, outcomes=False)
        self.did: list[tuple[float, str, str]] = []
        self.silent: tuple[type[Action], ...] = (Evict,)
        """Actions without an outcome."""
        self.evicted: Evict | None = None

    def hear(self, now: float, *facts: Fact) -> None:
        """Carry out what is wanted by now, and hear this."""
        for emitted in [*self.player.until(at(now)), *self.player.take([*facts], at(now))]:
            action = emitted.what
            if not isinstance(action, Place | Evict | Purge | CancelEviction):
                continue
            self.did.append((emitted.at, type(action).__name__, getattr(action, "from_", SECOND)))
            self.evicted = action if isinstance(action, Evict) else self.evicted
            if not isinstance(action, self.silent):
                done = Outcome(action=action.id, rule="nginx", object=OBJECT, status="Done", observed_at=at(now))
                self.hear(now, done)


@pytest.fixture
def lost() -> Lost:
    """The copy on m1 has been bad for its toleration, is marked, and the outcome of that was lost."""
    lost = Lost()
    lost.hear(0, fact(member(FIRST)), fact(member(SECOND)))
    lost.hear(0, fact(held_copy(FIRST, 1, at=0, record=CopyRecord(created_at=at(-9000)))))
    lost.hear(1, fact(copy(FIRST, "Unhealthy", at=1)))
    lost.hear(62, fact(copy(FIRST, "Unhealthy", at=62)))
    assert [name for _, name, _ in lost.did] == ["Place", "Evict"]
    return lost


def test_an_eviction_that_was_called_off_and_carried_out_all_the_same_is_taken_back(lost: Lost) -> None:
    """Its executor was killed, and no decider answered the next one until it was too late to begin it."""
    assert lost.evicted is not None
    marked = CopyRecord(
        created_at=at(-9000), rule="nginx", decided_at=lost.evicted.decided_at, leaves="TolerationElapsed",
        stays=(SECOND,),
    )  # fmt: skip
    lost.hear(63, fact(held_copy(FIRST, 1, at=63, record=marked)))
    lost.hear(70, fact(copy(FIRST, "Healthy", at=70)))
    never = Outcome(
        action=lost.evicted.id, rule="nginx", object=OBJECT, status="Failed", reason="Waited", observed_at=at(99.5)
    )  # fmt: skip
    lost.hear(99.5, never)
    lost.hear(101, fact(copy(FIRST, "Healthy", at=101)))
    assert [one for one in lost.did[2:] if one[1] != "Evict" or one[2] == FIRST] == [(100.0, "CancelEviction", FIRST)]
    unmarked = CopyRecord(created_at=at(-9000), rule="nginx", decided_at=at(100))
    lost.hear(102, fact(held_copy(FIRST, 1, at=102, record=unmarked)), fact(copy(FIRST, "Healthy", at=102)))
    assert [one for one in lost.did if one[1] == "CancelEviction"] == [(100.0, "CancelEviction", FIRST)]


def test_a_mark_that_no_rule_wants_is_taken_off_a_good_copy_and_nothing_is_removed_for_it(lost: Lost) -> None:
    """Both copies are wanted by now: a removal would leave one too few."""
    assert lost.evicted is not None
    lost.silent = (Evict, CancelEviction)
    never = Outcome(
        action=lost.evicted.id, rule="nginx", object=OBJECT, status="Refused", reason="CalledOff", observed_at=at(64)
    )  # fmt: skip
    marked = CopyRecord(rule="nginx", decided_at=lost.evicted.decided_at, leaves="TolerationElapsed", stays=(SECOND,))
    lost.hear(64, fact(copy(FIRST, "Healthy", at=63.5)), fact(copy(SECOND, "Healthy", at=64)))
    lost.hear(93.6, never, fact(held_copy(FIRST, 1, at=93.6, record=marked)))
    lost.hear(94, fact(copy(FIRST, "Healthy", at=94)), fact(copy(SECOND, "Healthy", at=94)))
    lost.hear(95, fact(copy(FIRST, "Healthy", at=95)), fact(copy(SECOND, "Healthy", at=95)))
    assert (FIRST, "Purge") not in {(name, kind) for _, kind, name in lost.did}
    [group] = [one for one in lost.store.groups.values() if one.object == OBJECT]
    asked = [(one.action, one.wanted) for one in group.outbox]
    assert [(act.from_, wanted) for act, wanted in asked if isinstance(act, CancelEviction)] == [(FIRST, True)]


@pytest.mark.parametrize("status", ["Healthy", "Unhealthy"])
def test_a_copy_that_is_not_there_any_more_is_no_copy(lost: Lost, status: str) -> None:
    """Nothing saw it go: neither is the other one too many beside it, nor may it stay."""
    assert lost.evicted is not None
    gone = Outcome(
        action=lost.evicted.id, rule="nginx", object=OBJECT, status="Done", reason="CopyGone", observed_at=at(63)
    )  # fmt: skip
    lost.hear(63, gone)
    [group] = [one for one in lost.store.groups.values() if one.object == OBJECT]
    assert ([*group.state.copies], group.state.moves) == ([SECOND], {})
    lost.hear(64, fact(copy(SECOND, status, at=64)))
    assert lost.did[2:] == []


def test_a_mark_of_an_action_whose_outcome_is_still_to_come_is_not_taken_up(lost: Lost) -> None:
    assert lost.evicted is not None
    marked = CopyRecord(rule="nginx", decided_at=lost.evicted.decided_at, leaves="TolerationElapsed", stays=(SECOND,))
    lost.hear(63, fact(held_copy(FIRST, 1, at=63, record=marked)))
    [group] = [one for one in lost.store.groups.values() if one.object == OBJECT]
    assert [move.found for move in group.state.moves.values()] == [""]


def test_copies_that_are_listed_later_are_wanted() -> None:
    """One of two has left, and the one for it is there; the second one is listed a moment later, and stays."""
    two = rule(placement=placement("m1", "m2", "m3", "m4", spread={"minGroups": 2, "maxGroups": 2}))
    third = told("m3", second=2, made=-9000, by="")
    events = [*MOVED, third, copy(SECOND, "Healthy", at=1), copy("m3", "Healthy", at=3)]
    assert acts(two, *events) == [(1.0, "Purge", FIRST)]
    failing = [copy("m3", "Unhealthy", at=100), *(member(name) for name in ("m1", "m2", "m3", "m4"))]
    assert acts(two, *events, *failing)[1:3] == [(160.0, "Place", {"m2": 1, "m4": 1}), (160.0, "Evict", "m3")]


def test_a_replacement_that_is_gone_before_the_old_copy_has_left_is_placed_again() -> None:
    """A person has removed it, or an API server was restored to a time before it."""
    start = [
        held_copy(FIRST, 1, at=0),
        *map(member, MADE),
        *health("Healthy", "Unknown"),
        copy(FIRST, "Unhealthy", at=100),
    ]
    gone = held_copy(SECOND, None, at=170, exists=False)
    found = acts(rule(), *start, gone, copy(SECOND, "Healthy", at=175))
    moved = [(160.0, "Place", {SECOND: 1}), (160.0, "Evict", FIRST)]
    assert found == [*moved, (170.0, "Place", {SECOND: 1}), (175.0, "Purge", FIRST)]


def test_a_replacement_that_is_gone_while_the_old_copy_is_marked_is_placed_again() -> None:
    start = [
        held_copy(FIRST, 1, at=0),
        *map(member, MADE),
        *health("Healthy", "Unknown"),
        copy(FIRST, "Unhealthy", at=100),
    ]
    marked = outcome(f"nginx/{OBJECT}/2", "Done", at=166)
    events = [outcome(f"nginx/{OBJECT}/1", "Done", at=162), held_copy(SECOND, None, at=165, exists=False), marked]
    found = acts(rule(), *start, *events, outcomes=False, until=200)
    assert found[:2] == [(160.0, "Place", {SECOND: 1}), (162.0, "Evict", FIRST)]
    assert found[2:] == [(165.0, "Place", {SECOND: 1})]
    called_off = outcome(f"nginx/{OBJECT}/3", "Refused", at=166.5, reason="CalledOff")
    assert acts(rule(), *start, *events, called_off, outcomes=False, until=200)[3:] == [(166.5, "Place", {SECOND: 1})]

"""Checks of a group before it acts, and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Approve, Hold, Notify
from rules.core.group import Group
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.kinds.traffic.state import TrafficState
from rules.rehearsal.simulation import at
from tests.examples import many
from tests.unit.rules.builders import (
    Event,
    backends,
    healthy,
    holds,
    moves,
    paused,
    resumed,
    route,
    rule_set,
    said,
    step,
    the_rule,
    unhealthy,
)

MOVED, BACK = {"a": 0, "b": 1}, {"a": 1, "b": 0}
HOME: list[Event] = [route(BACK), healthy("a", at=0), healthy("b", at=0)]


def rule(**keys: Any) -> dict[str, Any]:
    from tests.unit.rules.builders import failover

    return failover(backends=backends("a", "b"), **keys)


def approved(when: float, *, asked: float | None = None, request: str = "") -> Event:
    moment = at(when if asked is None else asked)
    return when, Approve(
        rule="web", object="east/shop/TrafficSplit/web", by="ann", reason="INC-7", observed_at=moment, request=request,
    )  # fmt: skip


# --- pause ---------------------------------------------------------------------------------------------------------


def test_a_pause_says_who_why_and_since() -> None:
    things = said(rule(), *HOME, paused(at=5), unhealthy("a", at=10), until=20)
    [hold] = [one.what for one in things if isinstance(one.what, Hold)]
    assert hold.held == "Paused"
    assert hold.detail == "paused by ann since 1970-01-01T00:00:05+00:00: upgrade"


def test_a_pause_stops_the_way_back_too() -> None:
    """It is a person's word, and no guard: who pauses wants to see no hand on the route at all."""
    assert moves(rule(), *HOME, unhealthy("a", at=10), paused(at=20), healthy("a", at=30), until=60) == [(10, MOVED)]


# --- windows -------------------------------------------------------------------------------------------------------

MIDNIGHT = {"blockedWindows": [{"cron": "0 0 * * *", "durationSeconds": 3600}]}
"""Open from second 0 of a rehearsal, which is midnight."""


def test_nothing_starts_in_a_blocked_window_and_starts_at_its_end() -> None:
    history = [*HOME, unhealthy("a", at=10)]
    assert moves(rule(guards=MIDNIGHT), *history, until=3599.9) == []
    assert moves(rule(guards=MIDNIGHT), *history, until=4000) == [(3600, MOVED)]
    assert holds(rule(guards=MIDNIGHT), *history, until=4000) == [(10, "InBlockedWindow")]


def test_a_step_back_to_safety_is_not_blocked() -> None:
    standing = [route(MOVED), unhealthy("a", at=0), healthy("b", at=0)]
    assert moves(rule(guards=MIDNIGHT), *standing, healthy("a", at=10), until=100) == [(10, BACK)]


def test_a_window_that_ends_when_nothing_is_wanted_starts_nothing() -> None:
    assert moves(rule(guards=MIDNIGHT), *HOME, unhealthy("a", at=10), healthy("a", at=20), until=4000) == []


# --- cooldown ------------------------------------------------------------------------------------------------------


def test_an_action_on_the_same_object_waits_until_it_was_quiet() -> None:
    history = [*HOME, unhealthy("a", at=10), healthy("a", at=20), unhealthy("a", at=30)]
    calm = rule(guards={"cooldownSeconds": 60})
    assert moves(calm, *history, until=200) == [(10, MOVED), (20, BACK), (80, MOVED)]
    assert holds(calm, *history, until=200) == [(30, "Cooldown")]


def test_quiet_time_starts_when_the_action_was_carried_out() -> None:
    from tests.unit.rules.builders import outcome

    calm = the_rule(backends=backends("a", "b"), guards={"cooldownSeconds": 60})
    group = step(calm, None, 0, *HOME).group
    group = step(calm, group, 10, unhealthy("a", at=10)).group
    group = step(calm, group, 40, outcome("web/east/shop/TrafficSplit/web/1", "Done", at=40)).group
    assert group.acted_at == at(40)


def test_a_rehearsal_keeps_quiet_too() -> None:
    history = [*HOME, unhealthy("a", at=10), healthy("a", at=20), unhealthy("a", at=30)]
    calm = rule(mode="DryRun", guards={"cooldownSeconds": 60})
    assert moves(calm, *history, until=200) == [(10, MOVED), (20, BACK), (80, MOVED)]


# --- approval ------------------------------------------------------------------------------------------------------

ASKING = rule(mode="Approve")


def test_nothing_is_done_until_a_person_approves() -> None:
    history = [*HOME, unhealthy("a", at=10)]
    assert moves(ASKING, *history, until=5000) == []
    assert moves(ASKING, *history, approved(100), until=5000) == [(100, MOVED)]


def test_the_hold_says_what_would_be_done_and_until_when_the_yes_is_good() -> None:
    [one] = [one for one in said(ASKING, *HOME, unhealthy("a", at=10), until=20) if isinstance(one.what, Hold)]
    assert (one.at, one.what.held) == (10, "AwaitingApproval")  # type: ignore[union-attr]
    assert one.what.detail == "SetWeights weights a=0 b=1 (PrimaryUnhealthy); until 1970-01-01T00:15:10+00:00"


def test_a_yes_that_comes_too_late_is_none() -> None:
    history = [*HOME, unhealthy("a", at=10)]
    assert moves(ASKING, *history, approved(909.9), until=5000) == [(909.9, MOVED)]
    assert moves(ASKING, *history, approved(910), until=1800) == []
    assert holds(ASKING, *history, approved(910), until=1800) == [(10, "AwaitingApproval"), (910, "ApprovalExpired")]


def test_a_late_yes_to_the_same_plan_counts() -> None:
    history = [*HOME, unhealthy("a", at=10)]
    shown = step(the_rule(**{key: value for key, value in ASKING.items() if key != "name"}), None, 10, *history).group
    assert shown.grants is not None
    assert shown.grants.request is not None
    plan = shown.grants.request.desired
    assert moves(ASKING, *history, approved(1000, request=plan), until=5000) == [(1000, MOVED)]
    assert moves(ASKING, *history, approved(1000, request="another"), until=1800) == []


def test_a_second_yes_counts_where_the_first_one_came_too_late_to_be_of_use() -> None:
    """The first was given in time and read after it; it must not keep the second one out until it is asked again."""
    history = [*HOME, unhealthy("a", at=10)]
    group = step(rule_set(ASKING).rules[0], None, 10, *history).group
    assert group.grants is not None
    assert group.grants.request is not None
    plan = group.grants.request.desired
    for first in (approved(950, asked=909, request=plan), approved(950)):
        assert moves(ASKING, *history, first, until=1800) == []
        assert moves(ASKING, *history, first, approved(960, request=plan), until=1800) == [(960, MOVED)]


def test_what_expired_and_is_still_wanted_is_asked_for_again_by_itself() -> None:
    history = [*HOME, unhealthy("a", at=10)]
    assert holds(ASKING, *history, until=3000) == [
        (10, "AwaitingApproval"), (910, "ApprovalExpired"), (1810, "AwaitingApproval"), (2710, "ApprovalExpired"),
    ]  # fmt: skip
    assert moves(ASKING, *history, approved(1900), until=3000) == [(1900, MOVED)]


def test_a_yes_to_something_else_is_none() -> None:
    """The move to b was shown; when b fails too, c needs an approval of its own."""
    three = [route({"a": 1, "b": 0, "c": 0}), *(healthy(name, at=0) for name in "abc")]
    asking = rule(mode="Approve") | {"backends": [{"service": "a"}, {"service": "b"}, {"service": "c", "tier": 2}]}
    history = [*three, unhealthy("a", at=10), unhealthy("b", at=20)]
    to_c = {"a": 0, "b": 0, "c": 1}
    assert moves(asking, *history, approved(30, asked=15), until=5000) == []
    assert moves(asking, *history, approved(30), until=5000) == [(30, to_c)]
    assert moves(asking, *history, approved(919), until=5000) == [(919, to_c)]


THREE = [route({"a": 1, "b": 0, "c": 0}), *(healthy(name, at=0) for name in "abc")]
WITH_C = rule(mode="Approve") | {"backends": [{"service": "a"}, {"service": "b"}, {"service": "c", "tier": 2}]}
CHANGES = [*THREE, unhealthy("a", at=10), unhealthy("b", at=20)]


def test_a_wish_that_changes_is_shown_again() -> None:
    shown = [(one.at, one.what.detail) for one in said(WITH_C, *CHANGES, until=500) if isinstance(one.what, Hold)]
    assert [at for at, _ in shown] == [10, 20]
    assert ["b=1" in detail for _, detail in shown] == [True, False]
    assert "c=1" in shown[1][1]


def test_people_are_told_of_each_wish_that_waits_for_them() -> None:
    told = [one for one in said(WITH_C | {"notify": ["oncall"]}, *CHANGES, until=500) if isinstance(one.what, Notify)]
    assert [one.at for one in told] == [10, 20]


def test_a_yes_that_names_what_it_was_shown_counts_for_nothing_else() -> None:
    group = step(rule_set(WITH_C).rules[0], None, 10, *CHANGES[:-1]).group
    later = step(rule_set(WITH_C).rules[0], group, 20, CHANGES[-1]).group
    shown, shown_later = (one.grants.request.desired for one in (group, later) if one.grants and one.grants.request)
    assert shown != shown_later
    assert moves(WITH_C, *CHANGES, approved(30, request=shown)) == []
    assert moves(WITH_C, *CHANGES, approved(30, request=shown_later)) == [(30, {"a": 0, "b": 0, "c": 1})]


def test_a_yes_of_an_older_version_names_nothing_and_is_for_what_was_asked_last() -> None:
    body = {"rule": "web", "object": "x", "by": "ann", "reason": "seen", "observedAt": "2026-01-01T00:00:00Z"}
    assert Approve.model_validate(body).request == ""


def test_a_yes_counts_for_one_failure_only() -> None:
    history = [*HOME, unhealthy("a", at=10), approved(20), healthy("a", at=30), unhealthy("a", at=40)]
    assert moves(ASKING, *history, until=5000) == [(20, MOVED), (30, BACK)]
    assert moves(ASKING, *history, approved(50), until=5000) == [(20, MOVED), (30, BACK), (50, MOVED)]


def test_a_yes_to_an_outage_that_ended_unseen_is_none_to_the_next() -> None:
    # Of the time from 20 to 32 the source says only that the target was not bad all along.
    rule = {**ASKING, "tolerationSeconds": 10}
    seen = [unhealthy("a", at=10, since=at(10)), unhealthy("a", at=33, since=at(32))]
    assert holds(rule, *HOME, *seen, until=60) == [(20, "AwaitingApproval"), (42, "AwaitingApproval")]
    assert moves(rule, *HOME, *seen, approved(35), until=60) == []
    assert moves(rule, *HOME, *seen, approved(35), approved(45), until=60) == [(45, MOVED)]


def test_a_yes_counts_after_a_time_without_observations_in_which_the_outage_went_on() -> None:
    rule = {**ASKING, "tolerationSeconds": 10}
    seen = [unhealthy("a", at=10, since=at(10)), unhealthy("a", at=33, since=at(10))]
    assert holds(rule, *HOME, *seen, until=60) == [(20, "AwaitingApproval")]
    assert moves(rule, *HOME, *seen, approved(35), until=60) == [(35, MOVED)]


def test_what_expired_is_asked_for_again_when_it_begins_again() -> None:
    history = [*HOME, unhealthy("a", at=10), healthy("a", at=1000), unhealthy("a", at=1001)]
    assert holds(ASKING, *history, until=1500)[2:] == [(1001, "AwaitingApproval")]
    assert moves(ASKING, *history, approved(1500), until=5000) == [(1500, MOVED)]


def test_a_pause_and_its_end_ask_again() -> None:
    history = [*HOME, unhealthy("a", at=10), paused(at=1000), resumed(at=1010)]
    assert moves(ASKING, *history, approved(1100), until=5000) == [(1100, MOVED)]


def test_the_way_back_needs_no_yes() -> None:
    standing = [route(MOVED), unhealthy("a", at=0), healthy("b", at=0)]
    assert moves(ASKING, *standing, healthy("a", at=10), until=100) == [(10, BACK)]


def test_an_enforced_rule_with_the_guard_asks_as_well() -> None:
    asking = rule(guards={"approval": {"expireSeconds": 60}})
    history = [*HOME, unhealthy("a", at=10)]
    assert moves(asking, *history, approved(70), until=500) == []
    assert moves(asking, *history, approved(69), until=500) == [(69, MOVED)]


def test_who_approved_is_remembered_while_it_matters() -> None:
    asking = the_rule(backends=backends("a", "b"), mode="Approve", guards={"ratePerSecond": 0.1})
    group = step(asking, None, 0, *HOME, unhealthy("a", at=0)).group
    group = load_group(dump_group(step(asking, group, 5, approved(5)).group))
    assert group.grants is not None
    assert group.grants.request is not None
    assert (group.grants.request.by, group.grants.request.reason) == ("ann", "INC-7")


# --- the order, and what goes on -----------------------------------------------------------------------------------


def test_a_person_is_asked_only_when_it_could_be_done() -> None:
    asking = rule(mode="Approve", guards=MIDNIGHT)
    history = [*HOME, unhealthy("a", at=10)]
    assert holds(asking, *history, until=4000) == [(10, "InBlockedWindow"), (3600, "AwaitingApproval")]
    assert moves(asking, *history, approved(60), until=5000) == []


def test_what_is_on_its_way_is_not_asked_again() -> None:
    limited = the_rule(backends=backends("a", "b"), guards=MIDNIGHT)
    group = step(limited.model_copy(update={"guards": None}), None, 0, *HOME, unhealthy("a", at=0)).group
    assert group.outbox
    decision = step(limited, group, 20)
    assert [action.id for action in decision.actions] == [group.outbox[0].action.id]  # published again, not held
    assert decision.held is None


def test_a_held_step_of_a_return_is_not_taken_as_reached() -> None:
    """A guard holds the move away; the step of the return that was asked for before it stays what it was."""
    steps = rule(guards=MIDNIGHT, steps=[{"percent": 10, "pauseSeconds": 60}])
    standing = [route(MOVED), unhealthy("a", at=0), healthy("b", at=0), healthy("a", at=10)]
    assert moves(steps, *standing, unhealthy("a", at=20), healthy("a", at=30), until=200)[-1][1] == BACK


@many(100)
@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["up", "down", "yes", "pause", "resume"])), max_size=12))
def test_looking_more_often_and_restarts_change_no_action(drawn: list[tuple[int, str]]) -> None:
    """One group with windows, quiet time and approval: only facts and moments count."""
    make: dict[str, Callable[[float], Event]] = {
        "up": lambda when: healthy("a", at=when), "down": lambda when: unhealthy("a", at=when),
        "yes": approved, "pause": lambda when: paused(at=when), "resume": lambda when: resumed(at=when),
    }  # fmt: skip
    asking = the_rule(
        backends=backends("a", "b"), mode="Approve",
        guards={"cooldownSeconds": 40, "approval": {"expireSeconds": 90}, "blockedWindows": [
            {"cron": "2 * * * *", "durationSeconds": 60}
        ]},
    )  # fmt: skip
    events = sorted([*HOME, *(make[what](when) for when, what in drawn)], key=lambda event: event[0])

    def play(every: float | None) -> list[Any]:
        group, out, now = Group("web", "east/shop/TrafficSplit/web", TrafficState()), [], 0.0
        waiting = list(events)
        while now <= 500:
            facts = [fact for when, fact in waiting if when <= now]
            waiting = [event for event in waiting if event[0] > now]
            decision = decide(asking, group if every is None else load_group(dump_group(group)), facts, at(now))
            group = decision.group
            out += [action.model_dump(exclude={"epoch"}) for action in decision.actions]
            moments = [waiting[0][0]] if waiting else []
            moments += [(group.next_deadline - at(0)).total_seconds()] if group.next_deadline is not None else []
            moments += [now + every] if every is not None else []
            now = min(moments, default=501)
        return out

    assert play(None) == play(7)

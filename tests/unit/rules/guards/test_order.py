"""The order in which the guards of an act are asked, by acts of every kind."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from bus.messages import AcquireReply, AcquireRequest, RouteRef, SetWeights
from rules.core.desired import DesiredState, PlannedAction
from rules.core.group import Group, Paused
from rules.engine.guard import GuardDecision, guard
from rules.kinds.traffic.state import TrafficState
from rules.limits.acquire import on_reply
from rules.limits.limiters import limits_of
from rules.loader import load_rules
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from tests.unit.rules.builders import OBJECT, failover, rule_file, the_rule
from tests.unit.rules.guards.world import shared

ROUTE = RouteRef(cluster="east", kind="TrafficSplit", namespace="shop", name="web")
NOON = at(12 * 3600)
ALL_DAY = {"cron": "0 0 * * *", "durationSeconds": 86_400}
EVERYTHING = {
    "mode": "Approve",
    "guards": {"blockedWindows": [ALL_DAY], "cooldownSeconds": 7 * 3600, "maxConcurrent": 1},
}


def act(lane: str = "", **keys: Any) -> PlannedAction:
    fields = {"route": ROUTE, "weights": {"a": 0, "b": 1}, "remember": {}}
    return PlannedAction(SetWeights, fields, "PrimaryUnhealthy", concurrency_key=lane, **keys)


def rule(*without: str, **changes: Any) -> Rule:
    guards = {name: value for name, value in EVERYTHING["guards"].items() if name not in without}  # type: ignore[attr-defined]
    return the_rule(mode="Enforce" if "mode" in without else "Approve", guards=guards, **changes)


def group(**keys: Any) -> Group:
    return Group("web", OBJECT, TrafficState(), acted_at=at(6 * 3600), **keys)


def asked(of: Rule, *acts: PlannedAction, by: Group | None = None, now: datetime = NOON) -> GuardDecision:
    return guard(of, by or group(), DesiredState(acts=acts), now)


def why(leave: GuardDecision) -> str | None:
    return leave.desired.held[0].value if leave.desired.held is not None else None


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        ([], "InBlockedWindow"),
        (["blockedWindows"], "Cooldown"),
        (["blockedWindows", "cooldownSeconds"], "AwaitingApproval"),
        (["blockedWindows", "cooldownSeconds", "mode"], None),
    ],
)
def test_the_first_that_holds_is_told_and_the_shared_ones_are_asked_last(
    without: list[str], reason: str | None
) -> None:
    leave = asked(rule(*without), act())
    assert why(leave) == reason
    assert leave.desired.acts == ()
    assert [isinstance(fact, AcquireRequest) for fact in leave.emits] == ([] if reason else [True])


def test_a_pause_comes_before_everything_and_stops_everything() -> None:
    paused = group(paused=Paused("ann", "upgrade", at(5)))
    for one in (act(), act(safe=True), act(follows=True), act(by_hand=True)):
        leave = asked(rule(), one, by=paused)
        assert (why(leave), leave.desired.acts, leave.emits) == ("Paused", (), ())


@pytest.mark.parametrize("kind", [{"safe": True}, {"follows": True}])
def test_steps_back_and_what_goes_on_ask_no_other_guard(kind: dict[str, Any]) -> None:
    leave = asked(rule(), act(**kind))
    assert (why(leave), len(leave.desired.acts), leave.emits) == (None, 1, ())


def test_what_a_person_asked_for_passes_windows_and_approval_only() -> None:
    by_hand = act(by_hand=True)
    assert why(asked(rule(), by_hand)) == "Cooldown"
    leave = asked(rule("cooldownSeconds"), by_hand)
    assert (why(leave), leave.desired.acts, len(leave.emits)) == (None, (), 1)


def test_the_hold_of_one_act_leaves_the_others_free() -> None:
    back = act(lane="back", safe=True)
    leave = asked(rule(), act(lane="on", object="east/other"), back)
    assert (why(leave), leave.desired.acts, leave.desired.about) == ("InBlockedWindow", (back,), "east/other")


def test_the_verdict_lets_exactly_what_is_wanted_then_go() -> None:
    limited = rule("blockedWindows", "cooldownSeconds", "mode")
    first = asked(limited, act())
    [claim] = first.emits
    assert isinstance(claim, AcquireRequest)
    yes = AcquireReply(
        guard=claim.guard, rule="web", object=OBJECT, generation=claim.generation, granted=True, observed_at=NOON
    )
    for stale in (0, claim.generation + 1):
        other = on_reply(first.group, yes.model_copy(update={"generation": stale}), NOON)
        assert asked(limited, act(), by=other).desired.acts == ()
    granted = on_reply(first.group, yes, NOON)
    two = (act(lane="one"), act(lane="two"))
    assert asked(limited, *two, by=granted).desired.acts == two
    # Grants after that are asked for again.
    after = asked(limited, *two, by=granted).group
    again = asked(limited, act(lane="three"), by=replace(after, generation=2))
    assert again.desired.acts == ()
    assert [fact.generation for fact in again.emits if isinstance(fact, AcquireRequest)] == [3]


def test_no_group_waits_twice_in_one_queue() -> None:
    """A claim that waits is not made again with each look, and gives its place up when nothing is wanted."""
    limited = rule("blockedWindows", "cooldownSeconds", "mode")
    leave = asked(limited, act())
    assert asked(limited, act(), by=leave.group, now=at(12 * 3600 + 2.9)).emits == ()
    assert len(asked(limited, act(), by=leave.group, now=at(12 * 3600 + 3)).emits) == 1
    [given_back] = guard(limited, leave.group, DesiredState(), at(12 * 3600 + 20)).emits
    assert isinstance(given_back, AcquireRequest)
    assert not given_back.wanted


def test_guards_of_a_file_hold_what_their_rules_do() -> None:
    files = [shared(["w*"], blockedWindows=[ALL_DAY])]
    assert why(guard(the_rule(), group(), DesiredState(acts=(act(),)), NOON, files)) == "InBlockedWindow"
    assert why(guard(the_rule(name="other"), group(), DesiredState(acts=(act(),)), NOON, files)) is None


def test_two_guards_for_the_same_rules_both_hold_in_any_order() -> None:
    text = rule_file(failover())[:-1] + ', "guards": [%s]}'
    turns, speed = '{"rules": ["web"], "maxConcurrent": 1}', '{"rules": ["web"], "ratePerSecond": 1}'
    files = [load_rules([("rules.yaml", text % both)]) for both in (f"{turns}, {speed}", f"{speed}, {turns}")]
    one, other = (limits_of(rules.rule("web"), rules.guards).shared for rules in files)
    assert len(one) == 2
    assert one == other

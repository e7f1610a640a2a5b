"""`reactor status`: the keys that scripts rely on, the state in a word, and a table that fits a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.cli.shared.status_rows import table
from reactor.cli.shared.traffic_table import table as routes_table
from reactor.views.group_view import entry
from reactor.views.traffic_plan import state_of as route_row
from rules.core.group import Group, Holding, Paused
from rules.core.reasons import Held
from rules.core.remedies import REMEDIES
from rules.kinds.traffic.state import TrafficState
from rules.kinds.zone.state import Isolation, ZoneState
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from rules.summary import GroupStatus, state_of
from tests.unit.rules.builders import (
    Event,
    backends,
    healthy,
    outcome,
    paused,
    route,
    rule_set,
    step,
    the_rule,
    unhealthy,
)
from tests.unit.rules.builders import failover as failover_rule

HOME: list[Event] = [route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0)]
KEYS = {
    "rule", "object", "mode", "state", "since", "secondsLeft", "failedOver", "weights", "wantedWeights", "hold",
    "pause", "actions", "detail", "targets",
}  # fmt: skip


def shown(*events: Event, now: float, **keys: Any) -> dict[str, Any]:
    rule = the_rule(backends=backends("a", "b"), tolerationSeconds=10, recoverySeconds=20, **keys)
    group: Group | None = None
    for event in sorted(events, key=lambda one: one[0]):
        group = step(rule, group, event[0], event).group
    group = step(rule, group, now).group
    rules: dict[str, Rule] = {rule.name: rule}
    told = entry(group, rules, at(now))
    assert told.keys() == KEYS
    assert json.loads(json.dumps(told)) == told
    return told


def parts(told: dict[str, Any]) -> tuple[Any, ...]:
    return told["state"], told["since"], told["secondsLeft"]


def test_each_state_says_since_when_and_how_long_it_lasts() -> None:
    down = [*HOME, unhealthy("a", at=10)]
    assert parts(shown(*HOME, now=5)) == ("Watching", "1970-01-01T00:00:00.000Z", None)
    assert parts(shown(*down, now=12)) == ("Tolerating", "1970-01-01T00:00:10.000Z", 8.0)
    assert parts(shown(*down, now=20)) == ("Acting", "1970-01-01T00:00:20.000Z", None)
    done = [*down, (20, unhealthy("a", at=20)[1]), outcome("web/east/shop/TrafficSplit/web/1", "Done", at=21)]
    assert parts(shown(*done, now=30))[0] == "Acted"
    assert parts(shown(*done, healthy("a", at=40), now=45)) == ("Recovering", "1970-01-01T00:00:40.000Z", 15.0)
    assert parts(shown(*HOME, paused(at=5), now=10)) == ("Paused", "1970-01-01T00:00:05.000Z", None)


def test_a_window_ends_when_it_ends_though_a_signal_would_be_stale_before() -> None:
    down = [*HOME, unhealthy("a", at=10, stale=5)]
    assert parts(shown(*down, now=12)) == ("Tolerating", "1970-01-01T00:00:10.000Z", 8.0)


def test_a_zone_that_is_isolated_is_not_as_it_should_be() -> None:
    isolation = Isolation("eu-1a", "Failover", "Done", "ZoneUnhealthy", at(0), at(5))
    group = Group("zones", "cluster/east", ZoneState(isolation=isolation))
    told = entry(group, {}, at(10))
    assert parts(told) == ("Acted", "1970-01-01T00:00:05.000Z", None)
    assert told["detail"] == "zone eu-1a: Failover Done"


def test_current_and_desired_weights_are_side_by_side() -> None:
    told = shown(*HOME, unhealthy("a", at=10), now=20)
    assert (told["weights"], told["wantedWeights"], told["failedOver"]) == ({"a": 1, "b": 0}, {"a": 0, "b": 1}, False)
    moved = [*HOME, unhealthy("a", at=10), route({"a": 0, "b": 1}, at=25)]
    told = shown(*moved, now=30)
    assert (told["weights"], told["wantedWeights"], told["failedOver"]) == ({"a": 0, "b": 1}, {"a": 0, "b": 1}, True)
    waits = shown(*HOME, unhealthy("a", at=10), now=20, mode="Approve")
    assert waits["wantedWeights"] == {"a": 0, "b": 1}
    rehearsed = shown(*HOME, unhealthy("a", at=10), now=20, mode="DryRun")
    assert (rehearsed["weights"], rehearsed["wantedWeights"]) == ({"a": 1, "b": 0}, {"a": 0, "b": 1})
    assert (rehearsed["mode"], rehearsed["failedOver"]) == ("DryRun", False)


def test_a_hold_says_what_it_means_and_what_to_do() -> None:
    told = shown(*HOME, unhealthy("a", at=10), now=20, mode="Approve")
    assert told["state"] == "Held"
    assert told["secondsLeft"] == 900
    assert told["hold"]["reason"] == "AwaitingApproval"
    assert told["hold"]["means"] == "a person has to approve it"
    assert "`reactor approve RULE`" in told["hold"]["do"]
    assert told["hold"]["about"] == "east/shop/TrafficSplit/web"


def test_a_pause_says_by_whom_until_when() -> None:
    word = Paused("ann", "INC-7", at(5), at(65))
    told = entry(Group("web", "o", TrafficState(), paused=word), {}, at(10))
    assert told["pause"] == {
        "by": "ann", "reason": "INC-7", "since": "1970-01-01T00:00:05.000Z", "until": "1970-01-01T00:01:05.000Z",
    }  # fmt: skip
    assert told["secondsLeft"] == 55


def test_what_a_newer_version_holds_for_is_shown_without_advice() -> None:
    hold = entry(Group("web", "o", TrafficState(), held=Holding("NewReason", "why", at(0))), {}, at(1))["hold"]
    assert (hold["reason"], hold["means"], hold["do"]) == ("NewReason", "", "")


def test_each_reason_has_its_advice_in_one_short_line() -> None:
    assert set(REMEDIES) == set(Held)
    assert all(0 < len(text) < 100 and "\n" not in text for text in REMEDIES.values())


def test_the_state_alone_is_that_of_the_summary() -> None:
    group = Group("web", "o", TrafficState(), held=Holding("Paused", "why", at(0)))
    assert state_of(group) is GroupStatus.HELD
    assert state_of(replace(group, held=None)) is GroupStatus.WATCHING


LONG = Group(
    "checkout", "east/shop/TrafficSplit/checkout", TrafficState(),
    held=Holding("NoHealthySecondary", "service/west/shop/checkout-west: Unhealthy, " * 4, at(0)),
)  # fmt: skip


def test_a_table_that_does_not_fit_has_several_lines_for_each_group() -> None:
    wide = table([LONG], at(0))
    assert len(wide) == 2
    assert wide[0].split() == ["RULE", "OBJECT", "STATE", "LEFT", "MODE", "WEIGHTS", "DETAIL"]
    assert table([LONG], at(0), max(map(len, wide))) == wide
    lines = table([LONG], at(0), 80)
    assert lines[:2] == ["checkout  Held", "  east/shop/TrafficSplit/checkout"]
    assert "NoHealthySecondary" in lines[2]


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=200), min_size=1),
       st.integers(40, 120))  # fmt: skip
def test_no_line_is_longer_than_the_terminal_is_wide(texts: list[str], width: int) -> None:
    groups = [Group(text, text[::-1], TrafficState(), held=Holding("Held", text, at(0))) for text in texts]
    assert all(len(line) <= width for line in table(groups, at(0), width))


@pytest.mark.parametrize("primary", ["a", "b"])
def test_the_primary_of_the_rule_says_what_is_failed_over(primary: str) -> None:
    group = step(rule_set(failover_rule()).rules[0], None, 1, *HOME).group
    named = the_rule(backends=backends("a", "b"), primary=primary)
    assert entry(group, {"web": named}, at(1))["failedOver"] is (primary == "b")


@given(st.integers(40, 200), st.sampled_from([None, 96.9, 4000.0]))
def test_routes_are_listed_within_the_terminal_too(width: int, left: float | None) -> None:
    row = {
        "rule": "checkout-failover", "object": "east/shop/TrafficSplit/checkout", "mode": "Enforce",
        "state": "Overridden", "since": "2026-11-21T04:16:06+00:00", "secondsLeft": left,
        "weights": {"checkout": 0, "checkout-west": 1}, "detail": "by ann: CHG-1 " + "kernel " * 20,
    }  # fmt: skip
    lines = routes_table([row], width)
    assert max(map(len, lines)) <= width
    assert "checkout=0 checkout-west=1" in "\n".join(lines)
    assert ("1m37s" in "\n".join(lines)) == (left == 96.9)


def test_a_route_that_is_on_primary_has_no_time() -> None:
    group = step(the_rule(backends=backends("a", "b")), None, 5, *HOME).group
    assert route_row(group, at(5)) == {
        "rule": "web", "object": "east/shop/TrafficSplit/web", "mode": "Enforce", "state": "Home", "since": None,
        "secondsLeft": None, "weights": {"a": 1, "b": 0}, "detail": "",
    }  # fmt: skip

"""A rule that has left the rule files while its zone is isolated."""

from __future__ import annotations

from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.kind import way_back_only
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.zone.builders import (
    ZONES,
    failback,
    healthy,
    holds,
    isolate,
    listed,
    names,
    said,
    unhealthy,
    zone_rule,
)

WELL = [*listed(), *healthy(*ZONES, at=0)]


def test_it_begins_nothing_by_itself_and_by_no_command() -> None:
    left = way_back_only(zone_rule())
    found = said(left, WELL, unhealthy("a", at=5), isolate("b", at=9), until=600)
    assert names(found) == []
    assert [hold[1:] for hold in holds(found)] == [("prod/b", "ZoneNotFound")]


def test_what_is_left_of_a_rule_is_all_that_is_left_of_that() -> None:
    left = way_back_only(zone_rule())
    assert way_back_only(left) == left


def test_a_zone_that_it_has_isolated_comes_back_by_command() -> None:
    before = GroupStore(Routing([zone_rule()]))
    for at, fact in sorted([*WELL, *isolate("a", at=9)], key=lambda event: event[0]):
        before.apply([fact], at_(at))
    [group] = before.groups.values()
    assert [owed.action.step for owed in group.outbox] == ["Fence"]  # type: ignore[union-attr]

    after = GroupStore(Routing([way_back_only(zone_rule())]), [load_group(dump_group(group))])
    [(at, back)] = failback("a", at=12)
    decisions = after.apply([back], at_(at))
    actions = [action for decision in decisions for action in decision.actions]
    assert [(action.step, action.undo) for action in actions] == [("Fence", True)]  # type: ignore[union-attr]

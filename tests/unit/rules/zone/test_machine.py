"""The table of an isolation's life: every public transition, and a walk over all states."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rules.kinds.zone.machine import (
    ABORTING,
    BACK_FAILED,
    BACK_PENDING,
    BACK_RUNNING,
    FAILED,
    ISOLATED,
    NONE,
    PENDING,
    RUNNING,
    Extent,
    IsolationEvent,
    IsolationState,
    Phase,
    Status,
    move,
)

DATA = Path(__file__).parents[3] / "data"
CASES = json.loads((DATA / "zone_transitions.json").read_text("utf-8"))["cases"]

PLACES = (NONE, PENDING, RUNNING, ABORTING, ISOLATED, FAILED, BACK_PENDING, BACK_RUNNING, BACK_FAILED)
"""Every state."""


def edges() -> Iterator[tuple[IsolationState, IsolationEvent, Extent, bool, IsolationState]]:
    """Every answer of every state."""
    for at in PLACES:
        for event in IsolationEvent:
            for extent in Extent:
                for undoing in (False, True):
                    yield at, event, extent, undoing, move(at, event, extent=extent, undoing=undoing)


def place(phase: str | None, status: str | None) -> IsolationState:
    return IsolationState(Phase(phase) if phase else None, Status(status) if status else None)


CALLED = {"annotation_added": IsolationEvent.SAME_ADDED}
"""Events by their names in the cases. Without a record, every zone is the same one."""
NO_EVENTS = {"annotation_added_other_zone", "annotation_value_changed", "cluster_deleted", "crash_restart", "expiry"}
"""They leave an isolation where it is, so the table has none of them."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_state_answers_an_event_as_the_table_says(case: dict[str, Any]) -> None:
    given, expect = case["inputs"], case["expect"]
    before, event = place(given["phase"], given["status"]), given["event"]
    after = before if event in NO_EVENTS else move(before, CALLED.get(event) or IsolationEvent(event))
    assert after == place(expect["phase"], expect["status"])


def reachable(start: IsolationState, *, without: frozenset[IsolationEvent] = frozenset()) -> set[IsolationState]:
    ways = defaultdict(set)
    for at, event, _, _, found in edges():
        if event not in without:
            ways[at].add(found)
    seen, todo = {start}, [start]
    while todo:
        for to in ways[todo.pop()] - seen:
            seen.add(to)
            todo.append(to)
    return seen


def test_every_state_answers_every_event_with_a_state() -> None:
    answers = list(edges())
    assert len(answers) == len(PLACES) * len(IsolationEvent) * len(Extent) * 2
    assert {found for *_, found in answers} == set(PLACES)


@pytest.mark.parametrize("start", PLACES, ids=lambda one: f"{one.phase}-{one.status}")
def test_every_state_can_be_cleared_and_can_be_isolated(start: IsolationState) -> None:
    found = reachable(start)
    assert NONE in found
    assert ISOLATED in found


@pytest.mark.parametrize("start", PLACES, ids=lambda one: f"{one.phase}-{one.status}")
def test_no_timer_alone_opens_a_zone(start: IsolationState) -> None:
    if start.phase is not Phase.FAILOVER or start == IsolationState(Phase.FAILOVER, Status.ABORTING):
        return
    asked = frozenset({IsolationEvent.REMOVED, IsolationEvent.EXPIRY_FAILBACK, IsolationEvent.PROVEN_WELL})
    # An abort that has failed goes on undoing, but a person has asked for that abort.
    ways = [(at, event, found) for at, event, _, undoing, found in edges() if not undoing and event not in asked]
    seen = {start}
    while fresh := {to for at, _, to in ways if at in seen} - seen:
        seen |= fresh
    assert not any(one.phase is Phase.FAILBACK for one in seen)


def test_a_record_under_which_something_is_isolated_never_just_goes_away() -> None:
    for at, event, extent, _, found in edges():
        if extent is not Extent.NOTHING and found == NONE and at != NONE:
            assert event in (IsolationEvent.UNDO_FINISHED, IsolationEvent.ALL_STEPS_DONE), (at, event, extent)


def test_a_failback_that_is_called_off_before_anything_was_opened_is_isolated_without_a_step() -> None:
    again = move(BACK_PENDING, IsolationEvent.SAME_ADDED, extent=Extent.ALL)
    assert again == PENDING
    assert move(PENDING, IsolationEvent.GUARDS_PASS, extent=Extent.ALL) == ISOLATED


def test_a_retry_after_a_failed_abort_goes_on_undoing() -> None:
    assert move(FAILED, IsolationEvent.RETRY, extent=Extent.SOME, undoing=True).status is Status.ABORTING


def test_a_retry_where_nothing_was_touched_passes_the_guards_again() -> None:
    assert move(FAILED, IsolationEvent.RETRY, extent=Extent.NOTHING) == PENDING

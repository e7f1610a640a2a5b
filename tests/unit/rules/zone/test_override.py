"""Control by people: every isolation can be taken back, and an abort means the same at every second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bus.messages import ZoneStep
from reactor.views.zone_removal import not_to_remove
from reactor.views.zone_words import as_data, in_words, left_behind, planned
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.return_evidence import way_back
from rules.kinds.zone.state import Isolation, ZoneState
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event
from tests.unit.rules.zone.builders import (
    BACK,
    FORWARD,
    STEPS,
    UNDONE,
    ZONES,
    answered,
    failback,
    healthy,
    holds,
    isolate,
    listed,
    names,
    said,
    seen,
    steps,
    unhealthy,
    zone_rule,
)

WELL = [*listed(), *healthy(*ZONES, at=0)]
ONE = [*listed(), *healthy(*ZONES, at=0, signals=["nodes"])]
"""Facts of one source, as in the rules of `reactor init`."""


def test_a_zone_of_one_signal_comes_back_with_that_signal_and_the_person_who_asks() -> None:
    assert names(said(zone_rule(), ONE, isolate("a", at=50))) == FORWARD
    found = said(zone_rule(), ONE, isolate("a", at=50), failback("a", at=300))
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [300.0] * len(UNDONE)
    bad = seen("a", "Unhealthy", at=200, signals=["nodes"])
    found = said(zone_rule(), ONE, isolate("a", at=50), bad, failback("a", at=300))
    assert (names(found), holds(found)[-1][2]) == (FORWARD, "ZoneNotRecovered")


def test_force_opens_what_nothing_proves_and_says_who() -> None:
    """No signal at all, one that is bad, or two."""
    for history in (listed(), [*WELL, *unhealthy("a", at=100)]):
        found = said(zone_rule(), history, isolate("a", at=150), failback("a", at=300, force=True), until=2000)
        assert names(found)[len(STEPS) :] == BACK
        last = next(one.what for one in reversed(found) if isinstance(one.what, ZoneStep))
        assert (last.because, last.detail) == ("Commanded", "forced by ann")


def test_force_opens_what_was_asked_back_before_and_waits_for_proof() -> None:
    history = [*WELL, *unhealthy("a", at=100), *failback("a", at=300)]
    assert names(said(zone_rule(), history, until=2000)) == FORWARD
    found = said(zone_rule(), history, failback("a", at=400, force=True), until=2000)
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [400.0] * len(UNDONE)


def test_force_passes_a_window_in_which_no_zone_is_opened() -> None:
    rule = zone_rule(failback={"blockedWindows": [{"cron": "0 0 * * *", "durationSeconds": 6000}]})
    found = said(rule, WELL, isolate("a", at=50), failback("a", at=300, force=True))
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [300.0] * len(UNDONE)


def test_an_isolation_is_said_to_be_reversible_by_what_is_known() -> None:
    def words(*events: list[Event], **keys: object) -> str:
        group_store = GroupStore(Routing([zone_rule(**keys)]))
        for when, fact in (event for some in events for event in some):
            group_store.apply([fact], at_(when))
        return way_back(zone_rule(**keys), group_store.groups["zones", "prod"], "a")

    assert words(listed()) == "no signal is about zone/prod/a: only reactor zone failback --force opens it"
    assert "when nodes alone calls it healthy for 20 s" in words(ONE)
    assert "when nodes, prom call it healthy for 20 s" in words(WELL)
    assert "outside of failback.signals without an observation" in words(
        WELL, failback={"signals": ["nodes", "outside"]}
    )


@pytest.mark.parametrize("force", [False, True])
def test_a_failback_that_has_failed_for_good_goes_on_when_a_person_asks_for_it_again(force: bool) -> None:
    """As `RetriesExhausted` says. It took `retry`, and a second `failback` changed nothing."""
    history = [*WELL, *isolate("a", at=100), *[event for n in range(5) for event in answered(n + 1, at=101 + n)]]
    exhausted = 60_000
    again = [*failback("a", at=200), *failback("a", at=exhausted, force=force)]
    found = said(zone_rule(), history, again, outcomes=False, until=exhausted + 1000)
    assert "RetriesExhausted" in [reason for _, _, reason in holds(found)]
    book = GroupStore(Routing([zone_rule()]))
    player = Simulator(book, outcomes=False)
    for when, fact in sorted([*history, *again], key=lambda event: event[0]):
        list(player.until(at_(when)))
        list(player.take([fact], at_(when)))
    state = book.groups["zones", "prod"].state
    assert state is not None
    assert state.isolation is not None
    assert (state.isolation.phase, state.isolation.status, state.isolation.tries) == ("Failback", "InProgress", 0)


@pytest.mark.parametrize(
    ("phase", "status", "aborts", "fails_back", "forces"),
    [
        ("Failover", "InProgress", "", "reactor zone abort", ""),
        ("Failover", "Done", "reactor zone failback", "", ""),
        ("Failover", "Failed", "", "", ""),
        ("Failover", "Aborting", "coming back", "coming back", "coming back"),
        ("Failback", "Pending", "coming back", "coming back", ""),
        ("Failback", "Failed", "", "", ""),
    ],
)
def test_a_command_that_would_change_nothing_is_refused_with_the_one_that_does(
    phase: Any, status: Any, aborts: str, fails_back: str, forces: str
) -> None:
    isolation = Isolation("a", phase, status, "Commanded", at_(0), at_(0))
    said_by = [
        not_to_remove(isolation, running=running, force=force)
        for running, force in ((True, False), (False, False), (False, True))
    ]
    for why, expected in zip(said_by, (aborts, fails_back, forces), strict=True):
        assert (expected in why, bool(why)) == (True, bool(expected)), why


def test_people_are_told_before_they_approve_what_brings_the_zone_back() -> None:
    """`reactor zone plan`, and the same plan that `reactor zone isolate` shows first."""
    group_store = GroupStore(Routing([zone_rule()]))
    for when, fact in ONE:
        group_store.apply([fact], at_(when))
    shown = planned(zone_rule(), group_store.groups["zones", "prod"], "a", at_(60))
    last = in_words(zone_rule(), shown).splitlines()[-1]
    assert last.startswith("comes back: by reactor zone failback, when nodes alone calls it healthy for 20 s")
    assert f"comes back: {as_data(shown)['comesBack']}" == last


# --- abort -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("second", [101, 119, 220.5, 221, 240, 279, 280, 281, 400, 401, 521])
def test_an_abort_undoes_at_once_in_whatever_second_of_whatever_step(second: float) -> None:
    """Fence is never done: it is given 120 s, rests for 60 s, is tried again; the zone is bad throughout."""
    history = [*WELL, *unhealthy("a", at=90)]
    found = said(
        zone_rule(), history, isolate("a", at=100), failback("a", at=second), outcomes=False, until=second + 10
    )
    undone = [one for one in steps(found) if one[0] >= second]
    assert undone
    assert {one[4] for one in undone} == {"Fence"}
    assert [one.what.because for one in found if isinstance(one.what, ZoneStep) and one.what.undo] == ["Aborted"]


@pytest.mark.parametrize("steps_done", range(len(STEPS)))
@pytest.mark.parametrize("later", [0.0, 1.0, 2000.0])
def test_an_abort_undoes_at_once_after_any_number_of_steps(steps_done: int, later: float) -> None:
    history = [*WELL, *unhealthy("a", at=90), *isolate("a", at=100)]
    history += [event for number in range(steps_done) for event in answered(number + 1, at=101 + number)]
    second = 110 + later
    found = said(zone_rule(), history, failback("a", at=second), outcomes=False, until=second + 1)
    undone = [one for one in found if isinstance(one.what, ZoneStep) and one.what.undo]
    assert undone
    assert undone[0].at == second
    assert all(one.what.held != "ZoneNotRecovered" for one in found if hasattr(one.what, "held"))


# --- afterwards --------------------------------------------------------------------------------------------------


def test_after_a_persons_abort_the_rule_waits_until_the_zone_was_well_once() -> None:
    bad = [*WELL, *unhealthy("a", at=90)]
    found = said(zone_rule(), bad, failback("a", at=100.5, force=True), until=20_000)
    assert names(found) == FORWARD + BACK
    assert holds(found)[-1] == (100.5, "prod/a", "Overridden")
    again = said(
        zone_rule(), bad, failback("a", at=100.5, force=True), healthy("a", at=5000), unhealthy("a", at=5100),
        until=20_000,
    )  # fmt: skip
    assert names(again) == FORWARD + BACK + FORWARD
    by_hand = said(zone_rule(), bad, failback("a", at=100.5, force=True), isolate("a", at=4000), until=20_000)
    assert names(by_hand) == FORWARD + BACK + FORWARD


def test_a_zone_that_a_person_opens_by_force_is_not_closed_again_on_its_way() -> None:
    bad = [*WELL, *unhealthy("a", at=90)]
    found = said(
        zone_rule(), bad, *(answered(number, at=100 + number) for number in range(1, 6)),
        failback("a", at=200, force=True), answered(7, at=300), outcomes=False, until=310,
    )  # fmt: skip
    assert names(found) == [*FORWARD, "-CutNetwork", "-ShiftTraffic"]


def test_a_zone_that_is_taken_out_of_the_rule_can_still_be_steered() -> None:
    group_store = GroupStore(Routing([zone_rule()]))
    for when, fact in sorted([*WELL, *isolate("c", at=50)], key=lambda event: event[0]):
        group_store.apply([fact], at_(when))
    smaller = zone_rule(zones=[{"name": "a"}, {"name": "b"}])
    for force in (False, True):
        again = GroupStore(Routing([smaller]), [load_group(dump_group(group)) for group in group_store.groups.values()])
        asked = failback("c", at=60, force=force)[0][1]
        [decision] = again.apply([asked], at_(60))
        assert [(one.undo, one.zone, one.zone_id) for one in decision.actions if isinstance(one, ZoneStep)] == [
            (True, "c", "euc1-az3")
        ]


def test_a_rule_that_is_taken_out_of_the_file_leaves_the_record_of_what_it_has_isolated() -> None:
    group_store = GroupStore(Routing([zone_rule()]))
    for when, fact in sorted([*WELL, *isolate("c", at=50)], key=lambda event: event[0]):
        group_store.apply([fact], at_(when))
    stored = [load_group(dump_group(group)) for group in group_store.groups.values()]
    without = GroupStore(Routing([]), stored)
    assert (without.dropped, dict(without.groups)) == (set(), {})
    assert [(row["zone"], row["status"]) for row in left_behind(stored, [])] == [("prod/c", "Pending")]
    again = GroupStore(Routing([zone_rule()]), stored)
    [decision] = again.apply([failback("c", at=60)[0][1]], at_(60))
    assert [one.undo for one in decision.actions if isinstance(one, ZoneStep)] == [True]
    idle = GroupStore(Routing([]), [replace(group, state=ZoneState()) for group in stored])
    assert idle.dropped == {("zones", "prod")}


def test_maintenance_of_the_cluster_lets_no_isolation_begin() -> None:
    busy = listed(at=80, maintenance="kim: upgrade to 1.35")
    found = said(zone_rule(), WELL, busy, unhealthy("a", at=90))
    assert (names(found), holds(found)) == ([], [(100.0, "prod/a", "AnotherInProgress")])
    found = said(zone_rule(), WELL, busy, unhealthy("a", at=90), listed(at=150))
    assert [step[0] for step in steps(found)] == [150.0] * len(STEPS)

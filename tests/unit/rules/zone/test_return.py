"""Return of a zone: in reverse, the network first, and only when it is proven healthy."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Outcome
from rules.kinds.zone.plan import ASKED_AGAIN_SECONDS, seconds_for
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
    paused,
    retry,
    said,
    seen,
    steps,
    unhealthy,
    unknown,
    zone_rule,
)
from tests.unit.rules.zone.test_rounds import Played

WELL = [*listed(), *healthy(*ZONES, at=0)]
ISOLATED = [*WELL, *unhealthy("a", at=100)]


def test_a_zone_that_has_recovered_comes_back_network_first_and_fence_last() -> None:
    found = said(zone_rule(), ISOLATED, healthy("a", at=300))
    assert steps(found)[len(STEPS) :] == [(320.0, "a", "Failback", "InProgress", step) for step in UNDONE]


def test_one_signal_alone_opens_nothing() -> None:
    found = said(zone_rule(), ISOLATED, seen("a", "Healthy", at=300, signals=["prom"]))
    assert names(found) == FORWARD


def test_a_zone_that_flaps_comes_back_only_after_a_whole_recovery() -> None:
    found = said(zone_rule(), ISOLATED, healthy("a", at=300), unhealthy("a", at=310), healthy("a", at=315))
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [335.0] * len(UNDONE)


def test_a_signal_that_falls_silent_proves_nothing() -> None:
    found = said(zone_rule(), ISOLATED, healthy("a", at=300, stale_seconds=15))
    assert names(found) == FORWARD


def test_a_zone_that_a_person_has_isolated_comes_back_only_when_a_person_says_so() -> None:
    found = said(zone_rule(), WELL, isolate("a", at=50), until=5000)
    assert names(found) == FORWARD
    found = said(zone_rule(), WELL, isolate("a", at=50), failback("a", at=3000), until=5000)
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [3000.0] * len(UNDONE)
    assert {one.what.because for one in found if hasattr(one.what, "because")} == {"Commanded"}


@pytest.mark.parametrize("at", [106, 200], ids=["during its steps", "after them"])
def test_a_zone_that_the_rule_isolated_and_then_a_person_stays_until_a_person_opens_it(at: float) -> None:
    found = said(zone_rule(), ISOLATED, isolate("a", at=at), healthy("a", at=300), until=5000)
    assert names(found) == FORWARD
    found = said(zone_rule(), ISOLATED, isolate("a", at=at), healthy("a", at=300), failback("a", at=3000), until=5000)
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [3000.0] * len(UNDONE)


def test_a_zone_that_is_still_bad_stays_closed_whatever_person_asks() -> None:
    found = said(zone_rule(), ISOLATED, failback("a", at=300), until=90_000)
    assert (names(found), holds(found)) == (FORWARD, [(300.0, "prod/a", "ZoneNotRecovered")])


def test_a_zone_without_an_observation_is_not_opened() -> None:
    found = said(zone_rule(), listed(), isolate("a", at=50), failback("a", at=100))
    assert (names(found), holds(found)) == (FORWARD, [(100.0, "prod/a", "ZoneNotRecovered")])


def test_a_rule_may_leave_the_way_back_to_people() -> None:
    found = said(zone_rule(failback={"automatic": False}), ISOLATED, healthy("a", at=300))
    assert names(found) == FORWARD


def test_no_zone_is_opened_in_a_blocked_window() -> None:
    window = {"cron": "0 0 * * *", "durationSeconds": 600}
    found = said(zone_rule(failback={"blockedWindows": [window]}), ISOLATED, healthy("a", at=300))
    assert holds(found) == [(320.0, "prod/a", "InBlockedWindow")]
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [600.0] * len(UNDONE)


def test_where_the_network_is_cut_other_signals_may_speak_for_the_zone() -> None:
    rule = zone_rule(failback={"signals": ["cloud", "outside"]})
    bad, good = (
        seen("a", how, at=at, signals=["cloud", "outside"]) for how, at in (("Unhealthy", 100), ("Healthy", 300))
    )
    found = said(rule, ISOLATED, bad, good)
    assert [step[0] for step in steps(found)[len(STEPS) :]] == [320.0] * len(UNDONE)
    assert holds(found)[0][1:] == ("prod/a", "Cooldown")  # its own nodes are not back yet
    half = seen("a", "Healthy", at=300, signals=["cloud"])
    assert names(said(rule, ISOLATED, half)) == FORWARD


def test_a_signal_that_never_saw_the_failure_opens_nothing_by_itself() -> None:
    rule = zone_rule(failback={"signals": ["cloud", "outside"]})
    blind = seen("a", "Healthy", at=0, signals=["cloud", "outside"])
    assert names(said(rule, ISOLATED, blind)) == FORWARD
    asked = said(rule, ISOLATED, blind, failback("a", at=500))
    assert [step[0] for step in steps(asked)[len(STEPS) :]] == [500.0] * len(UNDONE)


def test_a_paused_rule_opens_nothing() -> None:
    found = said(zone_rule(), ISOLATED, paused(at=200), healthy("a", at=300))
    assert names(found) == FORWARD


def test_a_pause_locks_no_zone_in_what_a_person_asks_back_is_undone() -> None:
    found = said(
        zone_rule(), WELL, isolate("a", at=100), paused(at=105), failback("a", at=110), answered(2, at=115),
        outcomes=False, until=120,
    )  # fmt: skip
    assert [(step[0], step[3]) for step in steps(found)] == [(100.0, "InProgress"), (110.0, "Aborting")]
    done = said(zone_rule(), WELL, isolate("a", at=50), paused(at=60), failback("a", at=3000), until=5000)
    assert steps(done)[len(STEPS) :] == [(3000.0, "a", "Failback", "InProgress", step) for step in UNDONE]


def test_an_abort_in_a_pause_has_its_time_like_any_other() -> None:
    found = said(
        zone_rule(), WELL, isolate("a", at=100), paused(at=105), failback("a", at=110), outcomes=False, until=2000
    )
    assert holds(found) == [
        (105.0, "prod", "Paused"), (110.0 + 120 + 2 * 300 + 300, "prod/a", "StepFailed")
    ]  # fmt: skip


def test_a_pause_after_the_word_does_not_stop_the_way_back_either_but_the_rules_own() -> None:
    asked = said(
        zone_rule(), ISOLATED, failback("a", at=115), paused(at=116), answered(2, at=130), outcomes=False, until=140
    )
    assert names(asked) == ["+Fence", "-Fence"]
    forward = [event for number in range(1, 6) for event in answered(number, at=110 + number)]
    own = said(
        zone_rule(), ISOLATED, forward, healthy("a", at=300), paused(at=321), answered(7, at=322), outcomes=False,
        until=400,
    )  # fmt: skip
    assert names(own) == [*FORWARD, "-CutNetwork"]
    assert holds(own) == [(321.0, "prod", "Paused")]


def _taken_off(number: int, *, at: float) -> list[Event]:
    """The carrier finds that another writer has taken the annotation off the Shoot."""
    given: dict[str, Any] = {
        "action": f"zones/prod/a/{number}", "rule": "zones", "object": "prod/a", "status": "Failed",
        "reason": "AnnotationRemoved",
    }  # fmt: skip
    return [(at, Outcome(**given, observed_at=at_(at)))]


def test_removing_the_annotation_is_an_abort_while_it_runs_and_a_failback_once_it_is_finished() -> None:
    running = said(zone_rule(), ISOLATED, _taken_off(1, at=115), outcomes=False, until=120)
    assert [(step[0], step[3]) for step in steps(running)] == [(110.0, "InProgress"), (115.0, "Aborting")]
    forward = [event for number in range(1, 6) for event in answered(number, at=110 + number)]
    gone = [*forward, *_taken_off(6, at=180), *healthy("a", at=300)]
    stands = said(zone_rule(), ISOLATED, gone, outcomes=False, until=321)
    assert holds(stands) == [(180.0, "prod/a", "ZoneNotRecovered")]
    assert steps(stands)[-1] == (320.0, "a", "Failback", "InProgress", "CutNetwork")


def test_a_zone_that_dies_on_its_way_back_is_isolated_again_and_only_what_was_undone_is_done_again() -> None:
    forward = [event for number in range(1, 6) for event in answered(number, at=110 + number)]
    # The sixth checks the finished isolation, a minute after it was finished, and is never done.
    opened = [*healthy("a", at=300), *answered(7, at=321), *unhealthy("a", at=322), *answered(9, at=333)]
    found = said(zone_rule(), ISOLATED, forward, opened, outcomes=False, until=340)
    # Fence is still there; pods have come back meanwhile, so they are asked to go once more.
    assert names(found) == [*FORWARD, "-CutNetwork", "-ShiftTraffic", "+ShiftTraffic", "+Evacuate"]
    assert [step[0] for step in steps(found)][len(STEPS) :] == [320.0, 321.0, 332.0, 333.0]


def wanted(played: Played, second: float, number: int) -> bool | None:
    """Answer to an executor that asks whether the action of this generation is still wanted."""
    action = f"zones/prod/a/{number}"
    return played.group_store.confirm("zones", "prod/a", action, at_(second), at_(second)).wanted


def test_a_zone_that_failed_again_on_its_way_back_and_is_well_is_not_fenced_by_what_was_only_asked_for() -> None:
    played = Played(answered=1, steps=["Fence"])
    for second, status in ((300, "Healthy"), (322, "Unhealthy")):
        played.until(second)
        played.take(second, *(fact for _, fact in seen("a", status, at=second)))
    played.until(332)
    assert [(second, step.undo) for second, step in played.asked if step.step == "Fence"][1:] == [
        (320, True), (332, False),
    ]  # fmt: skip
    number = played.group.generation
    assert wanted(played, 334, number) is True
    played.take(335, *(fact for _, fact in healthy("a", at=335)))
    assert wanted(played, 344, number) is False
    # What may have been done is undone when the zone has been well for its recovery.
    played.until(360)
    assert [(second, step.undo) for second, step in played.asked if step.step == "Fence"][3:] == [(355, True)]


def test_a_zone_that_is_well_before_its_first_step_is_done_is_let_alone() -> None:
    called_off = [*healthy("a", at=112), *answered(1, at=113, status="Refused")]
    found = said(zone_rule(), ISOLATED, called_off, unhealthy("a", at=120), outcomes=False, until=135)
    # The same once more when it has been bad for its whole toleration again.
    assert [step[0] for step in steps(found)] == [110.0, 130.0]


def test_a_failback_that_is_called_off_before_anything_was_opened_isolates_without_a_step() -> None:
    found = said(zone_rule(), ISOLATED, failback("a", at=300), isolate("a", at=400), until=5000)
    assert names(found) == FORWARD
    assert holds(found) == [(300.0, "prod/a", "ZoneNotRecovered")]


def test_removing_a_running_isolation_undoes_what_was_begun_last_first() -> None:
    found = said(zone_rule(), ISOLATED, failback("a", at=115), outcomes=False, until=120)
    assert names(found) == ["+Fence", "-Fence"]
    assert [step[2:4] for step in steps(found)] == [("Failover", "InProgress"), ("Failover", "Aborting")]


def test_an_abort_that_is_not_done_in_time_fails_and_a_retry_goes_on_undoing() -> None:
    found = said(zone_rule(), ISOLATED, failback("a", at=115), retry("a", at=50_000), outcomes=False, until=50_010)
    assert {step[3] for step in steps(found)[1:]} == {"Aborting"}
    assert holds(found)[0] == (115.0 + 120 + 2 * 300 + 300, "prod/a", "StepFailed")


def test_a_wanted_again_zone_goes_on_from_where_its_abort_was() -> None:
    found = said(zone_rule(), ISOLATED, failback("a", at=115), isolate("a", at=120), outcomes=False, until=121)
    assert names(found) == ["+Fence", "-Fence", "+Fence"]


def test_after_an_isolation_there_is_quiet_for_the_cooldown() -> None:
    again = [*healthy("a", at=300), *unhealthy("b", at=400)]
    found = said(zone_rule(), ISOLATED, again, until=2200)
    assert holds(found) == [(410.0, "prod/b", "Cooldown")]
    assert steps(found)[-1] == (2120.0, "b", "Failover", "InProgress", "Verify")


@pytest.mark.parametrize("steps_", [["Fence"], ["Fence", "ShiftTraffic"]])
def test_where_all_steps_are_undone_there_is_quiet_all_the_same(steps_: list[str]) -> None:
    again = [*healthy("a", at=140), *unhealthy("b", at=400)]  # back before the first look, which leaves nothing either
    found = said(zone_rule(steps=steps_), ISOLATED, again, until=2200)
    assert (410.0, "prod/b", "Cooldown") in holds(found)
    begun = [second for second, zone, phase, *_ in steps(found) if (zone, phase) == ("b", "Failover")]
    assert min(begun) >= 160 + 1800


def test_after_an_abort_of_the_only_step_there_is_quiet_too() -> None:
    rule = zone_rule(steps=["Fence"])
    story = [*failback("a", at=115), *healthy("a", at=116), *unhealthy("b", at=400)]
    found = said(
        rule, WELL, unhealthy("a", at=100), answered(1, at=130), answered(2, at=150), story, outcomes=False, until=1000
    )
    assert (410.0, "prod/b", "Cooldown") in holds(found)


def test_a_rehearsed_isolation_comes_back_in_the_rehearsal_too() -> None:
    found = said(zone_rule(mode="DryRun"), ISOLATED, healthy("a", at=300), until=5000)
    assert names(found) == FORWARD + BACK


def test_unfencing_has_time_for_both_watches_of_its_batches_and_giving_traffic_back_needs_none() -> None:
    rule = zone_rule(failback={"batches": {"bakeSeconds": 1000}}, stepTimeoutSeconds={"Fence": 60, "ShiftTraffic": 90})
    assert seconds_for(rule, "Fence", undo=True) == 60 + 2 * 1000 + ASKED_AGAIN_SECONDS
    assert seconds_for(rule, "ShiftTraffic", undo=True) == seconds_for(rule, "ShiftTraffic", undo=False) == 90


def _coming_back(*, bad_at: float) -> Played:
    """The zone is well at 300, its network is open at 321 and its traffic is being given back; then it is bad."""
    played = Played()
    for second, status in ((300.0, "Healthy"), (bad_at, "Unhealthy")):
        played.until(second)
        if status == "Unhealthy":
            played.answer(321, 7, "Done")
        played.take(second, *(fact for _, fact in seen("a", status, at=second)))
    return played


def test_a_step_back_that_is_on_its_way_is_called_off_when_the_zone_is_bad_again() -> None:
    played = _coming_back(bad_at=325)
    assert [step.step for _, step in played.asked if step.undo] == ["CutNetwork", "ShiftTraffic"]
    assert wanted(played, 326, 8) is False
    # It is well again: what was called off waits for a whole recovery, and goes on from where it was.
    played.take(330, *(fact for _, fact in healthy("a", at=330)))
    played.answer(330, 8, "Refused")
    played.until(349)
    assert [second for second, step in played.asked if step.undo][2:] == []
    played.until(350)
    assert [(second, step.step) for second, step in played.asked if step.undo][2:] == [(350.0, "ShiftTraffic")]


def test_a_zone_that_stays_bad_half_way_back_is_isolated_again() -> None:
    played = _coming_back(bad_at=325)
    played.answer(326, 8, "Refused")
    played.until(335)
    assert [(second, step.step) for second, step in played.asked if second > 325] == [(335.0, "ShiftTraffic")]
    assert played.asked[-1][1].undo is False


def test_what_a_person_brings_back_goes_on_when_the_zone_is_bad_again() -> None:
    played = Played()
    played.take(300, *(fact for _, fact in healthy("a", at=300)))
    played.take(301, *(fact for _, fact in failback("a", at=301)))
    played.until(320)
    [(_, step)] = [one for one in played.asked if one[1].undo]
    played.take(322, *(fact for _, fact in unhealthy("a", at=322)))
    assert wanted(played, 323, step.generation) is True


def test_the_rest_of_an_isolation_is_not_done_while_the_zone_is_healthy() -> None:
    played = Played(answered=2)
    played.until(110)
    played.answer(110, 3, "Failed", "InProgress")
    assert played.asked[-1][1].step == "Evacuate"
    assert wanted(played, 110, 3) is True
    played.take(111, *(fact for _, fact in healthy("a", at=111)))
    assert wanted(played, 111, 3) is False
    held = played.group.held
    assert held is not None
    assert (held.reason, held.detail) == (
        "HealthyNow",
        "a was healthy again, so that its isolation waits: bad for 0 s; tolerationSeconds is 10",
    )
    played.answer(112, 3, "Refused")
    played.until(130)
    assert [step for second, step in played.asked if second > 111] == []
    played.until(132)
    assert [(step.step, step.undo) for second, step in played.asked if second > 111] == [("ShiftTraffic", True)]


def test_an_isolation_goes_on_with_its_next_step_when_the_zone_was_bad_again_for_its_toleration() -> None:
    played = Played(answered=2)
    played.until(110)
    played.take(111, *(fact for _, fact in healthy("a", at=111)))
    played.answer(111.5, 3, "Refused")
    played.take(113, *(fact for _, fact in unhealthy("a", at=113)))
    played.until(122)
    assert [step for second, step in played.asked if second > 111] == []
    played.until(124)
    assert [(second, step.step) for second, step in played.asked if second > 111] == [(123.0, "Evacuate")]


def test_a_step_that_goes_on_after_it_was_called_off_has_its_whole_time_again() -> None:
    """An executor that never answered: the action that is wanted again is the one of before."""
    played = Played(answered=2)
    played.take(111, *(fact for _, fact in healthy("a", at=111)))
    played.take(113, *(fact for _, fact in seen("a", "Unhealthy", at=113, signals=["prom"])))
    played.take(1200, *(fact for _, fact in seen("a", "Unhealthy", at=1200, signals=["nodes"])))
    for second in (1210, 1211, 1300):
        played.take(second, *(fact for _, fact in listed(at=second)))
        played.until(second)
        isolation = played.group.state.isolation
        assert isolation is not None
        assert (isolation.status, isolation.since) == ("InProgress", at_(1210))
    assert played.group.held is None


def test_a_failed_isolation_whose_zone_was_well_waits_for_the_toleration_once_more() -> None:
    played = Played(answered=2)
    played.until(1011)
    played.answer(1012, 3, "Refused")
    assert played.group.held is not None
    assert played.group.held.reason == "StepFailed"
    played.take(1020, *(fact for _, fact in healthy("a", at=1020)))
    played.take(1036, *(fact for _, fact in unhealthy("a", at=1036)))
    played.until(1045)
    assert [step for second, step in played.asked if second > 1012] == []
    played.until(1047)
    assert [(second, step.step) for second, step in played.asked if second > 1012] == [(1046.0, "Evacuate")]


def test_a_zone_that_flaps_while_it_is_isolated_gives_one_hold() -> None:
    played = Played(answered=2)
    played.until(110)
    held = []
    for second in range(111, 311, 10):
        for told in (healthy("a", at=second), unhealthy("a", at=second + 5)):
            for one in told:
                played.take(one[0], one[1])
                held.append(played.group.held)
    assert {hold.reason for hold in held if hold is not None} == {"HealthyNow"}
    assert len({hold.since for hold in held if hold is not None}) == 1


def test_a_step_that_is_done_although_it_was_called_off_begins_no_other_one() -> None:
    played = Played(answered=2)
    played.until(110)
    played.take(111, *(fact for _, fact in healthy("a", at=111)))
    played.take(113, *(fact for _, fact in unhealthy("a", at=113)))
    played.answer(114, 3, "Done")
    played.until(122)
    assert [step.step for second, step in played.asked if second > 111] == []
    played.until(124)
    assert [(second, step.step) for second, step in played.asked if second > 111] == [(123.0, "CutNetwork")]


def test_what_no_source_sees_calls_nothing_off() -> None:
    played = Played(answered=2)
    played.until(110)
    played.take(115, *(fact for _, fact in unknown("a", at=115)))
    assert wanted(played, 115, 3) is True
    played.take(300, *(fact for _, fact in seen("a", "Unhealthy", at=300, signals=["prom"])))
    assert wanted(played, 300, 3) is True


def test_who_is_about_to_do_a_later_step_hears_first_how_the_zone_is() -> None:
    """A bus that was away for long: that the zone has recovered meanwhile was told to no decider."""
    played = Played(answered=2)
    for second in (111, 124):
        played.take(second, *(fact for _, fact in unhealthy("a", at=second, source="probe")))
    answer = played.group_store.confirm("zones", "prod/a", "zones/prod/a/3", at_(125), at_(125))
    assert answer.wanted is None
    assert {(lack.source, lack.target) for lack in answer.lacks} == {("probe", "zone/prod/a")}
    played.take(126, *(fact for _, fact in unhealthy("a", at=126, source="probe")))
    assert played.group_store.confirm("zones", "prod/a", "zones/prod/a/3", at_(125), at_(126)).wanted is True


def test_what_a_person_isolates_is_finished_however_well_the_zone_is() -> None:
    played = Played(answered=2)
    played.take(110, *(fact for _, fact in isolate("a", at=110)))
    played.take(111, *(fact for _, fact in healthy("a", at=111)))
    played.until(140)
    assert wanted(played, 140, 3) is True

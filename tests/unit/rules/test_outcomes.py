"""A requested action stays owed until its outcome is known; none is requested twice."""

from __future__ import annotations

from bus.messages import SetWeights
from rules.core.group import Group
from rules.engine.decide import Decision
from rules.engine.group_codec import dump_group, load_group
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import (
    OBJECT,
    backends,
    failover,
    healthy,
    holds,
    moves,
    outcome,
    paused,
    resumed,
    route,
    said,
    step,
    the_rule,
    unhealthy,
    unknown,
    words,
)

HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}
FAILED = (route(HOME), healthy("b", at=0), unhealthy("a", at=0))
FIRST, SECOND = f"web/{OBJECT}/1", f"web/{OBJECT}/2"
RULE = the_rule()


def failed() -> Decision:
    return step(RULE, None, 0, *FAILED)


def ids(decision: Decision) -> list[str]:
    return [action.id for action in decision.actions]


def test_an_actions_id_is_its_rule_object_and_generation() -> None:
    assert ids(failed()) == [FIRST]


def test_an_action_without_an_outcome_is_said_again_with_the_same_content() -> None:
    first = failed()
    assert first.group.next_deadline == at(15)
    again = step(RULE, first.group, 15)
    assert again.actions == first.actions
    assert step(RULE, again.group, 30).actions == first.actions


def test_an_action_that_is_done_is_never_said_again() -> None:
    done = step(RULE, failed().group, 1, outcome(FIRST, "Done", at=1))
    assert done.group.outbox == ()
    assert done.group.next_deadline is None
    assert step(RULE, done.group, 500).actions == ()


def test_an_outcome_that_comes_twice_or_for_another_action_changes_nothing() -> None:
    done = step(RULE, failed().group, 1, outcome(FIRST, "Done", at=1))
    for fact in (outcome(FIRST, "Done", at=2), outcome(FIRST, "Failed", at=2), outcome(SECOND, "Refused", at=2)):
        assert step(RULE, done.group, 2, fact).group == done.group


def test_an_action_that_failed_is_tried_again_with_growing_pauses() -> None:
    decision, now, waits = failed(), 0.0, []
    for _ in range(12):
        decision = step(RULE, decision.group, now, outcome(FIRST, "Failed", at=now, reason="Timeout"))
        assert decision.actions == ()
        assert decision.group.next_deadline is not None
        waits.append((decision.group.next_deadline - at(now)).total_seconds())
        now += waits[-1]
        decision = step(RULE, decision.group, now)
        assert ids(decision) == [FIRST]
    assert waits[:7] == [5, 10, 20, 40, 80, 160, 300]
    assert set(waits[7:]) == {300}


def test_a_failed_action_is_a_hold_with_its_reason_until_it_succeeds() -> None:
    story = (*FAILED, outcome(FIRST, "Failed", at=1, reason="Forbidden", detail="no right to patch"))
    assert holds(failover(), *story, outcomes=False) == [(1, "ActionFailed")]
    decision = step(RULE, failed().group, 1, story[-1])
    assert decision.held is not None
    assert decision.held.detail == "Forbidden: no right to patch"
    mended = step(RULE, decision.group, 9, outcome(FIRST, "Done", at=9))
    assert mended.group.held is None


def test_an_action_that_waited_too_long_is_asked_for_again_soon_and_has_not_failed() -> None:
    waited = step(RULE, failed().group, 40, outcome(FIRST, "Failed", at=40, reason="Waited"))
    assert (waited.actions, waited.held, waited.group.next_deadline) == ((), None, at(41))
    assert ids(step(RULE, waited.group, 41)) == [FIRST]


def test_an_action_that_waited_too_long_gives_way_to_what_was_heard_meanwhile() -> None:
    heard = healthy("a", at=0.5), outcome(FIRST, "Failed", at=100, reason="Waited")
    waited = step(RULE, failed().group, 100, *heard)
    assert [(action.id, action.weights) for action in waited.actions if isinstance(action, SetWeights)] == [
        (SECOND, HOME)
    ]


def test_a_failed_action_that_is_no_longer_wanted_is_owed_no_more() -> None:
    tried = step(RULE, failed().group, 1, outcome(FIRST, "Failed", at=1, reason="Timeout"))
    nowhere_to_go = step(RULE, tried.group, 3, unhealthy("b", at=3))
    assert (nowhere_to_go.group.outbox, nowhere_to_go.group.next_deadline) == ((), None)
    # What is wanted later is an action of its own: its cause and its time are not those of one that never was done.
    assert ids(step(RULE, nowhere_to_go.group, 600, healthy("b", at=600))) == [SECOND]


def test_an_action_that_is_tried_again_is_owed_until_that_try_has_its_outcome() -> None:
    tried = step(RULE, failed().group, 1, outcome(FIRST, "Failed", at=1, reason="Timeout"))
    again = step(RULE, tried.group, 6)
    assert ids(again) == [FIRST]
    nowhere_to_go = step(RULE, again.group, 7, unhealthy("b", at=7))
    assert [entry.wanted for entry in nowhere_to_go.group.outbox] == [False]
    assert step(RULE, nowhere_to_go.group, 8, outcome(FIRST, "Failed", at=8, reason="Timeout")).group.outbox == ()


def test_a_refused_action_is_forgotten_and_asked_for_again_with_a_higher_generation() -> None:
    refused = step(RULE, failed().group, 1, outcome(FIRST, "Refused", at=1))
    assert ids(refused) == [SECOND]


def test_a_generation_found_on_the_object_is_never_fallen_below() -> None:
    written = route(HOME, annotations={"reactor/decision": f"web/{OBJECT}/41"})
    assert ids(step(RULE, None, 0, written, *FAILED[1:])) == [f"web/{OBJECT}/42"]


def test_a_generation_of_another_rule_or_no_number_is_not_taken_over() -> None:
    for text in (f"other/{OBJECT}/41", f"web/{OBJECT}/x", "web", "", f"web/{OBJECT}/{'9' * 40}"):
        assert ids(step(RULE, None, 0, route(HOME, annotations={"reactor/decision": text}), *FAILED[1:])) == [FIRST]


def test_what_is_wanted_otherwise_by_now_replaces_what_is_owed() -> None:
    back = step(RULE, failed().group, 5, healthy("a", at=5))
    # The first action may or may not have been carried out: the second one says the opposite, absolutely.
    assert len(back.group.outbox) <= 1
    for owed in back.group.outbox:
        assert isinstance(owed.action, SetWeights)
        assert owed.action.weights == HOME


def test_an_action_that_is_already_the_current_state_is_not_asked_for() -> None:
    assert moves(failover(), route(AWAY), *FAILED[1:]) == []


def test_a_done_action_and_the_route_that_shows_it_are_one_and_the_same() -> None:
    assert moves(failover(), *FAILED, route(AWAY, at=1)) == [(0, AWAY)]


def test_a_bad_target_that_stays_bad_gets_its_action_although_every_outcome_was_lost() -> None:
    group: Group | None = failed().group
    for now in range(1, 400):
        decision = step(RULE, group, now)
        group = load_group(dump_group(decision.group))
        assert set(ids(decision)) <= {FIRST}
    assert group is not None
    assert [owed.action.id for owed in group.outbox] == [FIRST]


# --- DryRun and Off ----------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_it_would_do_and_owes_nothing() -> None:
    decision = step(the_rule(mode="DryRun"), None, 0, *FAILED)
    assert [action.mode for action in decision.actions] == ["DryRun"]
    assert decision.group.outbox == ()
    assert decision.group.next_deadline is None


def test_a_dry_run_says_it_once_although_the_route_never_follows() -> None:
    story = [route(HOME, at=second) for second in range(10, 200, 10)]
    assert moves(failover(mode="DryRun"), *FAILED, *story, healthy("a", at=205)) == [(0, AWAY), (205, HOME)]


def test_a_failover_that_was_only_rehearsed_is_carried_out_once_the_rule_is_enforced() -> None:
    rehearsed = step(the_rule(mode="DryRun"), None, 0, *FAILED)
    acting = step(the_rule(), rehearsed.group, 10)
    assert [(action.mode, getattr(action, "weights", None)) for action in acting.actions] == [("Enforce", AWAY)]
    assert acting.group.outbox


def test_an_action_that_is_not_wanted_any_more_is_superseded_by_the_next_wish() -> None:
    """It may still be on its way: without a newer generation it would win over what is wanted now."""
    asked = step(RULE, None, 0, *FAILED)
    nowhere_to_go = step(RULE, asked.group, 5, unhealthy("b", at=5))
    assert nowhere_to_go.actions == ()
    assert nowhere_to_go.group.next_deadline is None
    home = step(RULE, nowhere_to_go.group, 20, healthy("a", at=20))
    assert [(action.id, getattr(action, "weights", None)) for action in home.actions] == [(SECOND, HOME)]


def test_a_primary_without_observations_any_more_is_reported_as_what_keeps_the_rule_away() -> None:
    assert holds(failover(), *FAILED, unknown("a", at=30)) == [(30, "TargetUnknown")]


def test_a_rule_that_is_off_does_nothing_and_holds_nothing() -> None:
    assert said(failover(mode="Off"), *FAILED, unhealthy("b", at=5)) == []


# --- pause and resume --------------------------------------------------------------------------------------------


def test_a_paused_rule_holds_and_acts_when_it_is_resumed() -> None:
    story = (*FAILED[:2], paused(at=1), unhealthy("a", at=5), resumed(at=60))
    assert moves(failover(), *story) == [(60, AWAY)]
    assert holds(failover(), *story) == [(5, "Paused")]


def test_a_pause_names_rules_by_pattern() -> None:
    other = failover(
        name="other", route={"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "api"}
    )
    story = (*FAILED[:2], route(HOME, name="api"), paused("o*", at=1), unhealthy("a", at=5))
    assert moves([failover(), other], *story) == [(5, AWAY)]


def test_a_pause_is_known_to_groups_that_appear_later() -> None:
    selected = failover(route={"cluster": "east", "kind": "TrafficSplit", "selector": "managed"})
    story = (paused(at=1), route(HOME, at=5, labels={"managed": ""}), healthy("b", at=5), unhealthy("a", at=5))
    assert moves(selected, *story) == []
    assert moves(selected, *story, resumed(at=9)) == [(9, AWAY)]


def test_a_window_runs_on_while_the_rule_is_paused() -> None:
    story = (route(HOME), healthy("a", at=0), healthy("b", at=0), unhealthy("a", at=5), paused(at=6), resumed(at=30))
    assert moves(failover(tolerationSeconds=10), *story) == [(30, AWAY)]


# --- words to people ---------------------------------------------------------------------------------------------


def test_people_are_told_of_an_action_once() -> None:
    told = words(failover(notify=["oncall"]), *FAILED, unhealthy("a", at=9))
    assert [at_ for at_, _ in told] == [0]
    assert told[0][1].startswith(f"web: set {OBJECT} to a=0, b=1: PrimaryUnhealthy")


def test_people_are_told_of_a_hold_once() -> None:
    story = (route(HOME), healthy("b", at=0), unhealthy("b", at=1), unhealthy("a", at=5), unhealthy("a", at=9))
    told = words(failover(notify=["oncall"]), *story)
    assert [(at_, "NoHealthySecondary" in text) for at_, text in told] == [(5, True)]


def test_people_are_told_what_a_dry_run_would_do() -> None:
    assert "would set" in words(failover(mode="DryRun", notify=["oncall"]), *FAILED)[0][1]


def test_a_word_that_could_not_be_delivered_is_tried_again() -> None:
    rule = the_rule(notify=["oncall"])
    first = step(rule, None, 0, *FAILED)
    word = f"{FIRST}/notify"
    assert ids(first) == [FIRST, word]
    group = step(rule, first.group, 1, outcome(FIRST, "Done", at=1)).group
    retry = step(rule, group, 2, outcome(word, "Failed", at=2))
    assert retry.group.next_deadline == at(7)
    assert ids(step(rule, retry.group, 7)) == [word]


def test_a_hold_is_told_once_and_again_when_its_reason_changes() -> None:
    story = (
        route(HOME), healthy("b", at=0), unhealthy("b", at=1), unhealthy("a", at=5), unknown("a", at=20),
        route(HOME, at=30, exists=False),
    )  # fmt: skip
    assert [reason for _, reason in holds(failover(), *story)][:1] == ["NoHealthySecondary"]
    assert holds(failover(), *story)[-1] == (30, "RouteNotFound")


def test_a_done_that_comes_late_does_not_undo_a_newer_look_at_the_route() -> None:
    """Another writer has set the weights back since: in one batch or one after the other, it is seen and set right."""
    put_back = route(HOME, at=14)
    done = outcome(FIRST, "Done", at=12)
    together = step(RULE, failed().group, 15, done, put_back)
    seen_first = step(RULE, step(RULE, failed().group, 14, put_back).group, 15, done)
    for decision in (together, seen_first):
        assert decision.group.state.route is not None
        assert decision.group.state.route.backends == (("a", 1), ("b", 0))
        assert ids(decision) == [SECOND]


def test_a_done_of_the_moment_of_the_last_look_counts() -> None:
    decision = step(RULE, failed().group, 14, outcome(FIRST, "Done", at=14), route(HOME, at=14))
    assert decision.group.state.route is not None
    assert decision.group.state.route.backends == (("a", 0), ("b", 1))
    assert decision.actions == ()


def test_where_the_api_server_does_not_answer_it_is_tried_again_every_one_and_a_half_seconds() -> None:
    rule = the_rule(backends=backends("a", "b"))
    group = step(rule, None, 0, route({"a": 1, "b": 0}), healthy("b", at=0), unhealthy("a", at=0)).group
    for when in (12, 27, 42, 57):
        [owed] = group.outbox
        group = step(rule, group, when, outcome(owed.action.id, "Failed", at=when, reason="ApiUnavailable")).group
        assert group.outbox[0].retry_at == at(when + 1.5)
        group = step(rule, group, when + 1.5).group


def test_what_the_api_server_refuses_is_tried_again_every_three_and_a_half_seconds_for_four_minutes() -> None:
    """A storm of 401, 403, 404 or 409 ends as an outage does: the failover was up to five minutes late then."""
    for reason in ("Forbidden", "RouteNotFound", "Conflict", "Invalid"):
        waits = _waits(*[reason] * 78)
        assert waits[:68] == [3.5] * 68
        assert waits[68:] == [7, 14, 28, 56, 112, 224, 300, 300, 300, 300]


def test_an_outage_before_a_storm_of_refusals_takes_none_of_its_quick_tries() -> None:
    assert _waits(*["ApiUnavailable"] * 300, "Forbidden")[-1] == 3.5


def _waits(*story: str) -> list[float]:
    """Seconds to each next try, where one after the other fails for these reasons."""
    decision, now, waits = failed(), 0.0, list[float]()
    for reason in story:
        decision = step(RULE, decision.group, now, outcome(FIRST, "Failed", at=now, reason=reason))
        assert decision.group.next_deadline is not None
        waits.append((decision.group.next_deadline - at(now)).total_seconds())
        now += waits[-1]
        decision = step(RULE, decision.group, now)
        assert ids(decision) == [FIRST]
    return waits

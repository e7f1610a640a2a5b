"""A person's no to a plan: it is not done, and not asked for again for a while."""

from __future__ import annotations

from bus.messages import Hold, Reject
from rules.core.group import Group
from rules.engine.group_codec import dump_group, load_group
from rules.rehearsal.causal_chain import chain
from rules.rehearsal.history import load_history, written
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import Event, healthy, holds, moves, paused, resumed, rule_set, said, step, unhealthy
from tests.unit.rules.guards.test_guard import ASKING, BACK, CHANGES, HOME, MOVED, THREE, WITH_C, approved
from tests.unit.rules.test_replay import kept

DOWN: list[Event] = [*HOME, unhealthy("a", at=10)]


def rejected(when: float, *, asked: float | None = None, request: str = "", seconds: float = 3600) -> Event:
    moment = at(when if asked is None else asked)
    return when, Reject(
        rule="web", object="east/shop/TrafficSplit/web", by="bob", reason="INC-8: b is worse", observed_at=moment,
        request=request, for_seconds=seconds,
    )  # fmt: skip


def shown(*events: Event, when: float, rule: dict[str, object] = ASKING) -> tuple[Group, str]:
    group = step(rule_set(rule).rules[0], None, when, *events).group
    assert group.grants is not None
    assert group.grants.request is not None
    return group, group.grants.request.desired


def test_what_was_rejected_is_not_asked_for_again_before_its_time_is_over() -> None:
    assert holds(ASKING, *DOWN, rejected(100), until=3800) == [
        (10, "AwaitingApproval"), (100, "Rejected"), (3700, "AwaitingApproval"),
    ]  # fmt: skip
    assert moves(ASKING, *DOWN, rejected(100), until=5000) == []


def test_the_hold_says_who_why_how_long_and_to_what() -> None:
    things = [one.what for one in said(ASKING, *DOWN, rejected(100, seconds=600), until=200)]
    assert [hold.detail for hold in things if isinstance(hold, Hold)][1] == (
        "by bob: INC-8: b is worse; not asked again before 1970-01-01T00:11:40+00:00: "
        "SetWeights weights a=0 b=1 (PrimaryUnhealthy)"
    )


def test_after_its_time_the_same_is_asked_for_as_if_for_the_first_time() -> None:
    history = [*DOWN, rejected(100, seconds=600)]
    assert holds(ASKING, *history, until=1650) == [
        (10, "AwaitingApproval"), (100, "Rejected"), (700, "AwaitingApproval"), (1600, "ApprovalExpired"),
    ]  # fmt: skip
    assert moves(ASKING, *history, approved(800), until=1000) == [(800, MOVED)]


def test_it_is_remembered_while_the_plan_is_not_wanted() -> None:
    """A target that recovers and fails again asks for the same: bob has said no to that for an hour."""
    flaps = [*DOWN, rejected(100), healthy("a", at=200), unhealthy("a", at=300)]
    assert holds(ASKING, *flaps, until=1000) == [(10, "AwaitingApproval"), (100, "Rejected"), (300, "Rejected")]
    shared_group = [*DOWN, rejected(100), paused(at=200), resumed(at=300)]
    assert holds(ASKING, *shared_group, until=1000)[2:] == [(200, "Paused"), (300, "Rejected")]


def test_another_plan_is_asked_for_and_the_rejected_one_stays_rejected() -> None:
    history = [*CHANGES[:-1], rejected(15), CHANGES[-1], healthy("b", at=30)]
    assert holds(WITH_C, *history, until=1000) == [
        (10, "AwaitingApproval"), (15, "Rejected"), (20, "AwaitingApproval"), (30, "Rejected"),
    ]  # fmt: skip


def test_a_no_that_names_what_it_was_shown_counts_for_that_alone() -> None:
    _, plan = shown(*THREE, unhealthy("a", at=10), when=10, rule=WITH_C)
    history = [*CHANGES, rejected(25, request=plan), healthy("b", at=30)]
    assert holds(WITH_C, *history, until=500) == [
        (10, "AwaitingApproval"), (20, "AwaitingApproval"), (30, "Rejected"),
    ]  # fmt: skip


def test_a_no_from_before_the_request_is_for_what_was_asked_then() -> None:
    assert holds(WITH_C, *CHANGES, rejected(30, asked=15), until=500)[-1] == (20, "AwaitingApproval")


def test_what_was_rejected_can_be_approved_and_what_was_approved_rejected() -> None:
    group, plan = shown(*DOWN, when=10)
    assert moves(ASKING, *DOWN, rejected(100), approved(200, request=plan), until=900) == [(200, MOVED)]
    rule = rule_set(ASKING | {"guards": {"ratePerSecond": 0.1}}).rules[0]
    waits = step(rule, step(rule, group, 20, approved(20)).group, 30, rejected(30)).group
    assert waits.held is not None
    assert waits.held.reason == "Rejected"


def test_the_newest_word_counts_however_late_the_other_is_heard() -> None:
    _, plan = shown(*DOWN, when=10)
    late_yes = [rejected(100), approved(120, asked=90, request=plan)]
    assert moves(ASKING, *DOWN, *late_yes, until=900) == []
    late_no = [approved(100, request=plan), rejected(100.5, asked=50, request=plan)]
    assert moves(ASKING, *DOWN, *late_no, healthy("a", at=200), unhealthy("a", at=300), until=400) == [
        (100, MOVED), (200, BACK),
    ]  # fmt: skip


def test_it_outlives_a_restart() -> None:
    group, plan = shown(*DOWN, when=10)
    again = load_group(dump_group(step(rule_set(ASKING).rules[0], group, 100, rejected(100, request=plan)).group))
    assert again.grants is not None
    [no] = again.grants.rejected
    assert (no.desired, no.by, no.reason, no.until) == (plan, "bob", "INC-8: b is worse", at(3700))
    assert step(rule_set(ASKING).rules[0], again, 200).group.held == again.held


def test_no_person_can_fill_the_state_with_rejections() -> None:
    group, _ = shown(*DOWN, when=10)
    for number in range(100):
        group = step(rule_set(ASKING).rules[0], group, 20, rejected(20, request=f"{number:016x}")).group
    assert group.grants is not None
    assert len(group.grants.rejected) == 16


def test_an_act_that_follows_shows_who_said_no_before() -> None:
    _, plan = shown(*DOWN, when=10)
    records = kept(rule_set(ASKING), [*DOWN, rejected(100), approved(200, request=plan)])
    found = chain("web/east/shop/TrafficSplit/web/1", records, [], [])
    assert found is not None
    assert "rejected by bob until 1970-01-01T01:01:40.000Z: INC-8: b is worse" in found.guards[0]
    assert any("held Rejected: by bob: INC-8: b is worse" in line for line in found.guards)


def test_an_act_that_follows_some_decisions_after_the_no_shows_it_too() -> None:
    _, plan = shown(*DOWN, when=10)
    story = [rejected(100, seconds=50), unhealthy("a", at=160), approved(200, request=plan)]
    records = kept(rule_set(ASKING), [*DOWN, *story])
    acting = [record for record in records if record.actions]
    assert [bool((record.before or {})["grants"]["rejected"]) for record in acting] == [False]
    found = chain("web/east/shop/TrafficSplit/web/1", records, [], [])
    assert found is not None
    said = [line for line in found.guards if line.startswith("rejected by")]
    assert said == ["rejected by bob until 1970-01-01T00:02:30.000Z: INC-8: b is worse"]


def test_an_act_of_the_same_moment_as_the_hold_before_it_shows_the_no_too() -> None:
    """An approval may be taken by a decision that waits for a look, and the act follows when that comes."""
    _, plan = shown(*DOWN, when=10)
    story = [rejected(100, seconds=50), unhealthy("a", at=160), approved(200, request=plan)]
    records = kept(rule_set(ASKING), [*DOWN, *story])
    moment = next(record.decided_at for record in records if record.actions)
    at_once = [record.model_copy(update={"decided_at": moment}) for record in records]
    found = chain("web/east/shop/TrafficSplit/web/1", at_once, [], [])
    assert found is not None
    assert "rejected by bob until 1970-01-01T00:02:30.000Z: INC-8: b is worse" in found.guards
    assert any("held Rejected: by bob: INC-8: b is worse" in line for line in found.guards)


def test_histories_and_rule_tests_have_the_word() -> None:
    _, no = rejected(100, seconds=600)
    [(when, fact)] = load_history([written(100, no)], "h.jsonl").events
    assert (when, fact) == (100, no)
    assert '"reject":' in written(100, no)

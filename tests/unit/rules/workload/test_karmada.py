"""Actions of a rule with the carrier Karmada: one write for a placement and its evictions, and tasks that outlive
memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bus.messages import CancelEviction, Mode, Outcome, Place
from rules.core.group import Group, OutboxEntry
from rules.engine.groups import GroupStore
from rules.engine.observe import observe_all
from rules.engine.routing import Routing
from rules.kinds.workload import desired_placement as workload_desired
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.state import Departure, WorkloadState
from rules.rehearsal.given_outcomes import GivenOutcome, GivenOutcomes
from rules.rehearsal.simulation import Simulator, at, play
from tests.examples import many
from tests.unit.actions.workload.builders import place
from tests.unit.rules.builders import Event, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    happens,
    in_time,
    placement,
    workload,
    workload_rule,
)

RULE = workload_rule(placement=placement("m1", "m2", tolerate=50), carrier="Karmada")


def test_a_placement_says_which_evictions_follow_it() -> None:
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), cluster("m1", "Unhealthy", at=10)]
    (placed,) = [one.what for one in happens(RULE, *events) if isinstance(one.what, Place)]
    assert [(one.from_, one.purge_mode) for one in placed.evictions] == [("m1", "Gracefully")]
    plain = workload_rule(placement=placement("m1", "m2", tolerate=50))
    (placed,) = [one.what for one in happens(plain, *events) if isinstance(one.what, Place)]
    assert placed.evictions == ()


def test_an_eviction_whose_task_exists_though_nothing_is_remembered_of_it_is_taken_back() -> None:
    events = [workload({"m2": 2}, replicas=2, evicting=("m1",)), *clusters("Healthy", "m1", "m2")]
    assert [one[1:] for one in acts(RULE, *events, copy("m2", "Unhealthy", at=1))][:1] == [("CancelEviction", "m1")]


def test_or_it_goes_on_where_the_other_copy_is_healthy() -> None:
    events = [workload({"m2": 2}, replicas=2, evicting=("m1",)), *clusters("Healthy", "m1", "m2")]
    assert ("Purge", "m1") in [one[1:] for one in acts(RULE, copy("m2", "Healthy", at=0), *events)]


def test_what_the_scheduler_overrules_is_a_hold_until_an_action_is_done_as_asked() -> None:
    rule = rule_set(RULE).rules[0]
    assert isinstance(rule, WorkloadFailover)
    state = WorkloadState(exists=True, left={"m1": Departure(at(0), "Cluster")})
    action = place({"m2": 2}, carrier="Karmada")
    owing = Group(rule.name, OBJECT, state, mode=Mode.ENFORCE, outbox=(OutboxEntry(action, at(15)),))
    said = Outcome(action=action.id, status="Done", reason="PlacedElsewhere", detail="on m3=2", observed_at=at(1))
    group = observe_all(rule, owing, (said,), at(1))
    held = workload_desired.desire(rule, group, None, at(1)).held
    assert held is not None
    assert (held[0], held[1]) == ("SchedulerOverruled", "on m3=2")
    again = observe_all(rule, replace(group, outbox=owing.outbox), (said.model_copy(update={"reason": None}),), at(2))
    assert workload_desired.desire(rule, again, None, at(2)).held is None


def room_for(most: int, **scheduling: Any) -> dict[str, Any]:
    spread = {"minGroups": 1, "maxGroups": most}
    scheduled = {"replicaScheduling": scheduling} if scheduling else {}
    return workload_rule(
        placement=placement("m1", "m2", "m3", "m4", tolerate=50, spread=spread, **scheduled), carrier="Karmada",
        recoverySeconds=0,
    )  # fmt: skip


def left_at(rule: dict[str, Any], events: Sequence[Event], second: float) -> dict[str, int | None]:
    """The copies that a rehearsal has then."""
    store = GroupStore(Routing.of(rule_set(rule)))
    player = Simulator(store, outcomes=True)
    for when, fact in in_time([event for event in events if event[0] <= second]):
        list(player.until(at(when)))
        list(player.take([fact], at(when)))
    list(player.until(at(second)))
    return {name: copy.replicas for name, copy in store.groups["nginx", OBJECT].state.copies.items()}


BACK = [cluster("m1", "Unhealthy", at=10), cluster("m1", "Healthy", at=100)]


def test_a_rehearsal_leaves_no_more_copies_than_the_policy_has_room_for() -> None:
    """The Healthy one stays. Simulated, both stayed, and a second outage placed nothing."""
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2", "m3", "m4"), *BACK]
    events += [copy("m1", "Healthy", at=99)]
    assert left_at(room_for(1), events, 101) == {"m1": 2}
    assert left_at(room_for(2), events, 101) == {"m1": 2, "m2": 2}, "room for both"
    again = acts(room_for(1), *events, cluster("m1", "Unhealthy", at=200))
    assert again == [
        (60, "Place", {"m2": 2}), (60, "Evict", "m1"), (100, "CancelEviction", "m1"), (250, "Place", {"m2": 2}),
        (250, "Evict", "m1"),
    ]  # fmt: skip


def test_an_outcome_that_a_rule_test_gives_leaves_as_much() -> None:
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2", "m3", "m4"), *BACK]
    events += [copy("m1", "Healthy", at=99), cluster("m1", "Unhealthy", at=200)]
    later = GivenOutcomes((GivenOutcome(110, lambda one: isinstance(one.what, CancelEviction), "Done"),))
    said = play(Routing.of(rule_set(room_for(1))), in_time(events), until=300, answers=later)
    assert [(one.at, type(one.what).__name__) for one in said][-2:] == [(250, "Place"), (250, "Evict")]


def test_while_no_copy_is_seen_healthy_a_rehearsal_keeps_all_of_them() -> None:
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), *BACK]
    assert left_at(room_for(1), events, 101) == {"m1": 2, "m2": 2}


def test_a_healthy_new_copy_stays_in_a_rehearsal_and_one_that_is_not_makes_room() -> None:
    events = [workload({"m1": 2, "m2": 2}, replicas=2), *clusters("Healthy", "m1", "m2", "m3", "m4"), *BACK]
    events += [cluster("m2", "Unhealthy", at=10), copy("m3", "Healthy", at=70)]
    assert left_at(room_for(2), events, 101) == {"m2": 2, "m3": 2, "m4": 2}, "m2 is still leaving"
    events += [copy("m1", "Healthy", at=99)]
    assert left_at(room_for(2), events, 101) == {"m1": 2, "m3": 2}, "both are Healthy, so m2 is purged"


def test_divided_replicas_add_up_after_an_eviction_is_taken_back_in_a_rehearsal() -> None:
    rule = room_for(4, replicaSchedulingType="Divided", replicaDivisionPreference="Aggregated")
    events = [workload({"m1": 3}, replicas=3), *clusters("Healthy", "m1", "m2"), *BACK, copy("m1", "Healthy", at=99)]
    assert left_at(rule, events, 61) == {"m1": 3, "m2": 3}
    assert left_at(rule, events, 101) == {"m1": 3}


def test_what_makes_room_is_not_counted_as_taken_away_by_people() -> None:
    """Two copies, room for two: after a cancelled eviction the next outage placed nothing, and one copy was left."""
    events = [workload({"m1": 2, "m2": 2}, replicas=2), *clusters("Healthy", "m1", "m2", "m3", "m4"), *BACK]
    events += [*(copy(name, "Healthy", at=0) for name in ("m1", "m2")), copy("m1", "Healthy", at=99)]
    assert left_at(room_for(2), events, 101) == {"m1": 2, "m2": 2}
    events += [cluster("m2", "Unhealthy", at=200)]
    assert (250, "Place", {"m1": 2, "m3": 2}) in acts(room_for(2), *events)


@many(100)
@given(
    st.sampled_from([1, 2, 3]),
    st.lists(
        st.tuples(
            st.sampled_from([cluster, copy]), st.sampled_from(["m1", "m2", "m3", "m4"]),
            st.sampled_from(["Healthy", "Unhealthy"]), st.integers(1, 600),
        ), max_size=20, unique_by=lambda event: (event[0], event[1], event[3]),
    ),
)  # fmt: skip
def test_in_no_history_does_a_rehearsal_lose_the_last_healthy_copy(most: int, told: Any) -> None:
    rule = room_for(most)
    events = [workload(dict.fromkeys(["m1", "m2", "m3"][:most], 2), replicas=2)]
    events += [*clusters("Healthy", "m1", "m2", "m3", "m4"), *(make(*who, at=when) for make, *who, when in told)]
    store = GroupStore(Routing.of(rule_set(rule)))
    player = Simulator(store, outcomes=True)
    before: set[str] = set()
    for second in sorted({*(when for when, _ in events), *range(0, 700, 10)}):
        list(player.until(at(second)))
        list(player.take([fact for when, fact in events if when == second], at(second)))
        there, well = store.groups["nginx", OBJECT].state.copies, healthy_copies(told, second)
        assert well & there.keys() or not well & before, f"{second}: {well & before} gone, there is {sorted(there)}"
        before = {*there}


def healthy_copies(told: Any, second: float) -> set[str]:
    last = {(make, name): status for make, name, status, when in sorted(told, key=lambda one: one[3]) if when <= second}
    return {name for (make, name), status in last.items() if make is copy and status == "Healthy"}

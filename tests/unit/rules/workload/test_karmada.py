"""What carrier Karmada asks of a rule: one write for a placement and its evictions, and tasks that outlive memory."""

from __future__ import annotations

from dataclasses import replace

from bus.messages import Mode, Outcome, Place
from rules.core.group import Group, OutboxEntry
from rules.engine.observe import observe
from rules.kinds.workload import desired_placement as workload_wish
from rules.kinds.workload.state import Departure, WorkloadState
from rules.rehearsal.simulation import at
from rules.rulefile.workload import WorkloadFailover
from tests.unit.actions.workload.builders import place
from tests.unit.rules.builders import rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    happens,
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


def test_an_eviction_whose_task_stands_though_nothing_is_remembered_of_it_is_taken_back() -> None:
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
    group = observe(rule, owing, said, at(1))
    held = workload_wish.desire(rule, group, None, at(1)).held
    assert held is not None
    assert (held[0], held[1]) == ("SchedulerOverruled", "on m3=2")
    again = observe(rule, replace(group, outbox=owing.outbox), said.model_copy(update={"reason": None}), at(2))
    assert workload_wish.desire(rule, again, None, at(2)).held is None

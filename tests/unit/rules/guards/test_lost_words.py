"""A reader dies after a guard's answer is stored but not published: the reader that takes over publishes it."""

from __future__ import annotations

from bus.messages import AcquireReply, AcquireRequest, Place
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import rule_set
from tests.unit.rules.workload.builders import cluster, clusters, placement, workload, workload_rule

EVENTS = [
    workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2", "m3"), cluster("m1", "Unhealthy", at=10),
]  # fmt: skip


def test_a_grant_that_was_stored_and_not_said_is_said_by_the_next_reader() -> None:
    routing = Routing.of(rule_set(workload_rule(placement=placement("m1", "m2", "m3", tolerate=0))))
    group_store = GroupStore(routing)
    for second, fact in EVENTS:
        claims = [
            one
            for decision in group_store.apply([fact], at(second))
            for one in decision.emits
            if isinstance(one, AcquireRequest)
        ]
    lost = [one for decision in group_store.apply(claims, at(10)) for one in decision.emits]
    assert [one.granted for one in lost if isinstance(one, AcquireReply)] == [True]

    group_store = GroupStore(routing, [load_group(dump_group(group)) for group in group_store.groups.values()])
    said = [fact for decision in group_store.outstanding(at(11)) for fact in decision.emits]
    assert [one.granted for one in said if isinstance(one, AcquireReply)] == [True]
    actions = [action for decision in group_store.apply(said, at(11)) for action in decision.actions]
    assert [type(action) for action in actions] == [Place]


def test_a_grant_that_is_said_again_is_not_used_again() -> None:
    routing = Routing.of(rule_set(workload_rule(placement=placement("m1", "m2", "m3", tolerate=0))))
    group_store = GroupStore(routing)
    placed = []
    for second, fact in EVENTS:
        facts = [fact]
        while facts:
            decisions = group_store.apply(facts, at(second))
            placed += [action for one in decisions for action in one.actions]
            facts = [said for one in decisions for said in one.emits]
    assert [type(action) for action in placed] == [Place]
    said = [fact for decision in group_store.outstanding(at(11)) for fact in decision.emits]
    assert [action for decision in group_store.apply(said, at(11)) for action in decision.actions] == []

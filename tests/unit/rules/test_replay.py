"""A recorded decision holds all that it rests on: decided again by the same rule it comes out the same, exactly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from bus.messages import Approve, DecisionRecord, Fact, SetWeights
from reactor.audit.command_records import audited
from rules.engine import outbox as owing
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.loader import RuleSet
from rules.rehearsal.decision_replay import Match, recorded, replay
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import failover, healthy, notification, paused, route, rule_set, unhealthy
from tests.unit.rules.histories import events, words
from tests.unit.rules.oracle import Heard

QUICK = settings(max_examples=40)
HOME = {"a": 1, "b": 0}
STORY = [route(HOME), healthy("a", at=0), healthy("b", at=0), unhealthy("a", at=5)]


def kept(rules: RuleSet, history: list[tuple[float, Fact]]) -> list[DecisionRecord]:
    """The records of all that was decided, over the wire and back, as the audit keeps them."""
    routing = Routing.of(rules)
    group_store, decisions = GroupStore(routing), []
    for now in sorted({second for second, _ in history}):
        while (alarm := group_store.next_alarm()) is not None and alarm < at(now):
            decisions += [(alarm, one) for one in group_store.fire_due(alarm)]
        decisions += [
            (at(now), one) for one in group_store.apply([fact for second, fact in history if second == now], at(now))
        ]
    records = [recorded(one, routing.digest(one.group.rule), moment) for moment, one in decisions if one.seen]
    return [DecisionRecord.model_validate_json(one.model_dump_json()) for one in records]


@given(words())
@QUICK
def test_every_decision_of_any_history_comes_out_the_same_again(history: list[Heard]) -> None:
    rules = rule_set(failover(tolerationSeconds=3, recoverySeconds=2, backends=[{"service": s} for s in "abc"]))
    records = kept(rules, [route({"a": 1, "b": 0, "c": 0}), *events(history)])
    assert [replay(one, Routing.of(rules)).match for one in records] == [Match.SAME] * len(records)


def test_pauses_and_news_come_out_the_same_too() -> None:
    rules = rule_set(failover(), notification())
    records = kept(rules, [*STORY, paused(at=6), unhealthy("b", at=7)])
    assert {replay(one, Routing.of(rules)).match for one in records} == {Match.SAME}


def test_a_rule_that_was_changed_since_proves_nothing_unless_asked_what_it_would_do() -> None:
    records = kept(rule_set(failover()), [*STORY])
    slower = Routing.of(rule_set(failover(tolerationSeconds=60)))
    acting = next(one for one in records if one.actions)
    assert replay(acting, slower).match is Match.OTHER_RULE
    assert replay(acting, slower, other_rules=True).match is Match.DIFFERENT
    assert replay(acting, Routing.of(rule_set(notification()))).match is Match.OTHER_RULE


def test_a_record_without_its_state_is_said_to_be_unreadable() -> None:
    rules = rule_set(failover())
    acting = next(one for one in kept(rules, [*STORY]) if one.actions)
    assert replay(acting.model_copy(update={"before": None}), Routing.of(rules)).match is Match.UNREADABLE
    assert replay(acting.model_copy(update={"before": {"rule": 1}}), Routing.of(rules)).match is Match.UNREADABLE


def test_a_persons_word_is_counted_as_such() -> None:
    yes = Approve(rule="web", object="x", by="ann", reason="seen", observed_at=at(5))
    [record] = [audited(yes, "1").record]
    assert replay(record, Routing.of(rule_set(failover()))).match is Match.COMMAND


def test_a_core_that_decides_otherwise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = rule_set(failover())
    acting = next(one for one in kept(rules, [*STORY]) if one.actions)
    action = owing._action

    def reversed_weights(*given: Any) -> Any:
        made = action(*given)
        assert isinstance(made, SetWeights)
        return made.model_copy(update={"weights": {name: 1 - weight for name, weight in made.weights.items()}})

    monkeypatch.setattr(owing, "_action", reversed_weights)
    assert replay(acting, Routing.of(rules)).match is Match.DIFFERENT

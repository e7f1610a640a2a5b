"""Facts that are only noted move nothing, and lose nothing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from bus.messages import Fact
from rules.core.group import Group
from rules.engine.decide import decide
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.traffic.state import TrafficState
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from tests.unit.rules.builders import OBJECT, failover, healthy, route, rule_set, unhealthy
from tests.unit.rules.histories import HOME, RULES, events, words
from tests.unit.rules.oracle import Heard

START = route(HOME)


@settings(max_examples=100)
@given(RULES, words())
def test_taking_note_first_and_deciding_then_is_deciding(rule: Rule, history: list[Heard]) -> None:
    at_once = noted = Group("web", OBJECT, TrafficState())
    for now, fact in [START, *events(history)]:
        at_once, acts = _told(rule, at_once, (fact,), now)
        first = decide(rule, noted, (fact,), at(now), known=False)
        assert (first.actions, first.held, first.group.outbox) == ((), None, noted.outbox)
        assert first.group.next_deadline == at(now), "it is decided as soon as all is known"
        noted, later = _told(rule, first.group, (), now)
        assert (noted, later) == (at_once, acts)


def _told(rule: Rule, group: Group, facts: tuple[Fact, ...], now: float) -> tuple[Group, list[str]]:
    decision = decide(rule, group, facts, at(now))
    return replace(decision.group, position=0), [action.id for action in decision.actions]


def test_a_book_waits_with_what_it_took_note_of_until_it_rings() -> None:
    group_store = GroupStore(Routing.of(rule_set(failover(backends=[{"service": name} for name in "ab"]))))
    for now, fact in (route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0)):
        group_store.apply([fact], at(now))
    [(_, gone), (_, other)] = unhealthy("a", at=10), unhealthy("b", at=10)
    assert [decision.actions for decision in group_store.apply([gone], at(10), known=False)] == [()]
    assert group_store.next_alarm() == at(10)
    assert [decision.actions for decision in group_store.apply([other], at(10), known=False)] == [()]
    [decision] = group_store.fire_due(at(10))
    assert (decision.actions, decision.held and decision.held.reason) == ((), "NoHealthySecondary")

"""Observations of backends before their route appeared."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Fact, SetWeights
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import failover, healthy, route, rule_set, unhealthy

SELECTING = failover(route={"cluster": "east", "kind": "TrafficSplit", "selector": "a=b"})


def moved(heard: Any) -> list[dict[str, int]]:
    """Weights that are written when the route appears at second 20, after these observations."""
    group_store = GroupStore(Routing(rule_set(SELECTING).rules))
    for fact in heard:
        group_store.apply([fact], at(12))
    appears: Fact = route({"a": 1, "b": 0}, at=20, labels={"a": "b"})[1]
    actions = [action for decision in group_store.apply([appears], at(20)) for action in decision.actions]
    return [dict(action.weights) for action in actions if isinstance(action, SetWeights)]


def test_a_late_word_replaces_no_newer_one_for_a_route_that_appears_later() -> None:
    newer, late = unhealthy("a", at=10)[1], healthy("a", at=5)[1]
    assert moved([healthy("b", at=11)[1], newer, late]) == [{"a": 0, "b": 1}]


@given(st.permutations([healthy("a", at=1), unhealthy("a", at=10), healthy("a", at=9), healthy("b", at=11)]))
def test_a_route_that_appears_later_hears_the_same_in_whatever_order_it_was_said(events: Any) -> None:
    assert moved([fact for _, fact in events]) == [{"a": 0, "b": 1}]

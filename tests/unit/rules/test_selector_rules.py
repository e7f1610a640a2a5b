"""One rule for every route with a label: routes come, go and change."""

from __future__ import annotations

from typing import Any

import pytest

from rules.core.group import Group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.traffic.state import TrafficState
from rules.kinds.workload.state import WorkloadState
from rules.rehearsal.simulation import at
from rules.rulefile.selectors import wanted_label
from tests.unit.rules.builders import Event, failover, healthy, moves, paused, route, rule_set, unhealthy

LABEL = {"failover.linkerd.io/controlled-by": "linkerd-failover"}
HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}


def selecting(**keys: Any) -> dict[str, Any]:
    selector = "failover.linkerd.io/controlled-by=linkerd-failover"
    return failover(route={"cluster": "east", "kind": "TrafficSplit", "selector": selector} | keys)


def labelled(*, at: float = 0, **more: Any) -> Event:
    return route(HOME, at=at, labels=more.pop("labels", LABEL), **more)


HEALTH = (healthy("a", at=0), healthy("b", at=0))


def test_a_labelled_route_is_taken_over_without_a_change_to_it() -> None:
    assert moves(selecting(), labelled(), *HEALTH, unhealthy("a", at=5)) == [(5, AWAY)]


def test_a_route_without_the_label_is_none_of_its_business() -> None:
    assert moves(selecting(), labelled(labels={}), *HEALTH, unhealthy("a", at=5)) == []
    other = {"failover.linkerd.io/controlled-by": "somebody-else"}
    assert moves(selecting(), labelled(labels=other), *HEALTH, unhealthy("a", at=5)) == []


def test_each_route_is_decided_on_its_own() -> None:
    two = (labelled(), labelled(name="api"), *HEALTH, unhealthy("a", at=5))
    assert moves(selecting(), *two) == [(5, AWAY), (5, AWAY)]


def test_a_route_in_another_namespace_gets_facts_of_its_own_services() -> None:
    elsewhere = (labelled(namespace="pay"), healthy("service/east/pay/a", at=0), healthy("service/east/pay/b", at=0))
    assert moves(selecting(), *elsewhere, unhealthy("a", at=5)) == []
    assert moves(selecting(), *elsewhere, unhealthy("service/east/pay/a", at=5)) == [(5, AWAY)]


def test_a_selector_can_be_kept_to_one_namespace() -> None:
    elsewhere = (labelled(namespace="pay"), healthy("service/east/pay/b", at=0), unhealthy("service/east/pay/a", at=5))
    assert moves(selecting(namespace="shop"), *elsewhere) == []
    assert moves(selecting(namespace="pay"), *elsewhere) == [(5, AWAY)]


def test_a_route_that_loses_the_label_keeps_its_last_weights() -> None:
    story = (labelled(), *HEALTH, unhealthy("a", at=5), labelled(at=10, labels={}), healthy("a", at=20))
    assert moves(selecting(), *story) == [(5, AWAY)]


def test_a_route_that_is_deleted_is_forgotten() -> None:
    story = (labelled(), *HEALTH, labelled(at=10, exists=False), unhealthy("a", at=20))
    assert moves(selecting(), *story) == []


def test_a_route_that_gets_the_label_later_is_decided_by_what_was_heard_before() -> None:
    story = (labelled(labels={}), *HEALTH, unhealthy("a", at=5), labelled(at=30))
    assert moves(selecting(), *story) == [(30, AWAY)]


def test_a_route_that_gets_its_label_back_is_decided_by_what_was_heard_meanwhile() -> None:
    story = (labelled(), *HEALTH, labelled(at=10, labels={}), unhealthy("a", at=20), labelled(at=30))
    assert moves(selecting(), *story) == [(30, AWAY)]


# --- the book that keeps them --------------------------------------------------------------------------------------


def group_store(*groups: Group, **more: Any) -> GroupStore:
    return GroupStore(Routing(rule_set(selecting()).rules), groups, **more)


def take(kept: GroupStore, *events: Event) -> None:
    kept.apply([fact for _, fact in events], at(events[-1][0]))


def test_groups_open_with_their_route_and_are_dropped_with_it() -> None:
    kept = group_store()
    take(kept, *HEALTH)
    assert dict(kept.groups) == {}
    take(kept, labelled(at=1))
    assert list(kept.groups) == [("web", "east/shop/TrafficSplit/web")]
    take(kept, labelled(at=2, exists=False))
    assert dict(kept.groups) == {}
    assert kept.dropped == {("web", "east/shop/TrafficSplit/web")}


def test_a_book_keeps_only_the_groups_that_are_its_own() -> None:
    kept = group_store(mine=lambda _, scope: scope == "east/pay")
    take(kept, labelled(), labelled(namespace="pay"))
    assert list(kept.groups) == [("web", "east/pay/TrafficSplit/web")]


def test_a_book_that_is_opened_again_goes_on_where_it_was() -> None:
    kept = group_store()
    take(kept, labelled(), *HEALTH)
    again = group_store(*kept.groups.values())
    [decision] = again.apply([unhealthy("a", at=9)[1]], at(9))
    assert [getattr(action, "weights", None) for action in decision.actions] == [AWAY]


def test_groups_of_rules_that_are_no_more_are_not_kept() -> None:
    assert dict(group_store(Group("gone", "east/shop/TrafficSplit/web", TrafficState())).groups) == {}


def test_a_rule_of_another_kind_under_the_same_name_starts_again() -> None:
    """The state of a workload's rule means nothing to a rule that moves traffic."""
    kept = group_store(Group("web", "east/shop/TrafficSplit/web", WorkloadState()))
    assert dict(kept.groups) == {}
    assert kept.dropped == {("web", "east/shop/TrafficSplit/web")}


def test_a_fact_that_a_group_has_had_is_not_folded_in_again() -> None:
    kept = group_store()
    take(kept, labelled(), *HEALTH)
    kept.apply([unhealthy("a", at=5)[1]], at(5), [7])
    before = dict(kept.groups)
    kept.apply([healthy("a", at=6)[1]], at(6), [7])
    assert dict(kept.groups) == before


def test_a_book_rings_when_a_window_is_over_and_not_before() -> None:
    kept = GroupStore(Routing(rule_set(failover(tolerationSeconds=10)).rules))
    take(kept, route(HOME), *HEALTH)
    assert kept.next_alarm() is None
    take(kept, unhealthy("a", at=5))
    assert kept.next_alarm() == at(15)
    assert kept.fire_due(at(14.999)) == []
    [decision] = kept.fire_due(at(15))
    assert decision.actions


def test_a_pause_reaches_every_group_that_its_pattern_means() -> None:
    kept = group_store()
    take(kept, labelled(), labelled(name="api"), *HEALTH, paused(at=1))
    assert all(group.paused is not None for group in kept.groups.values())


def test_a_group_of_another_rule_of_the_route_is_not_carried_over() -> None:
    def of_rule(number: int | str | None, *groups: Group) -> GroupStore:
        return GroupStore(Routing(rule_set(selecting(kind="HTTPRoute", rule=number)).rules), groups)

    kept = of_rule(0)
    take(kept, labelled(kind="HTTPRoute", rule=0), *HEALTH)
    stored = list(kept.groups.values())
    assert list(of_rule(0, *stored).groups) == [("web", "east/shop/HTTPRoute/web#0")]
    for other in (1, "named", None):
        again = of_rule(other, *stored)
        assert dict(again.groups) == {}
        assert again.dropped == {("web", "east/shop/HTTPRoute/web#0")}


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("app=web", ("app", "web")),
        ("tier,app!=x,app==web", ("app", "web")),
        ("app in (web)", ("app", "web")),
        ("app in (web, api)", None),
        ("!old,app", None),
        ("app!=web", None),
    ],
)
def test_rules_are_found_by_a_label_that_all_have_which_they_select(
    selector: str, wanted: tuple[str, str] | None
) -> None:
    """Also by those that name none, and when the label is lost: an existing group gets the facts of its route."""
    assert wanted_label(selector) == wanted
    routing = Routing.of(rule_set(selecting(selector=selector) | {"name": "one"}))
    for labels in ({"app": "web", "tier": "a"}, {"x": "y"}, {}):
        _, fact = labelled(labels=labels)
        is_found = wanted is None or wanted in labels.items()
        assert [rule.name for rule, _ in routing.concerned(fact)] == ["one"] * is_found
        assert [rule.name for rule, _ in routing.concerned(fact, {"one", "two"})] == ["one"]

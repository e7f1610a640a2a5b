"""A store of groups that is copied: what happens in one copy is not known in the other."""

from __future__ import annotations

from collections.abc import Iterator

from bus.messages import Pause
from rules.core.group import Group
from rules.engine.groups import GroupStore
from rules.engine.pauses import Pauses
from rules.engine.routing import Routing
from rules.engine.subscriptions import Subscriptions
from rules.rehearsal.simulation import at
from rules.rehearsal.store_copies import copied
from tests.unit.rules.builders import failover, healthy, route, rule_set, unhealthy

SELECTING = failover(route={"cluster": "east", "kind": "TrafficSplit", "selector": "a=b"}, tolerationSeconds=10)
PAUSE = Pause(rule="w*", by="ana", reason="maintenance", observed_at=at(2))
FACTS = [[healthy("a", at=1)[1], unhealthy("b", at=1)[1]], [route({"a": 1, "b": 0}, at=2, labels={"a": "b"})[1], PAUSE]]


def containers(value: object) -> Iterator[object]:
    """Each dict, list and set in a store, at any depth; a group is a value."""
    if isinstance(value, GroupStore | Subscriptions | Pauses):
        for inside in vars(value).values():
            yield from containers(inside)
    elif isinstance(value, dict | list | set):
        yield value
        for inside in value.values() if isinstance(value, dict) else value:
            if not isinstance(inside, Group):
                yield from containers(inside)


def played(store: GroupStore) -> GroupStore:
    for second, facts in enumerate(FACTS, 1):
        store.apply(facts, at(second))
    return store


def test_a_copy_has_no_container_of_the_store_and_all_that_is_in_them() -> None:
    store = played(GroupStore(Routing(rule_set(SELECTING).rules)))
    found, own = [*containers(store)], [*containers(copied(store))]
    assert len(found) > 10
    assert found == own
    assert not {id(one) for one in found} & {id(one) for one in own}


def test_a_copy_decides_like_a_new_store_whatever_the_store_and_other_copies_have_heard() -> None:
    routing = Routing(rule_set(SELECTING).rules)
    new = GroupStore(routing)
    first, second = copied(new), copied(new)
    played(first)
    played(new)
    assert not second.groups
    assert played(second).groups == played(GroupStore(routing)).groups == first.groups

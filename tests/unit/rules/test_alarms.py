"""Alarms of a store of groups, one for each that counts, and its changes for those who look again and again."""

from __future__ import annotations

from rules.engine.groups import ALARMS_MIN, GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import healthy, notification, rule_set


def test_alarms_that_were_moved_on_are_not_kept_until_their_time() -> None:
    book = GroupStore(Routing.of(rule_set(notification())))
    for number in range(2 * ALARMS_MIN):
        when, fact = healthy("a", at=number, stale=3600)
        book.apply([fact], at(when))
    assert len(book._alarms) <= ALARMS_MIN + 2 * len(book.groups)
    [group] = book.groups.values()
    assert book.next_alarm() == group.next_deadline == at(2 * ALARMS_MIN - 1 + 3600)


def test_who_looks_at_groups_again_and_again_is_given_those_that_have_changed() -> None:
    book = GroupStore(Routing.of(rule_set(notification())))
    facts = [healthy(name, at=1, stale=3600)[1] for name in ("a", "b")]
    book.apply(facts, at(1))
    assert book.take_changed() == set(book.groups)
    assert book.take_changed() == set()
    when, fact = healthy("a", at=2, stale=3600)
    book.apply([fact], at(when))
    [changed] = book.take_changed()
    assert changed[1] == fact.about

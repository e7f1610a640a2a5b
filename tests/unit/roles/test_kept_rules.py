"""The text of a rule is stored for as long as what it did is in force."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bus.testing.memory import MemoryBus
from bus.topology import GROUPS
from reactor.decide.kept_rules import KeptRules, kept_rules
from rules.core.group import Group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.kind import way_back_only
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.state import Isolation, ZoneState
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.zone.builders import zone_rule

KEY = ("zones", "prod")
ISOLATED = Group(
    *KEY, ZoneState(isolation=Isolation("a", "Failover", "Done", "Commanded", at_(0), at_(0), touched=("Fence",)))
)


def book_of(rule: ZoneIsolation, group: Group) -> GroupStore:
    return GroupStore(Routing([rule]), [group])


async def test_the_rule_is_stored_while_its_zone_is_isolated_and_no_longer() -> None:
    store = MemoryBus(lambda: at_(0)).store(GROUPS)
    kept, rule = KeptRules(store, 3), zone_rule()
    await kept.before(book_of(rule, Group(*KEY, ZoneState())), [KEY])
    assert await store.entries("*.rule.*") == []
    await kept.before(book_of(rule, ISOLATED), [KEY])
    await kept.tidy(book_of(rule, ISOLATED))
    assert await kept_rules(store) == [way_back_only(rule)]
    await kept.tidy(book_of(rule, replace(ISOLATED, state=ZoneState())))
    assert await store.entries("*.rule.*") == []


async def test_a_text_is_written_once_until_it_changes_and_what_is_left_of_a_rule_never() -> None:
    store = MemoryBus(lambda: at_(0)).store(GROUPS)
    kept, rule = KeptRules(store, 3), zone_rule()

    async def revision_after(rule: ZoneIsolation) -> int:
        await kept.before(book_of(rule, ISOLATED), [KEY])
        [entry] = await store.entries("*.rule.*")
        return entry.revision

    first = await revision_after(rule)
    assert await revision_after(rule) == first
    changed = zone_rule(recoverySeconds=99)
    second = await revision_after(changed)
    assert second > first
    assert await revision_after(way_back_only(changed)) == second


async def test_an_owner_that_takes_over_knows_what_is_stored_and_forgets_it_in_the_end() -> None:
    store = MemoryBus(lambda: at_(0)).store(GROUPS)
    await KeptRules(store, 3).before(book_of(zone_rule(), ISOLATED), [KEY])
    [entry] = await store.entries("3.>")
    next_owner = KeptRules(store, 3)
    assert next_owner.loaded(entry)
    await next_owner.before(book_of(zone_rule(), ISOLATED), [KEY])
    assert await store.entries("3.>") == [entry]
    await next_owner.tidy(book_of(zone_rule(), Group(*KEY, ZoneState())))
    assert await store.entries("3.>") == []


async def test_a_text_that_cannot_be_read_takes_no_other_away(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryBus(lambda: at_(0)).store(GROUPS)
    await KeptRules(store, 3).before(book_of(zone_rule(), ISOLATED), [KEY])
    await store.put("4.rule.odd", b'{"name": "odd", "kind": "Nothing"}', revision=0)
    assert [rule.name for rule in await kept_rules(store)] == ["zones"]
    assert "the kept rule 4.rule.odd cannot be read" in caplog.text

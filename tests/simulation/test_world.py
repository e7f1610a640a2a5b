"""1,000 simulated hours of seeded worlds, over all library rules and some of our own, keep every promise.

What they once found is told by itself in tests/unit/rules/test_found_by_worlds.py: a seed is another world as soon as
anything about worlds changes.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from rules.core.group import Group
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.rehearsal import history
from rules.rehearsal.world.checkers.promise_finding import Promise
from rules.rehearsal.world.play import play_history, play_world
from rules.rehearsal.world.world import world
from rules.rehearsal.world.world_report import Worlds
from rules.rehearsal.world.world_topology import cast, enforced
from rules.rulefile.sources import Quorum
from tests.simulation.drawn import drawn
from tests.simulation.rulefiles import names, rule_set

pytestmark = [
    pytest.mark.timeout(900),  # they compute for minutes, with what other tests leave of the processors
    pytest.mark.xdist_group("a thousand hours"),  # in two workers, half of them would be played twice
]

SEEDS = range(2)
HOURS = 14.0
LONGER = {"active_passive": 44.0, "brownout": 44.0, "oncall": 44.0, "proportional": 44.0, "three_regions": 44.0,
          "unknown is bad": 44.0, "taints": 8.0}  # fmt: skip
"""Hours of one world. An hour of the large ones costs ten times as much as one of the small."""
LEAST = {
    Promise.EARLY: 2000, Promise.LOST: 20_000, Promise.DOUBLED: 2000, Promise.BLIND: 400, Promise.LAST: 4000,
    Promise.EXPLAINED: 5000, Promise.REHEARSED: 30,
}  # fmt: skip
"""Smallest number of tests of each promise: a world in which nothing happens proves nothing."""


@cache
def played(name: str) -> Worlds:
    worlds = Worlds(LONGER.get(name, HOURS))
    for seed in SEEDS:
        worlds.add(seed, play_world(rule_set(name), seed, worlds.hours))
    return worlds


def story(worlds: Worlds) -> str:
    return "\n".join(f"seed {seed}: {one.promise} at {one.at:g}: {one.rule}: {one.what}" for seed, one in worlds.broken)


@pytest.mark.parametrize("name", names())
def test_every_promise_is_kept(name: str) -> None:
    assert not played(name).broken, story(played(name))


@pytest.mark.parametrize("seed", range(12))
def test_rules_that_no_person_would_write_keep_every_promise_too(seed: int) -> None:
    result = play_world(drawn(seed), seed, 6)
    assert not result.broken, result.broken[0]


def test_it_was_a_thousand_hours_and_every_promise_was_put_to_the_test() -> None:
    all_ = [played(name) for name in names()]
    assert sum(len(worlds.seeds) * worlds.hours for worlds in all_) >= 1000
    tested = {promise: sum(worlds.tested[promise] for worlds in all_) for promise in Promise}
    assert all(tested[promise] >= least for promise, least in LEAST.items()), tested


@pytest.mark.parametrize("name", ["three_regions", "plain_clusters", "zones drilled", "limits", "taints"])
def test_a_world_written_down_and_played_again_is_the_same(name: str) -> None:
    first = play_world(rule_set(name), 5, 6)
    lines = [history.written(heard, fact) for heard, fact in first.history]
    again = history.load_history(lines, "world.jsonl").events
    assert [fact for _, fact in again] == [fact for _, fact in first.history]
    second = play_history(rule_set(name), again, 6 * 3600, first.truth)
    assert (second.tested, second.broken) == (first.tested, first.broken)


def test_the_same_seed_is_the_same_world_and_another_seed_another_one() -> None:
    who = cast(enforced(rule_set("whole_fleet")))
    one, same, other = (world(who, seed, 3600).events for seed in (1, 1, 2))
    assert one == same != other
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(one))


@pytest.mark.parametrize("name", ["active_passive", "directly", "zones", "limits"])
def test_a_reactor_that_crashes_at_every_step_does_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = play_world(rule_set(name), 3, 8)
    keep = GroupStore._keep

    def crashing(self: GroupStore, group: Group) -> None:
        keep(self, load_group(dump_group(group)))

    monkeypatch.setattr(GroupStore, "_keep", crashing)
    crashed = play_world(rule_set(name), 3, 8)
    assert crashed.history == whole.history
    assert not crashed.broken


@pytest.mark.parametrize("name", names())
def test_a_world_has_a_source_of_all_that_a_rule_watches(name: str) -> None:
    who = cast(rule_set(name))
    assert who.speakers
    from_members = {source.target for source in rule_set(name).sources if isinstance(source, Quorum)}
    assert {speaker.target for speaker in who.speakers} | from_members == set(who.tolerations) | from_members

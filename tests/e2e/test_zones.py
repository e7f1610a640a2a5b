"""A zone falls sick, is taken out of service step by step, and comes back as it was: the whole service."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.service import ROOT
from tests.e2e.waiting import until
from tests.e2e.zone_log import (
    batches,
    check_budgets,
    check_whole,
    evictions,
    node_writes,
    releases,
)
from tests.e2e.zone_objects import ZONES
from tests.e2e.zone_service import BAKE, RECOVERY, RULE, STEPS, TOLERATION, Zoned, is_at, zoned
from tests.e2e.zone_world import BALANCER_LABEL, LAME, NODES, SICK

EXTERNAL_NATS = ROOT / "docs/how-to/external-nats.md"

HEALTHY = [zone for zone in ZONES if zone != SICK]


@pytest.fixture
async def prod(tmp_path: Path) -> AsyncIterator[Zoned]:
    async with zoned(tmp_path) as found:
        yield found


@pytest.mark.timeout(240)
async def test_a_sick_zone_is_isolated_by_budget_and_comes_back_in_batches_as_it_was(prod: Zoned) -> None:
    before = prod.world.picture()
    failed = prod.fail()
    state = await prod.isolated()
    assert state.isolation is not None
    assert state.isolation.done == STEPS
    assert state.seen is not None
    assert state.seen.leases_expired == {SICK: 1 - 1 / NODES} | dict.fromkeys(HEALTHY, 0)
    assert prod.world.movable() == []
    rows = await prod.zones()
    assert (rows[SICK]["phase"], rows[SICK]["status"], rows[SICK]["done"]) == ("Failover", "Done", list(STEPS))
    assert {rows[zone]["status"] for zone in HEALTHY} == {""}

    first = min(write.at for write in prod.world.writes())
    assert first - failed >= TOLERATION, f"written {first - failed:.2f} s after the zone fell sick"
    assert {write.code for write in evictions(prod.world)} == {201, 429}, "one had to wait for its budget"
    taint = {"key": "reactor/isolated-zone", "value": ZONES[SICK], "effect": "NoSchedule"}
    for node in prod.world.nodes(SICK):
        labels, _, spec = prod.world.picture()[node]
        assert taint in spec["taints"]
        assert spec["unschedulable"] is True
        assert labels[BALANCER_LABEL] == ("theirs" if node == LAME else "true")

    mended = prod.mend()
    await prod.over()
    assert prod.world.picture() == before
    check_whole(prod.world)
    back = [write.at - mended for write in node_writes(prod.world) if write.at > mended]
    assert min(back) >= RECOVERY, f"written {min(back):.2f} s after the zone was well"
    assert batches(releases(prod.world), apart=BAKE) == [1, 1, 2]
    print(
        f"sick → first write {first - failed:.1f} s; well → first write {min(back):.1f} s, the last {max(back):.1f} s"
    )


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_node_that_joins_late_is_fenced_and_what_slipped_onto_it_leaves_by_one_action(prod: Zoned) -> None:
    """The round over a finished isolation is one action, asked for again and again: no decision for each."""
    prod.fail()
    await prod.isolated()
    prod.world.join("a5", SICK)
    slipped = prod.world.run_on("a5")
    joined = prod.world.prod.monotonic()

    def all_as_it_should_be() -> bool:
        labels, _, spec = prod.world.picture()["a5"]
        fenced = bool(spec.get("unschedulable")) and "reactor/isolated-zone" in str(spec.get("taints"))
        return fenced and BALANCER_LABEL in labels and slipped not in prod.world.movable()

    await until(all_as_it_should_be, "the late node is fenced and empty", within=60)
    print(f"joined → fenced, out of the load balancers and empty {prod.world.prod.monotonic() - joined:.1f} s")
    await prod.until(lambda state: state.isolation and "Maintained" in state.isolation.trouble, "it was gone over")
    (generation,) = [group.generation for group in await prod.service.groups() if group.rule == RULE]
    late = prod.world.run_on("a5")  # no node joins with this one: only the next round finds it
    appeared = prod.world.prod.monotonic()
    await until(
        lambda: late not in prod.world.movable(), "a pod that slipped in later leaves with the next round", within=90
    )
    print(f"slipped in → gone {prod.world.prod.monotonic() - appeared:.1f} s")
    assert [group.generation for group in await prod.service.groups() if group.rule == RULE] == [generation]
    check_budgets(prod.world)


KILLS = {
    "executor.before-write:2": "between being asked and doing it",
    "executor.after-write:2": "with the world changed and nobody told",
    "executor.outcome-published:2": "told, and not acknowledged",
    "decider.state-stored:2": "decided, and not asked for",
}
IN_CI = ("executor.after-write:2",)
"""Each takes minutes: the worst one always, all of them where REACTOR_ALL_KILLS is set (`make kills`)."""


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("failpoint", KILLS if "REACTOR_ALL_KILLS" in os.environ else IN_CI)
async def test_a_reactor_that_is_killed_at_every_step_ends_as_one_that_is_not(prod: Zoned, failpoint: str) -> None:
    """Each life gets one action further: the second time that it comes to the point, it dies."""
    before = prod.world.picture()
    prod.service.failpoint = failpoint
    await prod.service.kill()
    await prod.service.start()
    prod.fail()
    lives = await prod.lives_until(is_at("Failover", "Done"))
    assert prod.world.movable() == []
    prod.mend()
    lives += await prod.lives_until(lambda state: state.isolation is None)
    print(f"{lives} lives")
    assert lives > len(STEPS)
    assert prod.world.picture() == before
    check_whole(prod.world)

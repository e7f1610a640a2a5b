"""A zone falls sick, is taken out of service step by step, and comes back as it was: the whole service, in real time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.zone_log import batches, check_whole, evictions, node_writes, releases
from tests.e2e.zone_service import BAKE, RECOVERY, STEPS, TOLERATION, Zoned, zoned
from tests.e2e.zone_world import BALANCER_LABEL, LAME, SICK, ZONES


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
    assert prod.world.movable() == []
    rows = await prod.zones()
    assert (rows[SICK]["phase"], rows[SICK]["status"], rows[SICK]["done"]) == ("Failover", "Done", list(STEPS))
    assert {rows[zone]["status"] for zone in ZONES if zone != SICK} == {""}

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

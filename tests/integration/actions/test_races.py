"""People and processes that are quicker, and decisions that come late."""

from __future__ import annotations

import asyncio

from reactor.actions.traffic.route_weights import carry_out
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.runtime.clock import Clock
from tests.integration.actions.conftest import Connect
from tests.integration.actions.meddling import Meddled, once
from tests.integration.actions.scene import FAILOVER, STANDS, our_writes, standing
from tests.unit.actions.builders import set_weights, split


async def test_two_executors_with_one_decision_write_once(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi, connected: Connect
) -> None:
    east.create(split(STANDS))
    together = asyncio.Barrier(2)  # both have read before either writes
    pair = [Meddled(one, after_read=once(together.wait)) for one in (api, await connected("east"))]
    outcomes = await asyncio.gather(*(carry_out(one, set_weights(FAILOVER), Clock()) for one in pair))
    assert sorted((outcome.status, outcome.wrote) for outcome in outcomes) == [("Done", False), ("Done", True)]
    assert (our_writes(emulator), len(east.list("events", "shop"))) == (1, 1)


async def test_of_two_decisions_that_race_the_newer_one_is_kept(
    east: EmulatedCluster, api: KubeApi, connected: Connect
) -> None:
    east.create(split(STANDS))
    together = asyncio.Barrier(2)
    old = Meddled(api, after_read=once(together.wait))
    new = Meddled(await connected("east"), after_read=once(together.wait))
    _, newer = await asyncio.gather(
        carry_out(old, set_weights({"p": 3, "s": 7}), Clock()),
        carry_out(new, set_weights(FAILOVER, generation=2), Clock()),
    )
    assert (newer.status, standing(east)) == ("Done", [("p", 0), ("s", 1)])


async def test_an_older_decision_is_refused(emulator: Emulator, east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    await carry_out(api, set_weights(FAILOVER, generation=7), Clock())
    outcome = await carry_out(api, set_weights({"p": 1, "s": 0}, generation=6), Clock())
    assert (outcome.status, outcome.reason, our_writes(emulator)) == ("Refused", "Stale", 1)
    assert "generation 7" in outcome.detail


async def test_after_a_wiped_bus_the_next_generation_is_accepted(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    await carry_out(api, set_weights(FAILOVER, generation=7, epoch=900), Clock())
    outcome = await carry_out(api, set_weights({"p": 1, "s": 0}, generation=8, epoch=2), Clock())
    assert (outcome.status, outcome.wrote) == ("Done", True)


async def test_a_hand_edit_between_read_and_write_is_not_overwritten_blindly(
    east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(split([*STANDS, ("theirs", 0)]))

    async def edit() -> None:
        reordered = {
            "spec": {"backends": [{"service": s, "weight": w} for s, w in [("s", 0), ("theirs", 5), ("p", 1)]]}
        }
        east.patch("trafficsplits", "checkout", reordered, "shop", manager="kubectl")

    outcome = await carry_out(Meddled(api, after_read=once(edit)), set_weights(FAILOVER), Clock())
    assert outcome.status == "Done"
    assert standing(east) == [("s", 1), ("theirs", 5), ("p", 0)]


async def test_a_late_repeat_does_not_undo_a_hand_edit(emulator: Emulator, east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))
    await carry_out(api, set_weights(FAILOVER), Clock())
    by_hand = [{"op": "replace", "path": "/spec/backends/0/weight", "value": 50}]
    east.patch("trafficsplits", "checkout", by_hand, "shop", manager="kubectl")
    outcome = await carry_out(api, set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.reason, our_writes(emulator)) == ("Refused", "AlreadyDone", 1)
    assert standing(east) == [("p", 50), ("s", 1)]


async def test_a_route_deleted_between_read_and_write_is_gone(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(split(STANDS))

    async def delete() -> None:
        east.delete("trafficsplits", "checkout", "shop")

    outcome = await carry_out(Meddled(api, after_read=once(delete)), set_weights(FAILOVER), Clock())
    assert (outcome.status, outcome.reason) == ("Failed", "RouteNotFound")

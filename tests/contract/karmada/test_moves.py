"""Each move of carrier Karmada beside its scheduler: at every moment a copy is Ready where one could be."""

from __future__ import annotations

import pytest

from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime.clock import Clock
from tests.contract.karmada.cases import AGGREGATED, DYNAMIC, cancel, duplicated, evict, place, purge, weighted
from tests.contract.karmada.conftest import Carrier
from tests.karmada.planes import Plane

SINGLE = duplicated(1)


def moment() -> float:
    return Clock().now().timestamp()


async def test_the_single_healthy_copy_of_a_tainted_cluster_is_not_deleted_before_its_replacement_is_ready(
    plane: Plane, carrier: Carrier
) -> None:
    """The outage of K1: `Place` and `Evict` were two writes, and the scheduler answered the first one."""
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    since = moment()
    await plane.taints("m2", "reactor/brownout")
    placed = await carrier.do(place("single", {"m1": 2}, "m2"))
    assert (placed.status, placed.reason, placed.wrote) == ("Done", None, True)
    evicted = await carrier.do(evict("single", "m2", {"m1": 2}))
    assert (evicted.status, evicted.reason, evicted.wrote) == ("Done", None, False)
    assert (await plane.answered("single"), await plane.tasks("single")) == ({"m1": 2}, ["m2"])
    await plane.healthy("single", "m1", "m2")
    assert (await carrier.do(purge("single", "m2", generation=2))).status == "Done"
    assert (await plane.answered("single"), await plane.tasks("single")) == ({"m1": 2}, [])
    await plane.healthy("single", "m1")
    plane.never_out("single", since)


async def test_of_two_copies_the_one_on_the_living_cluster_is_not_taken_away(plane: Plane, carrier: Carrier) -> None:
    """The second outage of K1: copies on dead m1 and healthy m3, of which m3 comes last by name."""
    await plane.deploy("pair", duplicated(2), {"m1": 2, "m3": 2}, 2)
    since = moment()
    await plane.reachable("m1", yes=False)
    outcome = await carrier.do(place("pair", {"m2": 2, "m3": 2}, "m1"))
    assert (outcome.status, outcome.reason) == ("Done", None)
    assert (await plane.answered("pair"), await plane.tasks("pair")) == ({"m2": 2, "m3": 2}, ["m1"])
    plane.never_out("pair", since)


async def test_a_landing_place_that_is_not_the_first_by_name_is_kept(plane: Plane, carrier: Carrier) -> None:
    """Chosen because m1 is blocked: the scheduler, left to itself, would take m1."""
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    since = moment()
    outcome = await carrier.do(place("single", {"m3": 2}, "m2"))
    assert (outcome.status, outcome.reason) == ("Done", None)
    await plane.healthy("single", "m2", "m3")
    await carrier.do(purge("single", "m2", generation=2))
    assert await plane.answered("single") == {"m3": 2}
    plane.never_out("single", since)


async def test_replicas_that_are_divided_go_where_they_were_asked_to(plane: Plane, carrier: Carrier) -> None:
    await plane.deploy("div", weighted(m1=1, m2=2), {"m1": 1, "m2": 2}, 3)
    since = moment()
    outcome = await carrier.do(place("div", {"m1": 3}, "m2"))
    assert (outcome.status, outcome.reason) == ("Done", None)
    assert (await plane.answered("div"), await plane.tasks("div")) == ({"m1": 3}, ["m2"])
    await plane.healthy("div", "m1", "m2")
    await carrier.do(purge("div", "m2", generation=2))
    assert await plane.answered("div") == {"m1": 3}
    plane.never_out("div", since)


async def test_replicas_that_are_aggregated_too(plane: Plane, carrier: Carrier) -> None:
    await plane.deploy("agg", AGGREGATED, {"m2": 3}, 3)
    since = moment()
    assert (await carrier.do(place("agg", {"m3": 3}, "m2"))).reason is None
    assert (await plane.answered("agg"), await plane.tasks("agg")) == ({"m3": 3}, ["m2"])
    plane.never_out("agg", since)


async def test_a_directly_purged_copy_goes_first_and_its_replacement_is_where_it_was_asked_for(
    plane: Plane, carrier: Carrier
) -> None:
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    assert (await carrier.do(evict("single", "m2", {"m3": 2}, "Directly"))).reason is None
    assert (await carrier.do(place("single", {"m3": 2}, "m2", generation=2, mode="Directly"))).reason is None
    assert await plane.answered("single") == {"m3": 2}
    await plane.healthy("single", "m3")


async def test_a_cancelled_eviction_leaves_both_copies_where_the_policy_has_room(
    plane: Plane, carrier: Carrier
) -> None:
    await plane.deploy("all", duplicated(3), {"m1": 2, "m2": 2, "m3": 2}, 2)
    since = moment()
    assert (await carrier.do(evict("all", "m2", {"m1": 2, "m3": 2}))).reason is None
    assert (await carrier.do(cancel("all", "m2", generation=2))).reason is None
    assert (await plane.answered("all"), await plane.tasks("all")) == ({"m1": 2, "m2": 2, "m3": 2}, [])
    plane.never_out("all", since)


async def test_a_cancelled_eviction_gives_the_place_back_while_the_new_copy_is_not_healthy(
    plane: Plane, carrier: Carrier
) -> None:
    """K2, with room for one: what used to be written let the scheduler choose."""
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    plane.sick("m1", "single")
    since = moment()
    await carrier.do(place("single", {"m1": 2}, "m2"))
    outcome = await carrier.do(cancel("single", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Done", None)
    assert (await plane.answered("single"), await plane.tasks("single")) == ({"m2": 2}, [])
    plane.never_out("single", since)


async def test_a_cancelled_eviction_leaves_the_new_copy_where_it_is_healthy_and_there_is_room_for_one(
    plane: Plane, carrier: Carrier
) -> None:
    """K2: the healthy new copy was deleted 42 ms later."""
    await plane.deploy("single", SINGLE, {"m1": 2}, 2)
    since = moment()
    await carrier.do(place("single", {"m3": 2}, "m1"))
    await plane.healthy("single", "m1", "m3")
    outcome = await carrier.do(cancel("single", "m1", generation=2))
    assert (outcome.status, outcome.reason) == ("Done", "PlacedElsewhere")
    assert "m3=2" in outcome.detail
    assert (await plane.answered("single"), await plane.tasks("single")) == ({"m3": 2}, [])
    plane.never_out("single", since)


async def test_a_cancelled_eviction_of_divided_replicas_takes_them_back_from_who_is_not_healthy(
    plane: Plane, carrier: Carrier
) -> None:
    await plane.deploy("div", weighted(m1=1, m2=2), {"m1": 1, "m2": 2}, 3)
    plane.sick("m3", "div")
    since = moment()
    await carrier.do(place("div", {"m1": 1, "m3": 2}, "m2"))
    outcome = await carrier.do(cancel("div", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Done", None)
    assert (await plane.answered("div"), await plane.tasks("div")) == ({"m1": 1, "m2": 2}, [])
    plane.never_out("div", since)


async def test_while_no_copy_is_healthy_an_eviction_is_not_taken_back(plane: Plane, carrier: Carrier) -> None:
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    plane.sick("m3", "single")
    await carrier.do(place("single", {"m3": 2}, "m2"))
    await plane.reachable("m2", yes=False)
    outcome = await carrier.do(cancel("single", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Failed", "NoHealthyCopy")
    assert (await plane.where("single"), await plane.tasks("single")) == ({"m3": 2}, ["m2"])


async def test_the_last_healthy_copy_is_not_purged(plane: Plane, carrier: Carrier) -> None:
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    plane.sick("m1", "single")
    since = moment()
    await carrier.do(place("single", {"m1": 2}, "m2"))
    outcome = await carrier.do(purge("single", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Failed", "LastHealthyCopy")
    assert await plane.tasks("single") == ["m2"]
    plane.never_out("single", since)


async def test_a_copy_that_another_writer_has_put_elsewhere_meanwhile_is_not_crowded_out(
    plane: Plane, carrier: Carrier
) -> None:
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    task = {
        "fromCluster": "m2", "reason": "Hand", "producer": "somebody", "suppressDeletion": True,
        "creationTimestamp": "2100-01-01T00:00:00Z",
    }  # fmt: skip
    since = moment()
    clusters = [{"name": "m3", "replicas": 2}]
    await plane.change("single", {"clusters": clusters, "gracefulEvictionTasks": [task]})
    await plane.healthy("single", "m2", "m3")
    outcome = await carrier.do(place("single", {"m1": 2}, "m2"))
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Done", "PlacedElsewhere", False)
    assert "m3=2" in outcome.detail
    assert (await plane.answered("single"), await plane.tasks("single")) == ({"m3": 2}, ["m2"])
    plane.never_out("single", since)


DIVIDED_ON_ONE = [
    pytest.param(how | {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}, id=name)
    for name, how in {"aggregated": AGGREGATED, "dynamic": DYNAMIC}.items()
]


@pytest.mark.parametrize("placement", DIVIDED_ON_ONE)
@pytest.mark.parametrize("ends", ["purged", "cancelled"])
async def test_replicas_that_may_be_on_one_cluster_only_move_whole_and_never_all_at_once(
    plane: Plane, carrier: Carrier, placement: JsonObject, ends: str
) -> None:
    await plane.deploy("div", placement, {"m2": 3}, 3)
    since = moment()
    await plane.taints("m2", "reactor/brownout")
    assert (await carrier.do(place("div", {"m3": 3}, "m2"))).reason is None
    assert (await plane.answered("div"), await plane.tasks("div")) == ({"m3": 3}, ["m2"])
    await plane.healthy("div", "m2", "m3")
    ending = purge if ends == "purged" else cancel
    outcome = await carrier.do(ending("div", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Done", None if ends == "purged" else "PlacedElsewhere")
    assert (await plane.answered("div"), await plane.tasks("div")) == ({"m3": 3}, [])
    plane.never_out("div", since)


@pytest.mark.parametrize("ends", ["purged", "cancelled"])
async def test_a_target_that_a_person_changes_in_the_grace_period_costs_no_healthy_copy(
    plane: Plane, carrier: Carrier, ends: str
) -> None:
    """Between our two writes another writer sends the copy to m3, which is not Ready yet, instead of ours on m1."""
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    plane.sick("m3", "single")
    since = moment()
    assert (await carrier.do(place("single", {"m1": 2}, "m2"))).reason is None
    await plane.change("single", {"clusters": [{"name": "m3", "replicas": 2}]})
    assert await plane.answered("single") == {"m3": 2}
    await plane.healthy("single", "m2")
    if ends == "purged":
        outcome = await carrier.do(purge("single", "m2", generation=2))
        assert (outcome.status, outcome.reason) == ("Failed", "LastHealthyCopy")
        assert (await plane.answered("single"), await plane.tasks("single")) == ({"m3": 2}, ["m2"])
    else:
        assert (await carrier.do(cancel("single", "m2", generation=2))).status == "Done"
        assert (await plane.answered("single"), await plane.tasks("single")) == ({"m2": 2}, [])
    plane.never_out("single", since)


async def test_a_purged_cluster_that_gets_its_copy_back_is_said(plane: Plane, carrier: Carrier) -> None:
    """A policy without a limit wants every cluster: no block of ours stops the scheduler."""
    await plane.deploy("all", duplicated(), {"m1": 2, "m2": 2, "m3": 2}, 2)
    since = moment()
    await carrier.do(evict("all", "m2", {"m1": 2, "m3": 2}))
    outcome = await carrier.do(purge("all", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Done", "PlacedElsewhere")
    assert "m2=2" in outcome.detail
    plane.never_out("all", since)


async def test_a_refusal_of_the_scheduler_is_the_outcome(plane: Plane, carrier: Carrier) -> None:
    await plane.deploy("pair", duplicated(3, 3), {"m1": 2, "m2": 2, "m3": 2}, 2)
    since = moment()
    outcome = await carrier.do(evict("pair", "m2", {"m1": 2, "m3": 2}))
    assert (outcome.status, outcome.reason) == ("Failed", "SchedulerRefused")
    assert "MinGroups" in outcome.detail
    assert await plane.tasks("pair") == ["m2"]
    plane.never_out("pair", since)


async def test_a_silent_scheduler_is_waited_for_and_said_and_never_done(
    plane: Plane, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plane.deploy("single", SINGLE, {"m2": 2}, 2)
    since = moment()
    await plane.scheduler(runs=False)
    try:
        action = place("single", {"m1": 2}, "m2")
        first = await carrier.do(action)
        assert (first.status, first.reason, first.wrote) == ("Failed", "InProgress", True)
        monkeypatch.setattr("reactor.actions.karmada.answer.SILENT_SECONDS", 0)
        assert (await carrier.do(action)).reason == "SchedulerSilent"
        assert (await plane.where("single"), await plane.tasks("single")) == ({"m1": 2}, ["m2"])
    finally:
        await plane.scheduler(runs=True)

    async def is_done() -> bool:
        return (await carrier.do(action)).status == "Done"

    await plane.until(is_done, "the scheduler has answered", "single")
    plane.never_out("single", since)

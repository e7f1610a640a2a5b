"""Karmada's scheduler on a binding that another writer changes: the carrier relies on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactor.actions.karmada.answer import answered, scheduler_refusal
from tests.contract.karmada.cases import AGGREGATED, duplicated, weighted
from tests.karmada.emulated import emulated
from tests.karmada.planes import Plane

TASK = {
    "fromCluster": "m2", "reason": "Test", "producer": "test", "purgeMode": "Gracefully", "suppressDeletion": True,
    "creationTimestamp": "2100-01-01T00:00:00Z",
}  # fmt: skip


def entries(**sizes: int) -> list[dict[str, object]]:
    return [{"name": name, "replicas": size} for name, size in sizes.items()]


async def test_a_cluster_more_than_the_policy_allows_is_taken_away_by_name_be_its_copy_the_healthy_one(
    plane: Plane,
) -> None:
    await plane.deploy("single", duplicated(1), {"m2": 2}, 2)
    await plane.change("single", {"clusters": entries(m2=2, m1=2)})
    assert await plane.answered("single") == {"m1": 2}


async def test_a_target_and_an_eviction_task_in_one_write_are_left_alone(plane: Plane) -> None:
    await plane.deploy("single", duplicated(1), {"m2": 2}, 2)
    await plane.change("single", {"clusters": entries(m3=2), "gracefulEvictionTasks": [TASK]})
    assert (await plane.answered("single"), await plane.tasks("single")) == ({"m3": 2}, ["m2"])


async def test_without_a_limit_copies_go_wherever_no_eviction_is_under_way(plane: Plane) -> None:
    await plane.deploy("all", duplicated(), {"m1": 2, "m2": 2, "m3": 2}, 2)
    await plane.change("all", {"clusters": entries(m1=2), "gracefulEvictionTasks": [TASK]})
    assert await plane.answered("all") == {"m1": 2, "m3": 2}
    await plane.change("all", {"gracefulEvictionTasks": None})
    assert await plane.answered("all") == {"m1": 2, "m2": 2, "m3": 2}


async def test_a_divided_workload_whose_sum_is_right_is_left_alone(plane: Plane) -> None:
    await plane.deploy("div", weighted(m1=1, m2=2), {"m1": 1, "m2": 2}, 3)
    await plane.change("div", {"clusters": entries(m1=3), "gracefulEvictionTasks": [TASK]})
    assert await plane.answered("div") == {"m1": 3}
    assert answered(await plane.binding("div"))


async def test_a_divided_workload_whose_sum_is_another_is_divided_again_by_weights(plane: Plane) -> None:
    await plane.deploy("div", weighted(m1=1, m2=2), {"m1": 1, "m2": 2}, 3)
    await plane.change("div", {"clusters": entries(m1=1, m3=3)})
    assert await plane.answered("div") == {"m1": 1, "m2": 2}


async def test_an_aggregated_workload_keeps_what_it_has_and_gets_what_lacks(plane: Plane) -> None:
    await plane.deploy("agg", AGGREGATED, {"m2": 3}, 3)
    await plane.change("agg", {"clusters": entries(m2=1)})
    assert await plane.answered("agg") == {"m2": 3}


async def test_a_tainted_cluster_keeps_its_copy_and_gets_no_new_one(plane: Plane) -> None:
    await plane.deploy("single", duplicated(1), {"m2": 2}, 2)
    await plane.taints("m2", "reactor/brownout")
    await plane.taints("m1", "reactor/brownout")
    await plane.change("single", {"clusters": entries(m2=2), "replicas": 2})
    assert await plane.answered("single") == {"m2": 2}
    await plane.change("single", {"clusters": None})
    assert await plane.answered("single") == {"m3": 2}


@pytest.mark.parametrize("least", [2, 3])
async def test_too_few_clusters_leave_the_binding_and_set_a_condition(plane: Plane, least: int) -> None:
    await plane.deploy("many", duplicated(3, least), {"m1": 2, "m2": 2, "m3": 2}, 2)
    tasks = [TASK, {**TASK, "fromCluster": "m3"}]
    await plane.change("many", {"clusters": entries(m1=2), "gracefulEvictionTasks": tasks})
    assert await plane.answered("many") == {"m1": 2}
    binding = await plane.binding("many")
    assert not answered(binding)
    assert "MinGroups" in scheduler_refusal(binding)


async def test_a_binding_that_fits_no_cluster_is_emptied_but_tasks_hold_their_copies(plane: Plane) -> None:
    await plane.deploy("single", duplicated(1), {"m2": 2}, 2)
    for member in ("m1", "m3"):
        await plane.taints(member, "reactor/brownout")
    await plane.change("single", {"clusters": None, "gracefulEvictionTasks": [TASK]})
    assert await plane.answered("single") == {}
    assert scheduler_refusal(await plane.binding("single")).startswith("NoClusterFit")
    await plane.healthy("single", "m2")


async def test_a_scheduler_that_is_away_answers_when_it_is_back(plane: Plane) -> None:
    await plane.deploy("single", duplicated(1), {"m2": 2}, 2)
    await plane.scheduler(runs=False)
    try:
        await plane.change("single", {"clusters": entries(m3=2), "gracefulEvictionTasks": [TASK]})
        assert await plane.answered("single") == {"m3": 2}
        assert not answered(await plane.binding("single"))
        await plane.healthy("single", "m2", "m3")
    finally:
        await plane.scheduler(runs=True)

    async def back() -> bool:
        return answered(await plane.binding("single"))

    await plane.until(back, "the scheduler has answered")


async def test_what_became_of_each_workload_is_told_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pytest shows it where the test has failed."""
    async with emulated(tmp_path) as plane:
        await plane.deploy("shown", duplicated(1), {"m2": 2}, 2)
    [*_, last] = capsys.readouterr().out.strip().splitlines()
    assert last.endswith("clusters={'m2': 2} tasks=[] ready=['m2']")

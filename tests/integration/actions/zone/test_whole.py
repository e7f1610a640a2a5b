"""A whole failover and failback with a crash before and after every single write: both ends are always the same."""

from __future__ import annotations

from typing import Any

import pytest

from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster
from tests.integration.actions.zone.aws import Crash
from tests.integration.actions.zone.scene import CrashingApi, Hurried, Reactor, furnish, picture, third

SETTINGS = {"network": {"provider": "LabelledNetworkPolicy"}, "drainSeconds": 5}
WRITES_THERE = 12
"""Four fences, three load-balancer labels, three evictions, a policy, and a label on the one pod that stays."""
WRITES_BACK = 13
"""The label, the policy, three load-balancer labels, four fences, and the four notes that paced them."""


def reactor(api: KubeApi) -> Reactor:
    return Reactor({"prod": api}, Hurried(), SETTINGS)


@pytest.fixture
def isolated() -> dict[str, Any]:
    """State at the end of every failover: put together by hand from the scene."""
    return isolated_by("prod-zones")


def isolated_by(rule: str) -> dict[str, Any]:
    mark = "use1-az6"
    fence = {"key": "reactor/isolated-zone", "value": mark, "effect": "NoSchedule"}
    ours = {"reactor/isolated-by": rule}
    cordoned, excluded = {"reactor/cordoned-by-isolation": mark}, {"reactor/excluded-by-isolation": mark}
    return {
        "a1": ([fence], True, ours | cordoned | excluded),
        "a2": ([{"key": "gpu", "effect": "NoSchedule"}, fence], True, ours | cordoned | excluded),
        "a3": ([fence], True, ours | excluded),
        "a4": ([fence], True, ours | cordoned),
        "b1": ([], False, {}),
        "c1": ([], False, {}),
    }


def node_marks(cluster: EmulatedCluster) -> dict[str, Any]:
    return {
        name: (spec.get("taints", []), spec.get("unschedulable", False), notes)
        for name, (_, notes, spec) in picture(cluster)[0].items()
    }


def check_isolated(cluster: EmulatedCluster, isolated: dict[str, Any]) -> None:
    nodes, running, policies = picture(cluster)
    assert node_marks(cluster) == isolated
    label = "node.kubernetes.io/exclude-from-external-load-balancers"
    assert {name: labels.get(label) for name, (labels, _, _) in nodes.items()} == {
        "a1": "true", "a2": "true", "a3": "true", "a4": "mine", "b1": None, "c1": None,
    }  # fmt: skip
    assert set(running) == {"shop/web-1", "shop/log-a1", "shop/log-b1", "kube-system/proxy", "shop/batch"}
    assert running["shop/log-a1"] == {"reactor/isolated-zone": "use1-az6"}
    assert policies == ["shop/reactor-isolated-use1-az6"]


def after_evacuation(before: Any) -> Any:
    nodes, running, policies = before
    return (
        nodes,
        {name: labels for name, labels in running.items() if name[-4:] not in ("eb-0", "db-0", "db-1")},
        policies,
    )


async def test_a_zone_leaves_and_comes_back_as_it_was(
    east: EmulatedCluster, api: KubeApi, isolated: dict[str, Any]
) -> None:
    furnish(east)
    before = picture(east)
    there, back = CrashingApi(api), CrashingApi(api)
    await reactor(there).failover()
    check_isolated(east, isolated)
    await reactor(back).failback()
    assert picture(east) == after_evacuation(before)
    assert (len(there.writes), len(back.writes)) == (WRITES_THERE, WRITES_BACK)  # so that none is left out below


async def test_repeating_a_whole_failover_or_failback_writes_nothing(east: EmulatedCluster, api: KubeApi) -> None:
    furnish(east)
    await reactor(api).failover()
    there = CrashingApi(api)
    await reactor(there).failover()
    await reactor(api).failback()
    back = CrashingApi(api)
    await reactor(back).failback()
    assert (there.writes, back.writes) == ([], [])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", third(WRITES_THERE))
async def test_a_crash_in_the_failover_changes_neither_end(
    east: EmulatedCluster, api: KubeApi, isolated: dict[str, Any], at: int, after: bool
) -> None:
    furnish(east)
    before = picture(east)
    with pytest.raises(Crash):
        await reactor(CrashingApi(api, at, after)).failover()
    await reactor(api).failover()
    check_isolated(east, isolated)
    await reactor(api).failback()
    assert picture(east) == after_evacuation(before)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", third(WRITES_BACK))
async def test_a_crash_in_the_failback_changes_neither_end(
    east: EmulatedCluster, api: KubeApi, at: int, after: bool
) -> None:
    furnish(east)
    before = picture(east)
    await reactor(api).failover()
    with pytest.raises(Crash):
        await reactor(CrashingApi(api, at, after)).failback()
    await reactor(api).failback()
    assert picture(east) == after_evacuation(before)


@pytest.mark.parametrize("at", range(0, WRITES_THERE, 2))
async def test_an_abort_anywhere_gives_back_what_was_taken(east: EmulatedCluster, api: KubeApi, at: int) -> None:
    furnish(east)
    before = picture(east)
    with pytest.raises(Crash):
        await reactor(CrashingApi(api, at, after=True)).failover()
    await reactor(api).failback()
    nodes, running, policies = picture(east)
    assert (nodes, policies) == (before[0], before[2])
    assert all(labels == before[1][name] for name, labels in running.items())


@pytest.mark.parametrize("at", range(0, WRITES_BACK, 3))
async def test_a_zone_that_fails_again_on_its_way_back_is_isolated_again(
    east: EmulatedCluster, api: KubeApi, isolated: dict[str, Any], at: int
) -> None:
    furnish(east)
    before = picture(east)
    await reactor(api).failover()
    with pytest.raises(Crash):
        await reactor(CrashingApi(api, at, after=True)).failback()
    await reactor(api).failover()
    assert {name: (taints, off) for name, (taints, off, _) in node_marks(east).items()} == {
        name: (taints, off) for name, (taints, off, _) in isolated.items()
    }
    await reactor(api).failback()
    assert picture(east) == after_evacuation(before)

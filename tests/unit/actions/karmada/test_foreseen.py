"""The choice of Karmada's scheduler is known before anything is written, where it chooses regions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.actions.karmada.foreseen import WouldMove, refuse_if_lost, spread_by_region
from reactor.actions.karmada.tasks import BindingPlacement
from reactor.clients.kubernetes_port import JsonObject
from tests.karmada.scheduler import NoClusterFits, Unschedulable, spread

NAMES = ("a1", "a2", "b1", "b2", "b3", "c1")


def cluster(name: str, *taints: str, room: int = 200) -> JsonObject:
    keys = [{"key": key, "effect": "NoExecute"} for key in taints]
    return {
        "metadata": {"name": name}, "spec": {"region": name[0], "taints": keys},
        "status": {"resourceSummary": {"allocatable": {"pods": str(room), "cpu": "4"}}},
    }  # fmt: skip


def bound(*names: str, tasks: tuple[str, ...] = (), regions: int = 1, clusters: int = 1, **more: Any) -> JsonObject:
    limits = (("region", regions), ("cluster", clusters))
    constraints = [{"spreadByField": field, "minGroups": count, "maxGroups": count} for field, count in limits]
    placement = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}, "spreadConstraints": constraints}
    evictions = [{"fromCluster": name, "suppressDeletion": True} for name in tasks]
    spec = {
        "replicas": 2, "placement": placement, "clusters": [{"name": name, "replicas": 2} for name in names],
        "gracefulEvictionTasks": evictions,
    }  # fmt: skip
    return {"metadata": {"name": "web"}, "spec": spec | more}


def becomes(*names: str, tasks: tuple[str, ...] = ()) -> BindingPlacement:
    spec = bound(*names, tasks=tasks)["spec"]
    return BindingPlacement(spec["clusters"], spec["gracefulEvictionTasks"])


FLEET = [cluster(name) for name in NAMES]


def test_a_copy_in_a_smaller_region_is_not_left_alone_with_the_scheduler() -> None:
    now, after = bound("a1", tasks=("b1",)), becomes("a1")
    with pytest.raises(WouldMove, match="take it to b1"):
        refuse_if_lost(now, after, FLEET, ["a1"])
    assert refuse_if_lost(now, after, FLEET, []) == after, "nothing is Healthy, nothing is lost"
    assert refuse_if_lost(now, after, FLEET, ["a1", "b1"]) == after, "the old one is listed again, and stays"


def test_a_copy_that_a_task_holds_is_not_lost() -> None:
    now, after = bound("b1", "b2", tasks=()), becomes("a1", tasks=("b1",))
    assert refuse_if_lost(now, after, FLEET, ["b1"]) == after


def test_what_has_no_room_or_is_tainted_is_no_rival() -> None:
    now, after = bound("a1", tasks=("b1",)), becomes("a1")
    full = [cluster(name, room=200 if name[0] == "a" else 1) for name in NAMES]
    assert refuse_if_lost(now, after, full, ["a1"]) == after
    tainted = [cluster(name, *(["brownout"] if name[0] == "b" else [])) for name in NAMES]
    assert refuse_if_lost(now, after, tainted, ["a1"]) == after
    small = bound("a1", tasks=("b1",), replicaRequirements={"resourceRequest": {"cpu": "3"}})
    assert refuse_if_lost(small, after, FLEET, ["a1"]) == after, "two replicas of three CPUs fit nowhere else"


def test_what_does_not_serve_the_workloads_kind_is_no_rival() -> None:
    """Else an eviction to a smaller region would never end where the larger one cannot run the workload at all."""
    now, after = bound("a1", tasks=("b1",), resource={"apiVersion": "shop.io/v1", "kind": "Shop"}), becomes("a1")
    apps = {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}
    shops = {"groupVersion": "shop.io/v1", "resources": [{"kind": "Shop"}]}

    def serving(*regions: str) -> list[JsonObject]:
        made = [cluster(name) for name in NAMES]
        for one in made:
            one["status"]["apiEnablements"] = [apps, shops] if one["spec"]["region"] in regions else [apps]
        return made

    assert refuse_if_lost(now, after, serving("a"), ["a1"]) == after
    assert refuse_if_lost(now, after, serving(), ["a1"]) == after, "where it is listed it stays"
    with pytest.raises(WouldMove):
        refuse_if_lost(now, after, serving("a", "b"), ["a1"])


def test_divided_replicas_and_policies_without_regions_are_left_to_the_numbers() -> None:
    divided = bound("a1")
    divided["spec"]["placement"]["replicaScheduling"]["replicaSchedulingType"] = "Divided"
    clusters_only = bound("a1")
    del clusters_only["spec"]["placement"]["spreadConstraints"][0]
    nothing: JsonObject = {"metadata": {}, "spec": {}}
    for one in (divided, clusters_only, nothing):
        assert not spread_by_region(one)
        assert refuse_if_lost(one, becomes("a2"), FLEET, ["a1", "a2"]) == becomes("a2")


def test_a_policy_whose_words_are_not_known_allows_everything() -> None:
    odd = bound("a1", tasks=("b1",))
    odd["spec"]["placement"]["clusterTolerations"] = [{"key": "x", "operator": "Newer"}]
    with pytest.raises(WouldMove):
        refuse_if_lost(odd, becomes("a1"), [cluster(name, "x") for name in NAMES], ["a1"])


@given(
    listed=st.sets(st.sampled_from(NAMES), min_size=1, max_size=3), evicted=st.sampled_from(NAMES),
    tainted=st.sets(st.sampled_from(NAMES)), regions=st.integers(1, 2), clusters=st.integers(1, 3),
)  # fmt: skip
def test_it_is_refused_exactly_where_karmadas_scheduler_would_take_the_last_one_away(
    listed: set[str], evicted: str, tainted: set[str], regions: int, clusters: int
) -> None:
    fleet = [cluster(name, *(["brownout"] if name in tainted else [])) for name in NAMES]
    kept = listed - {evicted} or {"c1"}
    now = bound(*sorted(kept), tasks=(evicted,), regions=regions, clusters=max(clusters, regions))
    after = becomes(*sorted(kept))
    healthy = min(kept)
    try:
        answer = {*spread({**now["spec"], "gracefulEvictionTasks": []}, fleet)}
    except (Unschedulable, NoClusterFits):
        answer = {*kept}
    try:
        refuse_if_lost(now, after, fleet, [healthy])
        refused = False
    except WouldMove:
        refused = True
    assert refused == (healthy not in answer), answer

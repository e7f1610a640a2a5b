"""What each action makes of a binding: Karmada's own cases, and ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Taint
from reactor.actions.karmada.binding import dialect_in
from reactor.actions.karmada.clusters import added, removed
from reactor.actions.karmada.tasks import Dialect, Placement, cancelled, copies, evicted, placed, purged, task_for
from reactor.actions.outcomes import Unfit
from reactor.clients.port import JsonObject
from tests.unit.actions.workload.builders import evict

CASES: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data/karmada/cases.json").read_text("utf-8"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def cases(group: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES[group]["cases"]])


def clusters(**sizes: int) -> list[JsonObject]:
    return [{"name": name, "replicas": size} for name, size in sizes.items()]


def task(name: str, **more: Any) -> JsonObject:
    return {"fromCluster": name, "reason": "TaintUntolerated", "producer": "TaintManager", **more}


@cases("evict_cluster")
def test_evicting_a_cluster_as_karmada_does(case: Any) -> None:
    before = Placement(clusters(**case["clusters"]), [task(name) for name in case["tasks"]])
    after = evicted(before, task(case["cluster"]))
    assert after.clusters == clusters(**case["expect_clusters"])
    found = [{"from": one["fromCluster"], "replicas": one.get("replicas")} for one in after.tasks]
    assert found == case["expect_tasks"]


@cases("copies_to_keep")
def test_copies_that_are_kept_as_karmada_keeps_them(case: Any) -> None:
    tasks = [task(one["from"], **({"purgeMode": one["purge"]} if one["purge"] else {})) for one in case["tasks"]]
    spec = {
        "clusters": [{"name": name} for name in case["clusters"]],
        "requiredBy": [{"name": "x", "clusters": [{"name": name} for name in case["required_by"]]}],
        "gracefulEvictionTasks": tasks,
    }
    assert sorted(copies(spec)) == case["expect"]


@pytest.mark.parametrize("word", ["Directly", "Immediately"])
def test_a_copy_that_is_purged_directly_is_not_kept(word: str) -> None:
    assert copies({"gracefulEvictionTasks": [task("m1", purgeMode=word)]}) == frozenset()


@cases("taint_set_ops")
def test_taints_are_put_on_and_taken_off_as_karmada_does(case: Any) -> None:
    def stamp(seconds: int) -> str:
        return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def standing(taints: Any) -> list[JsonObject]:
        return [{"key": t["key"], "effect": t["effect"], "timeAdded": stamp(t["added_s"])} for t in taints]

    have = standing(case["have"])
    if case["op"] == "add":
        found = added(have, [Taint(key=t["key"], effect=t["effect"]) for t in case["want"]], at=NOW)
    else:
        found = removed(have, [(t["key"], t["effect"]) for t in case["want"]])
    assert found == standing(case["expect"])


@pytest.mark.parametrize(
    ("mode", "grace", "expired", "expected"),
    [
        ("Directly", None, "Keep", {"purgeMode": "Directly"}),
        ("Gracefully", 100, "Purge", {"purgeMode": "Gracefully", "gracePeriodSeconds": 100}),
        ("Gracefully", 100, "Keep", {"purgeMode": "Gracefully", "suppressDeletion": True}),
        ("Gracefully", None, "Purge", {"purgeMode": "Gracefully", "suppressDeletion": True}),
        ("Never", None, "Keep", {"purgeMode": "Never", "suppressDeletion": True}),
        ("Never", 100, "Purge", {"purgeMode": "Never", "suppressDeletion": True}),
    ],
)
def test_a_task_says_how_the_copy_leaves_and_gives_karmada_a_timer_only_where_it_may_purge(
    mode: str, grace: int | None, expired: str, expected: JsonObject
) -> None:
    action = evict("m1", mode, grace_period_seconds=grace, on_grace_expired=expired, carrier="Karmada")
    found = task_for(action, Dialect())
    fields = ("purgeMode", "gracePeriodSeconds", "suppressDeletion")
    assert {key: found[key] for key in fields if key in found} == expected
    assert (found["producer"], found["fromCluster"]) == ("alert-reactor", "m1")


@pytest.mark.parametrize(
    ("modes", "said"),
    [
        (frozenset({"Directly", "Gracefully", "Never"}), "Gracefully"),
        (frozenset({"Immediately", "Graciously", "Never"}), "Graciously"),
        (frozenset({"Immediately", "Graciously", "Directly", "Gracefully", "Never"}), "Gracefully"),
        (None, None),
    ],
)
def test_a_task_speaks_the_words_of_its_control_plane(modes: frozenset[str] | None, said: str | None) -> None:
    assert task_for(evict("m1"), Dialect(modes)).get("purgeMode") == said


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({}, Dialect()),
        ({"fromCluster": {}}, Dialect(None, suppresses=False, preserves=False)),
        ({"purgeMode": {"type": "string"}, "suppressDeletion": {}}, Dialect(preserves=False)),
        (
            {"purgeMode": {"enum": ["Never"]}, "suppressDeletion": {}, "preservedLabelState": {}},
            Dialect(frozenset({"Never"})),
        ),
    ],
)
def test_the_definition_says_what_a_task_may_hold(fields: JsonObject, known: Dialect) -> None:
    tasks = {"items": {"properties": fields}}
    schema = {"properties": {"spec": {"properties": {"gracefulEvictionTasks": tasks}}}}
    version = {"name": "v1alpha2", "schema": {"openAPIV3Schema": schema}}
    assert dialect_in({"spec": {"versions": [version]}}) == known


@pytest.mark.parametrize("because", ["no such code!", "x" * 40 + "-", "9lives"])
def test_a_reason_that_the_definition_refuses_is_replaced(because: str) -> None:
    assert task_for(evict("m1", because=because), Dialect())["reason"] in ("Evicted", "x" * 32)


def test_placing_takes_no_cluster_out() -> None:
    now = Placement(clusters(m1=2, m2=1), [])
    assert placed(now, {"m2": 2, "m3": 1}, sized=True).clusters == clusters(m1=2, m2=2, m3=1)


def test_kinds_without_replicas_get_none() -> None:
    assert placed(Placement([], []), {"m1": 1}, sized=False).clusters == [{"name": "m1"}]


@pytest.mark.parametrize("mode", ["Gracefully", "Never"])
def test_a_copy_that_must_stay_does_not_leave_on_a_control_plane_that_would_remove_it_by_itself(mode: str) -> None:
    old = Dialect(None, suppresses=False)
    with pytest.raises(Unfit, match="upgrade it"):
        task_for(evict("m1", mode, carrier="Karmada"), old)
    assert "suppressDeletion" not in task_for(evict("m1", "Directly", carrier="Karmada"), old)


def test_a_task_carries_state_for_a_cluster_that_did_not_hold_the_workload_before() -> None:
    found = task_for(evict("m1", "Directly", preserved={"job": "7"}, carrier="Karmada"), Dialect())
    (made,) = evicted(Placement(clusters(m1=2, m2=1), []), found).tasks
    assert (made["preservedLabelState"], made["clustersBeforeFailover"]) == ({"job": "7"}, ["m1", "m2"])
    with pytest.raises(Unfit, match="remove statePreservation"):
        task_for(evict("m1", "Directly", preserved={"job": "7"}, carrier="Karmada"), Dialect(preserves=False))


def test_a_purge_ends_the_task_however_it_was_held() -> None:
    tasks = [task("m1", suppressDeletion=True), task("m2", gracePeriodSeconds=9), task("m3")]
    assert purged(Placement([], tasks), "m1").tasks == tasks[1:]
    assert purged(Placement([], tasks), "m2").tasks == [tasks[0], tasks[2]]
    assert purged(Placement(clusters(m4=1), []), "m4").clusters == []


sizes = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9), max_size=5)


@given(sizes, st.sampled_from("abcde"))
def test_an_eviction_and_its_cancelling_leave_the_placement_as_it_was(has: dict[str, int], name: str) -> None:
    before = Placement(clusters(**has), [])
    after = cancelled(evicted(before, task(name)), name)
    assert (sorted(after.clusters, key=repr), after.tasks) == (sorted(before.clusters, key=repr), [])


@given(sizes, sizes, st.sampled_from("abcde"))
def test_every_move_twice_is_as_once(has: dict[str, int], wanted: dict[str, int], name: str) -> None:
    now = evicted(Placement(clusters(**has), [task("a", suppressDeletion=True)]), task("b"))
    for once in (evicted(now, task(name)), purged(now, name), cancelled(now, name), placed(now, wanted, sized=True)):
        assert evicted(once, task(name)) == evicted(evicted(once, task(name)), task(name))
    assert purged(purged(now, name), name) == purged(now, name)
    assert cancelled(cancelled(now, name), name) == cancelled(now, name)
    assert placed(placed(now, wanted, sized=True), wanted, sized=True) == placed(now, wanted, sized=True)

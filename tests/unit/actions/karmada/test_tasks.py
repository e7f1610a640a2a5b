"""Effect of each action on a binding: Karmada's own cases, and ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bus.messages import Evict, Taint
from reactor.actions.karmada.binding import dialect_in
from reactor.actions.karmada.cluster_taints import added, removed
from reactor.actions.karmada.moves import moved
from reactor.actions.karmada.tasks import BindingPlacement, Dialect, copies, held_by_us
from reactor.actions.karmada.tasks import task_for as task_for_
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from rules.kinds.workload.karmada_room import Limits
from tests.unit.actions.workload.builders import evict

CASES: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data/karmada/cases.json").read_text("utf-8"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def cases(group: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES[group]["cases"]])


def clusters(**sizes: int) -> list[JsonObject]:
    return [{"name": name, "replicas": size} for name, size in sizes.items()]


def task(name: str, **more: Any) -> JsonObject:
    return {"fromCluster": name, "reason": "TaintUntolerated", "producer": "TaintManager", **more}


def task_for(action: Evict, dialect: Dialect) -> JsonObject:
    return task_for_(action, action, dialect)


def evicted(now: BindingPlacement, leaves: JsonObject) -> BindingPlacement:
    """Placement after an Evict without any limit."""
    return moved(now, {}, [leaves], Limits())


@cases("evict_cluster")
def test_evicting_a_cluster_as_karmada_does(case: Any) -> None:
    before = BindingPlacement(clusters(**case["clusters"]), [task(name) for name in case["tasks"]])
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
        ("Gracefully", 100, "Purge", {"purgeMode": "Gracefully", "suppressDeletion": True}),
        ("Gracefully", 100, "Keep", {"purgeMode": "Gracefully", "suppressDeletion": True}),
        ("Gracefully", None, "Purge", {"purgeMode": "Gracefully", "suppressDeletion": True}),
        ("Never", None, "Keep", {"purgeMode": "Never", "suppressDeletion": True}),
        ("Never", 100, "Purge", {"purgeMode": "Never", "suppressDeletion": True}),
    ],
)
def test_a_task_says_how_the_copy_leaves_and_gives_karmada_no_timer(
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


@pytest.mark.parametrize("mode", ["Gracefully", "Never"])
def test_a_copy_that_must_stay_does_not_leave_on_a_control_plane_that_would_remove_it_by_itself(mode: str) -> None:
    old = Dialect(None, suppresses=False)
    with pytest.raises(Declined, match="upgrade it"):
        task_for(evict("m1", mode, carrier="Karmada"), old)
    assert "suppressDeletion" not in task_for(evict("m1", "Directly", carrier="Karmada"), old)
    may = evict("m1", grace_period_seconds=100, on_grace_expired="Purge", carrier="Karmada")
    assert task_for(may, old)["gracePeriodSeconds"] == 100


def test_a_task_carries_state_for_a_cluster_that_did_not_hold_the_workload_before() -> None:
    found = task_for(evict("m1", "Directly", preserved={"job": "7"}, carrier="Karmada"), Dialect())
    (made,) = evicted(BindingPlacement(clusters(m1=2, m2=1), []), found).tasks
    assert (made["preservedLabelState"], made["clustersBeforeFailover"]) == ({"job": "7"}, ["m1", "m2"])
    with pytest.raises(Declined, match="remove statePreservation"):
        task_for(evict("m1", "Directly", preserved={"job": "7"}, carrier="Karmada"), Dialect(preserves=False))


def test_only_our_own_tasks_that_wait_for_us_are_ours() -> None:
    tasks = [
        task("m1", producer="alert-reactor", purgeMode="Gracefully"), task("m2", purgeMode="Gracefully"),
        task("m3", producer="alert-reactor", purgeMode="Never"), task("m4", producer="alert-reactor"),
        task("m5", producer="alert-reactor", purgeMode="Directly"),
    ]  # fmt: skip
    assert held_by_us({"gracefulEvictionTasks": tasks}) == {"m1", "m4"}

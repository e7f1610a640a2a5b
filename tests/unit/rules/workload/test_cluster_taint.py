"""A signal puts a taint on a cluster, and the taint moves what does not tolerate it."""

from __future__ import annotations

from typing import Any

from tests.unit.rules.builders import Event
from tests.unit.rules.workload.builders import acts, cluster, clusters, happens, placement, workload, workload_rule

TAINT = {"key": "reactor/brownout", "effect": "NoExecute"}
SHOWN = [{"key": "reactor/brownout", "value": "", "effect": "NoExecute"}]


def taint_rule(**keys: Any) -> dict[str, Any]:
    return {
        "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*", "signals": ["brownout"],
        "tolerationSeconds": 100, "recoverySeconds": 50, "taints": [TAINT],
    } | keys  # fmt: skip


def dim(name: str, status: str, *, at: float) -> Event:
    return cluster(name, status, at=at, signal="brownout")


def test_the_taint_comes_after_the_toleration_and_goes_after_the_recovery() -> None:
    events = [dim("east", "Healthy", at=0), dim("east", "Unhealthy", at=10), dim("east", "Healthy", at=200)]
    assert acts(taint_rule(), *events) == [(110.0, "SetTaints", SHOWN), (250.0, "SetTaints", [])]


def test_a_cluster_that_was_always_well_is_not_touched() -> None:
    assert acts(taint_rule(), dim("east", "Healthy", at=0), dim("east", "Unknown", at=50)) == []


def test_other_signals_do_not_count() -> None:
    assert acts(taint_rule(), cluster("east", "Unhealthy", at=0)) == []


def test_the_taint_is_timed_from_when_it_was_due_and_taken_off_with_what_stood_before() -> None:
    events = [dim("east", "Unhealthy", at=10), dim("east", "Healthy", at=200)]
    put, off = (one.what for one in happens(taint_rule(), *events))
    assert getattr(put, "taints")[0].time_added.timestamp() == 110  # noqa: B009
    assert getattr(off, "before") == getattr(put, "taints")  # noqa: B009


def test_workloads_leave_a_tainted_cluster_by_their_own_tolerations() -> None:
    moves = workload_rule(placement=placement("m1", "m2", tolerate=30), failover={"cluster": {}}, signals=["ready"])
    ready = [cluster(name, "Healthy", at=0, signal="ready") for name in ("m1", "m2")]
    events = [workload({"m1": 2}, replicas=2), *ready, dim("m1", "Healthy", at=0), dim("m1", "Unhealthy", at=10)]
    came = acts([taint_rule(), moves], *events, until=500)
    assert came == [
        (110.0, "SetTaints", SHOWN), (140.0, "Place", {"m2": 2}), (140.0, "Evict", "m1"),
    ]  # fmt: skip


def test_they_stay_when_the_taint_is_taken_off_in_time() -> None:
    moves = workload_rule(placement=placement("m1", "m2", tolerate=100), failover={"cluster": {}}, signals=["ready"])
    ready = [cluster(name, "Healthy", at=0, signal="ready") for name in ("m1", "m2")]
    events = [*ready, dim("m1", "Unhealthy", at=10), dim("m1", "Healthy", at=120)]
    came = acts([taint_rule(), moves], workload({"m1": 2}, replicas=2), *events)
    assert came == [(110.0, "SetTaints", SHOWN), (170.0, "SetTaints", [])]


def test_a_rehearsed_taint_moves_nothing() -> None:
    moves = workload_rule(placement=placement("m1", "m2", tolerate=0), failover={"cluster": {}}, signals=["ready"])
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), dim("m1", "Unhealthy", at=10)]
    came = acts([taint_rule(mode="DryRun"), moves], *events)
    assert came == [(110.0, "SetTaints", SHOWN)]

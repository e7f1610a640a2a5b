"""Bindings, Clusters and policies as facts: whatever a server answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health
from reactor.clients.kubernetes_port import JsonObject
from reactor.sources.kubernetes.karmada_projection import (
    PolicyKey,
    cluster_of,
    health_of,
    policy_of,
    project_binding,
    project_cluster,
    project_policy,
    ready_of,
    workload_of,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = [
    "metadata", "spec", "status", "resource", "kind", "name", "clusters", "replicas", "aggregatedStatus", "clusterName",
    "health", "taints", "key", "effect", "timeAdded", "zones", "conditions", "type", "resourceSummary", "allocatable",
    "pods", "labels", "requiredBy", "gracefulEvictionTasks", "fromCluster",
]  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["x", "", "Ready", "NoExecute", "Healthy", "9" * 300]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=30,
)
objects = st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), anything, max_size=3)


@given(objects)
def test_whatever_a_server_answers_breaks_nothing(found: JsonObject) -> None:
    binding = project_binding(found)
    workload = workload_of(binding, None, at=AT)
    if workload is not None:
        assert [*health_of(binding, workload, at=AT)] == [*health_of(found, workload, at=AT)]
    project_policy(found)
    small = project_cluster(found)
    cluster = cluster_of(small, at=AT)
    assert cluster == cluster_of(found, at=AT)
    if cluster is not None:
        assert ready_of(small, cluster.name, at=AT).status in Health


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({"propagationpolicy.karmada.io/namespace": "shop", "propagationpolicy.karmada.io/name": "p"}, ("shop", "p")),
        ({"clusterpropagationpolicy.karmada.io/name": "p"}, ("", "p")),
        ({"other": "p"}, None),
    ],
)
@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_a_binding_names_its_policy_in_annotations_or_in_labels(notes: Any, expected: Any, where: str) -> None:
    found = policy_of({"metadata": {where: notes}})
    assert found == (PolicyKey(*expected) if expected else None)


@pytest.mark.parametrize(
    ("summary", "room"),
    [
        ({"allocatable": {"pods": "110"}, "allocated": {"pods": "40"}}, 70),
        ({"allocatable": {"pods": "1k"}, "allocated": {"pods": "1"}, "allocating": {"pods": "9"}}, 990),
        ({"allocatable": {"pods": "10"}, "allocated": {"pods": "40"}}, 0),
        ({"allocatable": {"cpu": "4"}}, None),
        ({"allocatable": {"pods": "many"}}, None),
        (None, None),
    ],
)
def test_room_is_what_pods_are_left(summary: Any, room: int | None) -> None:
    found = cluster_of({"metadata": {"name": "m1"}, "status": {"resourceSummary": summary}}, at=AT)
    assert found is not None
    assert found.available_replicas == room


def test_a_taint_without_a_time_is_told_without_one() -> None:
    taints = [{"key": "k", "effect": "NoExecute"}, {"key": "k", "effect": "Sometimes"}, {"effect": "NoExecute"}]
    found = cluster_of({"metadata": {"name": "m1"}, "spec": {"taints": taints}}, at=AT)
    assert found is not None
    assert [(one.key, one.time_added) for one in found.taints] == [("k", None)]

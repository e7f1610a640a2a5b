"""The table of health by kind: what Karmada says of the same object, and what we say where it says nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health
from reactor.sources.kubernetes.workload_health import RULES, judge

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
GROUP = {kind: group for group, kind in RULES}


def found(status: Any = None, spec: Any = None, generation: Any = 3) -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": "x", "generation": generation}}
    return made | {key: value for key, value in (("spec", spec), ("status", status)) if value is not None}


def rollout(updated: int, available: int, *, replicas: int | None = 3, observed: int = 3) -> dict[str, Any]:
    status = {"observedGeneration": observed, "updatedReplicas": updated, "availableReplicas": available}
    return found(status, {} if replicas is None else {"replicas": replicas})


def daemons(wanted: int, updated: int, available: int, observed: int = 3) -> dict[str, Any]:
    return found({
        "observedGeneration": observed, "desiredNumberScheduled": wanted, "updatedNumberScheduled": updated,
        "numberAvailable": available,
    })  # fmt: skip


def conditions(*pairs: tuple[str, str], **status: Any) -> dict[str, Any]:
    return found({"conditions": [{"type": kind, "status": value} for kind, value in pairs], **status})


def balanced(*points: dict[str, str], type_: str = "LoadBalancer") -> dict[str, Any]:
    return found({"loadBalancer": {"ingress": list(points)}}, {"type": type_})


TABLE = [
    ("Deployment", rollout(3, 3), H), ("Deployment", rollout(2, 3), U), ("Deployment", rollout(3, 2), U),
    ("Deployment", rollout(3, 3, observed=2), U), ("Deployment", rollout(5, 5), H), ("Deployment", found(), U),
    ("Deployment", rollout(0, 0, replicas=0), H), ("Deployment", rollout(1, 1, replicas=None), H),
    ("Deployment", rollout(2, 1, replicas=None), U), ("Deployment", rollout(0, 0), U),
    ("StatefulSet", rollout(3, 3), H), ("StatefulSet", rollout(2, 2), U), ("StatefulSet", rollout(3, 3, observed=1), U),
    ("ReplicaSet", rollout(0, 3), H), ("ReplicaSet", rollout(0, 2), U), ("ReplicaSet", rollout(0, 0, replicas=None), H),
    ("ReplicaSet", rollout(0, 3, observed=2), U),
    ("DaemonSet", daemons(2, 2, 2), H), ("DaemonSet", daemons(2, 1, 2), U), ("DaemonSet", daemons(2, 2, 1), U),
    ("DaemonSet", daemons(2, 2, 2, observed=1), U), ("DaemonSet", daemons(0, 0, 0), H),
    ("Pod", found({"phase": "Succeeded"}), H), ("Pod", found({"phase": "Failed"}), U),
    ("Pod", conditions(("Ready", "True"), phase="Running"), H),
    ("Pod", conditions(("Ready", "False"), phase="Running"), U),
    ("Pod", found({"phase": "Running"}), U), ("Pod", found({"phase": "Pending"}), U), ("Pod", found(), U),
    ("Job", conditions(("Complete", "True")), H), ("Job", conditions(("Failed", "True")), U),
    ("Job", conditions(("FailureTarget", "True")), U), ("Job", found({"active": 1}), H), ("Job", found(), H),
    ("Job", conditions(("Failed", "False"), ("Suspended", "True")), H),
    ("Service", balanced(type_="ClusterIP"), H), ("Service", balanced(), U),
    ("Service", balanced({"ip": "1.2.3.4"}), H), ("Service", found(), H),
    ("Service", balanced({"hostname": "lb.example"}), H), ("Service", balanced({}), U),
    ("Ingress", found({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}), H), ("Ingress", found(), U),
    ("PersistentVolumeClaim", found({"phase": "Bound"}), H), ("PersistentVolumeClaim", found({"phase": "Pending"}), U),
    ("PersistentVolumeClaim", found(), U),
    ("PodDisruptionBudget", found({"currentHealthy": 2, "desiredHealthy": 2}), H),
    ("PodDisruptionBudget", found({"currentHealthy": 1, "desiredHealthy": 2}), U),
    ("Widget", conditions(("Ready", "True")), H), ("Widget", conditions(("Ready", "False")), U),
    ("Widget", conditions(("Ready", "Unknown")), N), ("Widget", conditions(("Available", "True")), H),
    ("Widget", conditions(("Ready", "False"), ("Available", "True")), U), ("Widget", found(), N),
    ("Widget", conditions(("Ready", "True"), observedGeneration=2), N),
    ("Widget", conditions(("Ready", "True"), observedGeneration=3), H),
    ("Deployment", found({"updatedReplicas": "many"}), N), ("Deployment", found("gone"), N),
    ("Deployment", found({"updatedReplicas": True}), N), ("Pod", found({"conditions": "none"}), N),
    ("Ingress", found({"loadBalancer": {"ingress": ["1.2.3.4"]}}), N),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "object_", "status"), TABLE)
def test_health_is_read_from_what_the_object_says(kind: str, object_: dict[str, Any], status: Health) -> None:
    verdict = judge(GROUP.get(kind, "example.com"), kind, object_)
    assert verdict.status is status, verdict.detail
    assert verdict.detail


def test_a_deployment_of_another_group_is_not_kubernetes_own() -> None:
    assert judge("example.com", "Deployment", rollout(3, 3)).status is N


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["spec", "status", "metadata", "conditions", "loadBalancer", "ingress", "phase", "replicas"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(
    st.sampled_from([*RULES, ("example.com", "Widget")]),
    st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), JSON),
)
def test_any_object_has_an_answer(kind: tuple[str, str], object_: dict[str, Any]) -> None:
    assert judge(*kind, object_).status in Health

"""Health of a workload by its object: one pure function per kind.

The rules are Karmada's (pkg/resourceinterpreter/default/native/healthy.go), so that a policy means the same here and
there. Karmada has none for Job and calls a kind without a rule Healthy; we have one for Job, and go by the condition
Ready, else Available, of any other kind. An object that makes no sense is Unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from bus.messages import Health
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.object_fields import MalformedField, condition, count, get


class HealthVerdict(NamedTuple):
    """A status, and one line for people."""

    status: Health
    detail: str


def judge(group: str, kind: str, found: JsonObject) -> HealthVerdict:
    """Give the health of an object by the rule of its kind."""
    rule = RULES.get((group, kind), by_condition)
    try:
        return rule(found)
    except MalformedField as error:
        return HealthVerdict(Health.UNKNOWN, str(error))


def deployment(found: JsonObject) -> HealthVerdict:
    """Deployment and StatefulSet: rolled out as far as wanted, and what is rolled out is available."""
    wanted, updated = _wanted(found), count(found, "status", "updatedReplicas")
    available = count(found, "status", "availableReplicas")
    return _first(
        _unobserved(found),
        wanted is not None and updated < wanted and f"{updated} of {wanted} replicas updated",
        available < updated and f"{available} of {updated} replicas available",
        well=f"{available} replicas available",
    )


def replica_set(found: JsonObject) -> HealthVerdict:
    """Healthy if as many replicas are available as are wanted."""
    wanted, available = _wanted(found), count(found, "status", "availableReplicas")
    return _first(
        _unobserved(found),
        wanted is not None and available < wanted and f"{available} of {wanted} replicas available",
        well=f"{available} replicas available",
    )


def daemon_set(found: JsonObject) -> HealthVerdict:
    """Updated on every node that should have it, and available wherever updated."""
    wanted = count(found, "status", "desiredNumberScheduled")
    updated = count(found, "status", "updatedNumberScheduled")
    available = count(found, "status", "numberAvailable")
    return _first(
        _unobserved(found),
        updated < wanted and f"{updated} of {wanted} nodes updated",
        available < updated and f"{available} of {updated} nodes available",
        well=f"available on {available} nodes",
    )


def pod(found: JsonObject) -> HealthVerdict:
    """Succeeded, or running and ready."""
    phase = get(found, "status", "phase")
    ready = condition(found, "Ready")
    return _first(
        phase not in ("Succeeded", "Running") and f"phase {phase}",
        phase == "Running" and ready != "True" and f"running, Ready is {ready}",
        well=f"phase {phase}",
    )


def job(found: JsonObject) -> HealthVerdict:
    """Healthy if it has not failed. FailureTarget comes before Failed, while pods still end; a running or suspended Job
    is well."""
    failed = next((kind for kind in ("Failed", "FailureTarget") if condition(found, kind) == "True"), None)
    done = condition(found, "Complete") == "True" or condition(found, "SuccessCriteriaMet") == "True"
    return _first(failed and f"condition {failed}", well="complete" if done else "not failed")


def service(found: JsonObject) -> HealthVerdict:
    """One of type LoadBalancer has an address; any other is well."""
    if get(found, "spec", "type") != "LoadBalancer":
        return HealthVerdict(Health.HEALTHY, "no load balancer wanted")
    return ingress(found)


def ingress(found: JsonObject) -> HealthVerdict:
    """Some load balancer has given it an address."""
    points = get(found, "status", "loadBalancer", "ingress") or ()
    if not isinstance(points, list | tuple) or not all(isinstance(point, dict) for point in points):
        raise MalformedField("status.loadBalancer.ingress is no list of addresses")
    addresses = [point.get("hostname") or point.get("ip") for point in points]
    return _first(not any(addresses) and "no load balancer address", well=f"{len(addresses)} load balancer addresses")


def volume_claim(found: JsonObject) -> HealthVerdict:
    """Bound."""
    phase = get(found, "status", "phase")
    return _first(phase != "Bound" and f"phase {phase}", well="phase Bound")


def disruption_budget(found: JsonObject) -> HealthVerdict:
    """Healthy if it has as many healthy pods as it desires."""
    healthy, desired = count(found, "status", "currentHealthy"), count(found, "status", "desiredHealthy")
    return _first(healthy < desired and f"{healthy} of {desired} pods healthy", well=f"{healthy} pods healthy")


def by_condition(found: JsonObject) -> HealthVerdict:
    """Any other kind: its condition Ready, else Available; Unknown where it has neither, or where it is not current."""
    for kind in ("Ready", "Available"):
        if (status := condition(found, kind)) is None:
            continue
        if get(found, "status", "observedGeneration") is not None and (behind := _unobserved(found)):
            return HealthVerdict(Health.UNKNOWN, behind)
        return HealthVerdict(_OF_CONDITION.get(status, Health.UNKNOWN), f"condition {kind} is {status}")
    return HealthVerdict(Health.UNKNOWN, "has neither a condition Ready nor Available")


_OF_CONDITION = {"True": Health.HEALTHY, "False": Health.UNHEALTHY}

RULES: Mapping[tuple[str, str], Callable[[JsonObject], HealthVerdict]] = {
    ("apps", "Deployment"): deployment,
    ("apps", "StatefulSet"): deployment,
    ("apps", "ReplicaSet"): replica_set,
    ("apps", "DaemonSet"): daemon_set,
    ("", "Pod"): pod,
    ("batch", "Job"): job,
    ("", "Service"): service,
    ("networking.k8s.io", "Ingress"): ingress,
    ("", "PersistentVolumeClaim"): volume_claim,
    ("policy", "PodDisruptionBudget"): disruption_budget,
}
"""API group and kind to its rule."""


def _first(*problems: str | bool | None, well: str) -> HealthVerdict:
    """Unhealthy with the first problem that there is, else Healthy."""
    problem = next((text for text in problems if isinstance(text, str) and text), None)
    return HealthVerdict(Health.HEALTHY, well) if problem is None else HealthVerdict(Health.UNHEALTHY, problem)


def _unobserved(found: JsonObject) -> str:
    """Say so where the controller has not yet seen the newest spec: its numbers are about an older one."""
    wanted, seen = count(found, "metadata", "generation"), count(found, "status", "observedGeneration")
    return "" if wanted == seen else f"generation {wanted} not yet observed, only {seen}"


def _wanted(found: JsonObject) -> int | None:
    return None if get(found, "spec", "replicas") is None else count(found, "spec", "replicas")

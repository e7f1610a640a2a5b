"""Clusters beside the routes: each has an object on the Karmada control plane, and a taint on it while it is bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bus.messages import Outcome, SetTaints
from reactor.actions.execution import ExecutionContext
from reactor.actions.karmada import cluster_taints
from reactor.actions.karmada.control_plane import ControlPlane
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.runtime.clock import Clock
from tests.simulation.fleet.scenario import Plan

TAINTED = "tainted"
"""The other place of a cluster's history: it is there while its taint is on."""
KEY, EFFECT = "reactor/brownout", "NoExecute"


def cluster_target(cluster: str) -> str:
    """Target of a cluster's health."""
    return f"cluster/{cluster}"


def cluster_path(cluster: str) -> str:
    """API path of a cluster's object."""
    return f"{cluster_taints.API}/{cluster}"


def cluster_object(cluster: str) -> JsonObject:
    """Give a cluster as it joined the control plane: without a taint."""
    metadata = {"name": cluster, "resourceVersion": "1", "uid": cluster}
    return {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": metadata, "spec": {}}


def cluster_weights(obj: JsonObject) -> Mapping[str, int]:
    """Give a cluster's state as the judge reads it: everything is where the taint says."""
    tainted = any((one["key"], one["effect"]) == (KEY, EFFECT) for one in obj["spec"].get("taints") or ())
    return {obj["metadata"]["name"]: int(not tainted), TAINTED: int(tainted)}


def cluster_rule(plan: Plan, mode: Sequence[str]) -> list[str]:
    """Give a cluster's rule, as a person would write it. `mode`: its lines about who lets it act."""
    return [
        f"- name: {plan.name}", "  kind: ClusterTaint", *mode, "  carrier: Karmada",
        f"  match: {cluster_target(plan.name)}", f"  taints: [{{key: {KEY}, effect: {EFFECT}}}]",
        f"  tolerationSeconds: {plan.toleration}", f"  recoverySeconds: {plan.recovery}",
    ]  # fmt: skip


async def carry_taints(action: SetTaints, api: KubeApi, clock: Clock, context: ExecutionContext) -> Outcome:
    """Write the taints as a process does whose settings name the control plane."""

    async def connect(_: str) -> KubeApi:
        return api

    return await cluster_taints.carry_out(action, ControlPlane(connect, clock), clock, context)

"""Workloads of a run: a Deployment each on cluster `one`, which may be placed on `two`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reactor.demo.kube import Emulator, LoggedWrite
from tests.chaos.script import Plan
from tests.judge.workload_history import CopyWrite, Effect

CLUSTERS = ("one", "two")
NAMESPACE = "shop"
DECISION_ANNOTATION, EPOCH_ANNOTATION, EVICTING_ANNOTATION = "reactor/decision", "reactor/epoch", "reactor/evicting"


def furnish(emulator: Emulator, plan: Plan) -> None:
    """Let it run on the first cluster."""
    for name in CLUSTERS:
        emulator.cluster(name).ensure_namespace(NAMESPACE)
    emulator.cluster(CLUSTERS[0]).create(_deployment(plan.name))


def _deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "app", "image": "registry.invalid/app:1"}]}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }  # fmt: skip


def sources() -> list[dict[str, Any]]:
    """A watch of the copies on each cluster, and a probe of it."""
    return [
        source
        for name in CLUSTERS
        for source in (
            {"name": f"api-{name}", "kind": "ClusterProbe", "cluster": name, "everySeconds": 2, "refreshSeconds": 4},
            {
                "name": f"copies-{name}", "kind": "WorkloadWatch", "cluster": name, "namespace": NAMESPACE,
                "kinds": ["Deployment"], "refreshSeconds": 4,
            },
        )
    ]  # fmt: skip


def rule(plan: Plan, longer: float) -> dict[str, Any]:
    """It leaves a cluster on which it has not been healthy for the toleration."""
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": plan.name}
    application = {
        "decisionConditions": {"tolerationSeconds": plan.toleration + longer}, "purgeMode": "Gracefully",
        "gracePeriodSeconds": 600, "blockPredecessorSeconds": 600 if plan.blocks else None,
    }  # fmt: skip
    return {
        "name": plan.name, "kind": "WorkloadFailover", "mode": "Enforce", "resourceSelectors": [selector],
        "placement": {
            "clusterAffinity": {"clusterNames": list(CLUSTERS)},
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        },
        "failover": {"application": application}, "guards": {"ratePerSecond": 100},
    }  # fmt: skip


def written(plan: Plan, writes: Sequence[LoggedWrite]) -> list[CopyWrite]:
    """Give each effective write to one of its copies."""
    folds = {name: _Fold(marked=False, replicas=1 if name == CLUSTERS[0] else None) for name in CLUSTERS}
    return [
        folds[write.cluster].taken(write)
        for write in writes
        if (write.resource, write.name) == ("deployments", plan.name) and write.cluster in folds
    ]


@dataclass(slots=True)
class _Fold:
    """A copy as its writes so far have made it."""

    marked: bool
    replicas: int | None
    """None: there is no copy."""
    notes: dict[str, str] = field(default_factory=dict)

    def taken(self, write: LoggedWrite) -> CopyWrite:
        """Replay one write, and give what it did."""
        marked, replicas = self.marked, self.replicas
        if write.verb == "delete":
            self.replicas, self.notes = None, {}
        elif isinstance(write.body, list):
            for operation in write.body:
                self._patched(operation)
        else:
            self.notes |= write.body["metadata"].get("annotations", {})
            self.replicas = write.body["spec"].get("replicas", 1)
        self.marked = EVICTING_ANNOTATION in self.notes
        generation = int(self.notes.get(DECISION_ANNOTATION, "/0").rpartition("/")[2])
        effect = _effect(marked, replicas, self)
        return CopyWrite(write.at, write.cluster, effect, generation, int(self.notes.get(EPOCH_ANNOTATION, "0")))

    def _patched(self, operation: dict[str, Any]) -> None:
        path, value = operation["path"], operation.get("value")
        if operation["op"] == "test":
            return
        if path == "/metadata/annotations":
            self.notes = dict(value or {})
        elif path.startswith("/metadata/annotations/"):
            key = path.rpartition("/")[2].replace("~1", "/")
            if operation["op"] == "remove":
                self.notes.pop(key, None)
            else:
                self.notes[key] = str(value)
        elif path == "/spec/replicas":
            self.replicas = value


def _effect(marked: bool, replicas: int | None, now: _Fold) -> Effect:
    if (replicas or 0) == 0 and now.replicas:
        return "place"
    if replicas and not now.replicas:
        return "remove"
    if replicas != now.replicas:
        return "resize"
    if marked is not now.marked:
        return "mark" if now.marked else "unmark"
    return "nothing"

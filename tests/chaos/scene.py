"""What a run needs on the Kubernetes side and on disk: services, splits with a rule each, and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import yaml

from reactor.audit.history import RouteHistory, Span
from reactor.audit.history import Write as Seen
from reactor.demo.kube import Cluster, Emulator, Write
from tests.chaos.script import RECOVERY, Plan

CLUSTER, NAMESPACE = "east", "shop"
PARTITIONS = 8
REFRESH_SECONDS = 4.0
STALE_SECONDS = 60.0
DECISION, EPOCH = "reactor/decision", "reactor/epoch"


def furnish(emulator: Emulator, script: Sequence[Plan]) -> Cluster:
    """Make the services, all healthy, and the splits, all at home."""
    cluster = emulator.cluster(CLUSTER)
    for plan in script:
        for service in (plan.name, plan.second):
            cluster.create(_service(service))
            cluster.set_endpoints(NAMESPACE, service, ready=1)
        cluster.create(_split(plan))
    emulator.writes.clear()
    return cluster


def _service(name: str) -> dict[str, Any]:
    spec = {"ports": [{"port": 80}], "selector": {"app": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _split(plan: Plan) -> dict[str, Any]:
    backends = [{"service": plan.name, "weight": 1}, {"service": plan.second, "weight": 0}]
    metadata = {"name": plan.name, "namespace": NAMESPACE}
    spec = {"service": plan.name, "backends": backends}
    return {"apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit", "metadata": metadata, "spec": spec}


def target(plan: Plan, service: str) -> str:
    """Give the target whose health speaks for the service."""
    return f"service/{'bus' if plan.told_by_bus else CLUSTER}/{NAMESPACE}/{service}"


def told_by_bus(script: Sequence[Plan]) -> list[str]:
    """Give the targets of which a stranger tells."""
    return [target(plan, name) for plan in script if plan.told_by_bus for name in (plan.name, plan.second)]


def rule_file(script: Sequence[Plan], *, longer: float = 0.0) -> str:
    """Give the rules as a person would write them. `longer`: seconds that are added to each toleration."""
    source = {
        "name": "endpoints", "kind": "EndpointsWatch", "cluster": CLUSTER, "namespace": NAMESPACE,
        "refreshSeconds": REFRESH_SECONDS, "staleSeconds": STALE_SECONDS,
    }  # fmt: skip
    rules = [_rule(plan, plan.toleration + longer) for plan in script]
    return yaml.safe_dump({"apiVersion": "reactor/v1", "sources": [source], "rules": rules}, sort_keys=False)


def _rule(plan: Plan, toleration: float) -> dict[str, Any]:
    return {
        "name": plan.name, "kind": "TrafficFailover", "mode": "Enforce",
        "route": {"cluster": CLUSTER, "kind": "TrafficSplit", "namespace": NAMESPACE, "name": plan.name},
        "backends": [{"service": name, "target": target(plan, name)} for name in (plan.name, plan.second)],
        "tolerationSeconds": toleration, "recoverySeconds": RECOVERY,
    }  # fmt: skip


def settings_file(path: Path, *, name: str, bus: Sequence[str], kubeconfig: Path, rules: Path, replicas: int) -> Path:
    """Write one reactor's settings."""
    settings = {
        "name": name,
        "bus": {"url": list(bus), "partitions": PARTITIONS, "replicas": replicas},
        "receiver": {"listen": "127.0.0.1:0"},
        "clusters": {CLUSTER: {"kubeconfig": str(kubeconfig), "context": CLUSTER}},
        "ruleFiles": [str(rules)],
    }
    path.write_text(yaml.safe_dump(settings), "utf-8")
    return path


def history(
    plan: Plan,
    start: float,
    happened: Mapping[tuple[str, float], float],
    writes: Sequence[Write],
    taken: Mapping[str, float],
) -> RouteHistory:
    """Give what the checker has to know of one route.

    `start`: when the script began, on the event loop's clock; `happened`: when each of its turns really came; `taken`:
    when the bus took the newest one of a target.
    """

    def real(at: float) -> float:
        return happened.get((plan.name, at), start + at)

    def moved(span: Span) -> Span:
        return Span(real(span.begin), real(span.end))

    return RouteHistory(
        name=plan.name, primary=plan.name, toleration=plan.toleration, recovery=RECOVERY,
        outages=tuple(moved(span) for span in plan.outages),
        writes=tuple(_fold(plan, [write for write in writes if write.name == plan.name])),
        deserted=_known(plan, moved(plan.deserted), taken) if plan.deserted else None,
    )  # fmt: skip


def _known(plan: Plan, deserted: Span, taken: Mapping[str, float]) -> Span:
    """Who is told by the bus cannot know of it before the bus has taken it."""
    told = taken.get(target(plan, plan.second), inf) if plan.told_by_bus else deserted.begin
    return Span(max(deserted.begin, told), deserted.end)


def _fold(plan: Plan, writes: Sequence[Write]) -> list[Seen]:
    """Replay the JSON Patches: the weights and the notes that stood on the split after each."""
    weights, notes = [1, 0], dict[str, str]()
    out = []
    for write in writes:
        for operation in write.body:
            path, value = operation["path"], operation.get("value")
            if operation["op"] == "test":
                continue
            if path.startswith("/spec/backends/"):
                weights[int(path.split("/")[3])] = value
            elif path == "/metadata/annotations":
                notes = dict(value)
            elif path.startswith("/metadata/annotations/"):
                notes[path.rpartition("/")[2].replace("~1", "/")] = value
        generation = int(notes.get(DECISION, "/0").rpartition("/")[2])
        both = {plan.name: weights[0], plan.second: weights[1]}
        out.append(Seen(write.at, both, generation, int(notes.get(EPOCH, "0"))))
    return out

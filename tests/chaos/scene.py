"""Objects and files of a run: services, splits with a rule each, and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from reactor.audit.spans import Span
from reactor.demo.kube import EmulatedCluster, Emulator, LoggedWrite
from tests.chaos import alerting, workloads, zone
from tests.chaos.script import Plan
from tests.chaos.stranger import VALID_SECONDS
from tests.judge.object_history import RouteHistory
from tests.judge.object_history import Write as Seen

CLUSTER, NAMESPACE = "east", "shop"
PARTITIONS = 8
REFRESH_SECONDS = 4.0
STALE_SECONDS = 60.0
PROBE_SECONDS = 1.0
DECISION, EPOCH = "reactor/decision", "reactor/epoch"
PERIODS = {"probe": PROBE_SECONDS, "quorum": PROBE_SECONDS, **alerting.SEEN_AFTER}
"""Seconds between two looks, of the sources that are not told."""


def furnish(emulator: Emulator, script: Sequence[Plan]) -> EmulatedCluster:
    """Make the services, all healthy, the splits, all on primary, and the workloads and zones that the script has."""
    cluster = emulator.cluster(CLUSTER)
    for plan in script:
        if plan.source == "copies":
            workloads.furnish(emulator, plan)
        elif plan.is_route:
            for service in plan.backends:
                cluster.create(_service(service))
                cluster.set_endpoints(NAMESPACE, service, ready=1)
            cluster.create(_split(plan))
    emulator.writes.clear()
    return cluster


def _service(name: str) -> dict[str, Any]:
    spec = {"ports": [{"port": 80}], "selector": {"app": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _split(plan: Plan) -> dict[str, Any]:
    backends = [{"service": service, "weight": int(service == plan.name)} for service in plan.backends]
    metadata = {"name": plan.name, "namespace": NAMESPACE}
    spec = {"service": plan.name, "backends": backends}
    return {"apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit", "metadata": metadata, "spec": spec}


def target(plan: Plan, service: str) -> str:
    """Give the target whose health speaks for the service."""
    where = CLUSTER if plan.source in ("slices", "alerts") else plan.source
    return f"service/{where}/{NAMESPACE}/{service}"


def told_by_bus(script: Sequence[Plan]) -> list[str]:
    """Give the targets of which an outsider tells."""
    return [target(plan, name) for plan in script if plan.told_by_bus for name in plan.backends]


def rule_file(script: Sequence[Plan], probes: str, *, longer: float = 0.0) -> str:
    """Give the rules as a person would write them. `longer`: seconds that are added to each toleration.

    `probes`: the address at which probes find everything.
    """
    sources: list[dict[str, Any]] = [{
        "name": "endpoints", "kind": "EndpointsWatch", "cluster": CLUSTER, "namespace": NAMESPACE,
        "refreshSeconds": REFRESH_SECONDS, "staleSeconds": STALE_SECONDS,
    }]  # fmt: skip
    sources += [
        probe(service, target(plan, service), f"{probes}/{service}", PROBE_SECONDS)
        for plan in script
        if plan.source == "probe"
        for service in plan.backends
    ]
    for plan in script:
        if plan.source == "quorum":
            for service in plan.backends:
                sources += _quorum(target(plan, service), service, f"{probes}/{service}")
    if any(plan.source in alerting.SEEN_AFTER for plan in script):
        sources += alerting.sources()
    rules = [_rule(plan, plan.toleration + longer) for plan in script if plan.is_route]
    if some := [plan for plan in script if plan.source == "copies"]:
        sources += workloads.sources()
        rules += [workloads.rule(plan, longer) for plan in some]
    for plan in script:
        if plan.source == "zone":
            sources += zone.sources(probes)
            rules.append(zone.rule(plan, longer))
    return yaml.safe_dump({"apiVersion": "reactor/v1", "sources": sources, "rules": rules}, sort_keys=False)


def probe(name: str, target: str, url: str, every: float) -> dict[str, Any]:
    """Give a probe that needs one reading to change its mind."""
    return {
        "name": name, "kind": "HttpProbe", "target": target, "url": url, "everySeconds": every, "timeoutSeconds": every,
        "failureThreshold": 1, "refreshSeconds": REFRESH_SECONDS, "staleSeconds": STALE_SECONDS,
    }  # fmt: skip


def _quorum(target: str, service: str, url: str) -> list[dict[str, Any]]:
    """Give three probes of a service, and what two of them say."""
    members = [f"custom/{service}/{number}" for number in (1, 2, 3)]
    judge = {
        "name": service, "kind": "Quorum", "members": f"custom/{service}/*", "target": target, "unhealthyAt": 2,
        "refreshSeconds": REFRESH_SECONDS, "staleSeconds": STALE_SECONDS,
    }  # fmt: skip
    return [judge, *(probe(member.replace("/", "-"), member, url, PROBE_SECONDS) for member in members)]


def _rule(plan: Plan, toleration: float) -> dict[str, Any]:
    return {
        "name": plan.name, "kind": "TrafficFailover", "mode": "Enforce",
        "route": {"cluster": CLUSTER, "kind": "TrafficSplit", "namespace": NAMESPACE, "name": plan.name},
        "backends": [{"service": name, "target": target(plan, name)} for name in plan.backends],
        "tolerationSeconds": toleration, "recoverySeconds": plan.recovery,
        "failback": {"backoff": {"factor": 1}},  # the judge measures each way back by recoverySeconds
    }  # fmt: skip


def settings_file(
    path: Path,
    *,
    name: str,
    bus: Sequence[str],
    kubeconfig: Path,
    rules: Path,
    replicas: int,
    clusters: Sequence[str],
    port: int = 0,
    more: Mapping[str, Any] | None = None,
) -> Path:
    """Write one reactor's settings. `port`: at which it takes posts; 0: any."""
    settings = {
        "name": name,
        "bus": {"url": list(bus), "partitions": PARTITIONS, "replicas": replicas},
        "receiver": {"listen": f"127.0.0.1:{port}"},
        "health": {"listen": "127.0.0.1:0"},
        "clusters": {name: {"kubeconfig": str(kubeconfig), "context": name} for name in clusters},
        "ruleFiles": [str(rules)],
        **(more or {}),
    }
    path.write_text(yaml.safe_dump(settings), "utf-8")
    return path


def history(
    plan: Plan,
    start: float,
    happened: Mapping[tuple[str, float], float],
    writes: Sequence[LoggedWrite],
    blind: Sequence[Span],
    unheard: Sequence[Span],
    cut_off: Sequence[Span],
    blind_grace: float,
    *,
    dark: bool,
) -> RouteHistory:
    """Give what the checker has to know of one object.

    `start`: when the script began, on the event loop's clock; `happened`: when each of its turns really came; `blind`:
    when nothing could look at it; `unheard`: when its source could tell no reactor; `cut_off`: when
    an outsider could not.
    """

    def moved(name: str, spans: Sequence[Span]) -> tuple[Span, ...]:
        return really(name, spans, start, happened)

    seen = _fold(plan, [write for write in writes if write.resource == "trafficsplits"])
    return RouteHistory(
        name=plan.name, primary=plan.name, toleration=plan.toleration, recovery=plan.recovery,
        outages=moved(plan.name, plan.outages), writes=tuple(seen),
        others={name: moved(name, spans) for name, spans in plan.seconds.items()},
        period=PERIODS.get(plan.source, 0.0), valid=VALID_SECONDS if plan.told_by_bus else 0.0,
        lag=alerting.SEEN_AFTER.get(plan.source, 0.0), blind=tuple(blind), unheard=tuple(unheard),
        cut_off=tuple(cut_off) if plan.told_by_bus else (),
        blind_grace=blind_grace, dark=dark, returns=plan.is_route,
    )  # fmt: skip


def really(
    name: str, spans: Sequence[Span], start: float, happened: Mapping[tuple[str, float], float]
) -> tuple[Span, ...]:
    """Give when these outages of a backend really began and ended."""
    return tuple(
        Span(happened.get((name, span.begin), start + span.begin), happened.get((name, span.end), start + span.end))
        for span in spans
    )


def _fold(plan: Plan, writes: Sequence[LoggedWrite]) -> list[Seen]:
    """Replay the JSON Patches: the weights and the notes on the split after each."""
    names = list(plan.backends)
    weights, notes = [1] + [0] * (len(names) - 1), dict[str, str]()
    out = []
    for write in writes:
        for operation in write.body if write.name == plan.name else ():
            path, value = operation["path"], operation.get("value")
            if operation["op"] == "test":
                continue
            if path.startswith("/spec/backends/"):
                weights[int(path.split("/")[3])] = value
            elif path == "/metadata/annotations":
                notes = dict(value)
            elif path.startswith("/metadata/annotations/"):
                notes[path.rpartition("/")[2].replace("~1", "/")] = value
        if write.name == plan.name:
            generation = int(notes.get(DECISION, "/0").rpartition("/")[2])
            both = dict(zip(names, weights, strict=True))
            out.append(Seen(write.at, both, generation, int(notes.get(EPOCH, "0"))))
    return out

"""Rules that no person would write: their keys drawn from a seed, so that worlds also meet what no example has."""

from __future__ import annotations

import json
import random
from typing import Any

from rules.loader import RuleSet, load_rules

CLUSTERS = ["m1", "m2", "m3", "m4"]
MODES = ("Directly", "Gracefully", "Never")


def drawn(seed: int) -> RuleSet:
    """Give one to three routes and up to two workloads, each with some of all the keys that such rules have."""
    dice = random.Random(seed)
    rules = [_route(dice, number) for number in range(dice.randint(1, 3))]
    rules += [_workload(dice, number) for number in range(dice.randint(0, 2))]
    return load_rules([(f"drawn-{seed}.yaml", json.dumps({"apiVersion": "reactor/v1", "rules": rules}))])


def _route(dice: random.Random, number: int) -> dict[str, Any]:
    kind = dice.choice(["TrafficSplit", "HTTPRoute", "GRPCRoute"])
    maybe: dict[str, Any] = {
        "steps": [{"percent": 10, "pauseSeconds": 30}, {"percent": 60, "pauseSeconds": 60}],
        "signals": dice.sample(["a", "b", "c"], 2), "guards": _guards(dice),
    }  # fmt: skip
    return {
        "name": f"route-{number}", "kind": "TrafficFailover", "mode": dice.choice(["Enforce", "DryRun", "Approve"]),
        "route": {"cluster": "east", "kind": kind, "namespace": "shop", "name": f"r{number}"},
        "backends": [_backend(dice, f"s{number}-{place}", place) for place in range(dice.randint(2, 4))],
        "tolerationSeconds": dice.choice([0, 5, 30, 120]), "recoverySeconds": dice.choice([0, 10, 60]),
        "distribution": dice.choice(["Equal", "Proportional"]),
        "onAllDown": dice.choice(["Hold", "Primary", "Spread", *(["Zero"] if kind == "TrafficSplit" else [])]),
        "treatUnknownAs": dice.choice(["Hold", "Unhealthy"]), **_some(dice, maybe),
    }  # fmt: skip


def _backend(dice: random.Random, service: str, place: int) -> dict[str, Any]:
    maybe = {"weight": dice.choice([1, 3, 5])}
    if place:
        maybe |= {"tier": dice.choice([1, 2]), "target": f"service/west/shop/{service}"}  # type: ignore[dict-item]
    return {"service": service, **_some(dice, maybe)}


def _guards(dice: random.Random) -> dict[str, Any]:
    return dice.choice([
        {"maxConcurrent": 1}, {"ratePerSecond": 0.01}, {"cooldownSeconds": 300, "ratePerSecond": 0.5},
        {"maxUnhealthy": "50%", "rounding": "Up"},
        {"disruption": {"unhealthyAt": "55%", "secondaryRatePerSecond": 0.01}},
        {"blockedWindows": [{"cron": "0 */3 * * *", "durationSeconds": 1800, "timezone": "UTC"}]},
    ])  # fmt: skip


def _workload(dice: random.Random, number: int) -> dict[str, Any]:
    divided = [
        {"replicaSchedulingType": "Divided", "replicaDivisionPreference": how} for how in ("Aggregated", "Weighted")
    ]
    placement = {
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}],
        "clusterTolerations": [
            {"key": f"cluster.karmada.io/{key}", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": dice.choice([30, 120])}
            for key in ("not-ready", "unreachable")
        ],
    }  # fmt: skip
    application = {
        "preConditions": {"delaySeconds": dice.choice([60, 600]), "healthyState": "Healthy"},
        "blockPredecessorSeconds": dice.choice([0, 100, None]),
    }
    failover = {
        "application": {
            "decisionConditions": {"tolerationSeconds": dice.choice([20, 120])}, "purgeMode": dice.choice(MODES),
            **_some(dice, application),
        },
    }  # fmt: skip
    return {
        "name": f"workload-{number}", "kind": "WorkloadFailover", "mode": "Enforce",
        "carrier": dice.choice(["Kubernetes", "Karmada"]),
        "resourceSelectors": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": f"d{number}"}
        ],
        "placement": {
            "clusterAffinity": {"clusterNames": CLUSTERS},
            "replicaScheduling": dice.choice([{"replicaSchedulingType": "Duplicated"}, *divided]),
            **_some(dice, placement),
        },
        "failover": {"cluster": {"purgeMode": dice.choice(MODES)}, **_some(dice, failover)},
        "tolerationSeconds": dice.choice([0, 10]), "recoverySeconds": dice.choice([0, 60]),
        **_some(dice, {"onInsufficient": "Partial", "treatUnknownAs": "Unhealthy"}),
    }  # fmt: skip


def _some(dice: random.Random, keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if dice.random() < 0.5}

"""Rule files that worlds are played for: those of the library, and some that say what the library does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rules.loader import RuleSet, load_rules

LIBRARY = Path(__file__).resolve().parents[2] / "rules" / "library"
CLUSTERS = ["member1", "member2", "member3"]


def _split(name: str, services: int = 3, **keys: Any) -> dict[str, Any]:
    backends = [{"service": f"{name}-{number}", "tier": 1 + number // 2} for number in range(services)]
    route = {"cluster": "east", "kind": keys.pop("route_kind", "TrafficSplit"), "namespace": "shop", "name": name}
    return {"name": name, "kind": "TrafficFailover", "mode": "Enforce", "route": route, "backends": backends} | keys


def _moves(name: str, **keys: Any) -> dict[str, Any]:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": name}
    placement = keys.pop("placement", {}) | {
        "clusterAffinity": {"clusterNames": CLUSTERS},
        "clusterTolerations": [
            {"key": f"cluster.karmada.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
            for key in ("not-ready", "unreachable")
        ],
    }
    return {
        "name": name, "kind": "WorkloadFailover", "mode": "Enforce", "resourceSelectors": [selector],
        "placement": placement, "failover": {"cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 120}},
    } | keys  # fmt: skip


def _zones(**keys: Any) -> dict[str, Any]:
    zones = [{"name": zone, "id": f"id-{zone}"} for zone in ("a", "b", "c")]
    return {
        "name": "zones", "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "prod", "zones": zones,
        "tolerationSeconds": 60, "recoverySeconds": 300, "cooldownSeconds": 600,
    } | keys  # fmt: skip


OURS: Mapping[str, Mapping[str, Any]] = {
    "unknown is bad": {
        "rules": [
            _split("web", tolerationSeconds=20, recoverySeconds=60, treatUnknownAs="Unhealthy"),
            {"name": "people", "kind": "Notification", "mode": "Enforce", "match": "service/**",
             "tolerationSeconds": 45, "recoverySeconds": 30, "treatUnknownAs": "Unhealthy"},
        ],
    },
    "all down": {
        "rules": [
            _split("zero", tolerationSeconds=0, onAllDown="Zero"),
            _split("spread", tolerationSeconds=30, recoverySeconds=30, onAllDown="Spread", route_kind="GRPCRoute"),
            _split("steps", tolerationSeconds=30, recoverySeconds=60, onAllDown="Primary",
                   steps=[{"percent": 10, "pauseSeconds": 60}, {"percent": 50, "pauseSeconds": 60}]),
        ],
    },
    "limits": {
        "rules": [
            _split("one", tolerationSeconds=30, recoverySeconds=30, guards={"cooldownSeconds": 300}),
            _split("two", tolerationSeconds=30, recoverySeconds=30, mode="Approve"),
            _split("three", tolerationSeconds=10, guards={"maxUnhealthy": "50%", "rounding": "Down"}),
        ],
        "guards": [{"rules": ["*"], "maxConcurrent": 1, "ratePerSecond": 0.05}],
    },
    "directly": {
        "rules": [
            _moves("cart", carrier="Kubernetes", failover={
                "cluster": {"purgeMode": "Directly"},
                "application": {
                    "decisionConditions": {"tolerationSeconds": 90, "healthyState": ["Unhealthy", "Unknown"]},
                    "purgeMode": "Directly", "blockPredecessorSeconds": 300}}),
            _moves("mail", carrier="Karmada", recoverySeconds=60, onGraceExpired="Purge",
                   placement={"replicaScheduling": {"replicaDivisionPreference": "Aggregated"}}),
        ],
    },
    "taints": {
        "rules": [
            {"name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*",
             "signals": ["brownout"], "tolerationSeconds": 60, "recoverySeconds": 120,
             "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}]},
            _moves("cart", signals=["ready"], tolerationSeconds=10),
            _moves("stays", signals=["ready"], failover={"cluster": {"purgeMode": "Never"}}),
        ],
    },
    "zones": {
        "rules": [_zones(steps=["Fence", "ShiftTraffic", "Evacuate", "CutNetwork"], signals=["nodes", "slo"],
                         network={"provider": "LabelledNetworkPolicy"}, failback={"signals": ["slo", "outside"]})],
    },
    "zones drilled": {
        "rules": [_zones(steps=["Fence", "Evacuate"], force="AfterTimeout", onExpiry="Failback", expirySeconds=3600,
                         practice={"cron": "0 */5 * * *", "timezone": "UTC", "durationSeconds": 900,
                                   "steps": ["Fence"]})],
    },
    "policies": {
        "rules": [{"name": "platform", "kind": "WorkloadFailover", "mode": "Enforce", "carrier": "Karmada",
                   "policies": {"selector": "tier=web"}, "recoverySeconds": 30}],
    },
    "quorum": {
        "sources": [
            {"name": "edge", "kind": "Quorum", "members": "custom/edge/*", "target": "service/east/shop/web-0",
             "unhealthyAt": 2, "minMembers": 3},
        ],
        "rules": [_split("web", tolerationSeconds=20, recoverySeconds=20, signals=["edge", "health"])],
    },
}  # fmt: skip
"""By what they are about."""


def names() -> list[str]:
    """Give all of them."""
    return [*(path.stem for path in sorted(LIBRARY.glob("*.yaml")) if not path.stem.endswith("_test")), *OURS]


@cache
def rule_set(name: str) -> RuleSet:
    """Read one."""
    if name in OURS:
        return load_rules([(f"{name}.yaml", json.dumps({"apiVersion": "reactor/v1", **OURS[name]}))])
    return load_rules([(f"{name}.yaml", (LIBRARY / f"{name}.yaml").read_text("utf-8"))])

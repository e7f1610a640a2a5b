"""The zones of a run: a cluster of three zones, of which one may get sick, and two probes of each."""

from __future__ import annotations

from typing import Any

from tests.chaos.script import Plan
from tests.e2e.zone_objects import ZONES
from tests.e2e.zone_world import NODES, SICK

CLUSTER = "prod"
PROBE_SECONDS = 1.0
WITNESSES = ("inside", "outside")
FIRST, PERCENT, BAKE_SECONDS = 1, 50, 2.0
"""The batches in which nodes come back."""
BATCHES = (FIRST, FIRST + NODES * PERCENT // 100, NODES)
"""Number of nodes that are back after each."""


def sources(probes: str) -> list[dict[str, Any]]:
    """Two probes of each zone, and a watch of its nodes."""
    return [
        {"name": "nodes", "kind": "NodeWatch", "cluster": CLUSTER, "target": "node/{cluster}/{node}"},
        *(
            {
                "name": f"{witness}-{name}", "signal": witness, "kind": "HttpProbe", "target": f"zone/{CLUSTER}/{name}",
                "url": f"{probes}/{witness}-{name}", "everySeconds": PROBE_SECONDS, "timeoutSeconds": PROBE_SECONDS,
                "failureThreshold": 1, "refreshSeconds": 4,
            }
            for name in ZONES
            for witness in WITNESSES
        ),
    ]  # fmt: skip


def rule(plan: Plan, longer: float) -> dict[str, Any]:
    """The sick zone is left when both probes have failed for the toleration, and comes back by itself."""
    batches = {"first": FIRST, "percent": PERCENT, "bakeSeconds": BAKE_SECONDS}
    return {
        "name": plan.name, "kind": "ZoneIsolation", "mode": "Enforce", "cluster": CLUSTER, "signals": list(WITNESSES),
        "zones": [{"name": name, "id": id_} for name, id_ in ZONES.items()],
        "tolerationSeconds": plan.toleration + longer, "recoverySeconds": plan.recovery, "cooldownSeconds": 0,
        "drainSeconds": 0, "failback": {"batches": batches},
    }  # fmt: skip


def paths(plan: Plan, backend: str) -> list[str]:
    """Paths that the probes request of the witnesses that this backend of the plan means."""
    others = [f"{witness}-{name}" for name in ZONES if name != SICK for witness in WITNESSES]
    seen = [[f"{witness}-{SICK}"] for witness in WITNESSES]
    return dict(zip(plan.backends, [*seen, others], strict=True))[backend]

"""The zones of a run: a cluster of three zones, of which one may get sick, and two probes of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactor.demo.kube import WORLD, LoggedWrite
from tests.chaos.script import Plan
from tests.e2e.zone_objects import ZONES
from tests.e2e.zone_world import SICK
from tests.judge.object_history import Write as Seen

CLUSTER = "prod"
PROBE_SECONDS = 1.0
WITNESSES = ("inside", "outside")


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
    """The sick zone is left when both probes have failed for the toleration."""
    return {
        "name": plan.name, "kind": "ZoneIsolation", "mode": "Enforce", "cluster": CLUSTER, "signals": list(WITNESSES),
        "zones": [{"name": name, "id": id_} for name, id_ in ZONES.items()],
        "tolerationSeconds": plan.toleration + longer, "recoverySeconds": 600, "cooldownSeconds": 0, "drainSeconds": 1,
    }  # fmt: skip


def paths() -> list[str]:
    """Paths that the probes of the sick zone request."""
    return [f"{witness}-{SICK}" for witness in WITNESSES]


def seen(plan: Plan, writes: Sequence[LoggedWrite]) -> list[Seen]:
    """The first write to the cluster is the action; the steps that follow are not judged."""
    ours = [write for write in writes if write.cluster == CLUSTER and write.manager != WORLD]
    [second] = plan.seconds
    return [Seen(write.at, {plan.name: 0, second: 1}, 1, 1) for write in ours[:1]]

"""Zone steps as tests say them."""

from __future__ import annotations

from typing import Any

from bus.messages import Mode, ZoneStep
from tests.unit.actions.builders import START

ZONE, ZONE_ID = "us-east-1a", "use1-az6"
"""In us-east-1, code and ID do not have the same order, so mixing them up shows."""


def zone_step(step: str, *, undo: bool = False, **more: Any) -> ZoneStep:
    """A step of the failover (undo: of the failback) of zone us-east-1a of cluster prod, decided at START."""
    generation = more.setdefault("generation", 1)
    known = {
        "id": f"prod-zones/prod/{ZONE}/{generation}", "rule": "prod-zones", "object": f"prod/{ZONE}",
        "mode": Mode.ENFORCE, "because": "ZoneUnhealthy", "decided_at": START, "epoch": 1,
        "cluster": "prod", "zone": ZONE, "zone_id": ZONE_ID, "carrier": "Kubernetes",
        "phase": "Failback" if undo else "Failover", "status": "InProgress",
    }  # fmt: skip
    return ZoneStep(step=step, undo=undo, **{**known, **more})

"""TrafficSplit (split.smi-spec.io): weights of an SMI traffic split, the object that linkerd-failover drives.

All weights may become zero here when a rule asks for it: Linkerd then sends traffic to the apex service.
"""

from __future__ import annotations

from bus.messages import RouteRef, SetWeights
from reactor.actions.annotations import stamps
from reactor.actions.patches import Entry, changes, patch
from reactor.clients.port import JsonObject


def entries(obj: JsonObject, route: RouteRef) -> list[Entry]:  # noqa: ARG001 - the same shape for every kind of route
    """Give the backends in their order. A service that stands twice has two entries, and both follow it."""
    backends = (obj.get("spec") or {}).get("backends") or []
    return [
        Entry(f"/spec/backends/{index}", (("service", backend["service"]),), backend["service"], backend.get("weight"))
        for index, backend in enumerate(backends)
    ]


def difference(obj: JsonObject, action: SetWeights) -> list[JsonObject] | None:
    """Give the JSON Patch that makes the split as asked; None: it already is.

    Quantity strings of v1alpha1 ("500m") become integers where they have to change. Raises Unfit.
    """
    operations = changes(entries(obj, action.route), action.weights)
    return patch(obj, operations, write=stamps(obj, action)) if operations else None

"""Remembered copies of a workload and of what it needs: what is placed when no cluster has it to copy from."""

from __future__ import annotations

from dataclasses import dataclass, field

from bus.messages import WorkloadRef
from reactor.actions.workload.copy import portable
from reactor.clients.kubernetes_port import JsonObject
from tests.unit.actions.workload.builders import NEEDY, deployment, needed


@dataclass
class Memory:
    """Remembered copies: what a dead cluster held."""

    copies: dict[WorkloadRef, JsonObject] = field(default_factory=dict)

    async def get(self, ref: WorkloadRef) -> JsonObject | None:
        return self.copies.get(ref)

    async def put(self, ref: WorkloadRef, copy: JsonObject) -> bool:
        changed = self.copies.get(ref) != copy
        self.copies[ref] = copy
        return changed


def remembered(namespace: str) -> dict[WorkloadRef, JsonObject]:
    found = {}
    for obj in (*needed(), deployment(spec=NEEDY)):
        copy = portable({**obj, "metadata": {**obj["metadata"], "namespace": namespace}})
        ref = {"kind": obj["kind"], "name": obj["metadata"]["name"], "api_version": obj["apiVersion"]}
        found[WorkloadRef(namespace=namespace, **ref)] = copy
    return found

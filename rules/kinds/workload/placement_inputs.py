"""All that one decision about a workload uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bus.messages import Health, WorkloadRef
from rules.core.reasons import Held
from rules.kinds.workload.causes import EvictionDue, member_of
from rules.kinds.workload.model import Policy, WorkloadFailover
from rules.kinds.workload.state import ClusterState, WorkloadGroup, WorkloadState

HoldReason = tuple[Held, str]


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that one decision uses."""

    rule: WorkloadFailover
    policy: Policy
    group: WorkloadGroup
    state: WorkloadState
    clusters: Mapping[str, ClusterState]
    now: datetime
    dues: Mapping[str, EvictionDue]
    """For each copy that something runs against."""

    def due(self, name: str) -> bool:
        due = self.dues.get(name)
        return due is not None and due.at <= self.now

    def fields(self, name: str | None = None) -> dict[str, Any]:
        """Fields that all actions on the workload have; `name`: cluster of an action that leaves one (`from`)."""
        *namespace, kind, own = self.group.object.split("/")
        ref = WorkloadRef(namespace="".join(namespace), kind=kind, name=own, api_version=self.state.api_version)
        return {"workload": ref, "carrier": self.rule.carrier} | ({"from_": name} if name is not None else {})

    def health(self, name: str) -> Health | None:
        """Health of a copy; None: no observation since it was placed."""
        copy = self.state.copies.get(name)
        member = member_of(self.group, name, copy) if copy is not None else None
        return member.status if member is not None else None

    def heard_since(self, name: str, moment: datetime | None) -> bool:
        """True if a copy was observed at `moment` or later."""
        copy = self.state.copies.get(name)
        member = member_of(self.group, name, copy) if copy is not None else None
        if member is None or moment is None:
            return False
        return any(said.observed_at >= moment for said in member.signals.values())

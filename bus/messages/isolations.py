"""Zones, and how one is taken out of service."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from bus.messages.base import ActionMessage, Message, MessagePart, Name, Words

Count = Annotated[int, Field(ge=0, le=1_000_000)]
Phase = Literal["Failover", "Failback"]
ZoneStatus = Literal["Pending", "InProgress", "Aborting", "Done", "Failed"]


class MarkedNodes(MessagePart):
    """Nodes of a zone that say, by their annotations, in whose isolation they are."""

    rule: Name
    """Rule that has fenced them."""
    nodes: Count
    """Number of nodes that are fenced and name it."""
    by: Words = ""
    """Person who has asked for it; empty: the rule itself."""
    practice: bool = False
    """True for a drill."""
    released: Count = 0
    """Number of nodes of the zone that its way back has let go, while others are fenced."""


class ZoneInventory(MessagePart):
    """One zone and its nodes."""

    nodes: Count
    healthy_nodes: Count
    marked: MarkedNodes | None = None
    """Isolation in which its nodes say they are; None: none of them says so."""


class Zones(Message):
    """Inventory: the zones of a cluster, and what is to be known before one of them may go."""

    type: ClassVar[str] = "dev.alert-reactor.zones.v1"

    cluster: Name
    zones: dict[str, ZoneInventory]
    demand_nodes: Count | None = None
    """Number of healthy nodes that the cluster needs; None: not known."""
    quorum_members: dict[str, Count] = {}
    """Members of services that need a majority and are ready, by zone."""
    quorum_size: Count | None = None
    """Number of members, including those that are not ready; None: as many as quorumMembers has."""
    single_zone_services: tuple[str, ...] = ()
    """Services all of whose copies are in one zone, as `namespace/name` or `zone:namespace/name`."""
    leases_expired: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    """Share of expired node leases, by zone."""
    api_reachable: bool = True
    """True if the cluster could be asked at all."""
    maintenance: str = ""
    """Maintainer of the cluster, and the reason; empty: there is no maintenance. No zone is isolated meanwhile."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return f"zone/{self.cluster}"


class ZoneStep(ActionMessage):
    """Do, or undo, one step of a zone's isolation. Probes the current state before it acts."""

    type: ClassVar[str] = "dev.alert-reactor.zone-step.v1"

    cluster: Name
    zone: Name
    """The zone's name, as nodes carry it."""
    zone_id: str = ""
    """The provider's own id of the zone."""
    carrier: Literal["Kubernetes", "Gardener"]
    phase: Phase
    status: ZoneStatus
    step: Name
    undo: bool = False
    settings: dict[str, Any] = {}
    """Settings of the rule for this step."""

    @property
    def summary(self) -> str:
        return f"{'undo' if self.undo else 'do'} {self.step} of {self.phase} on {self.object}"

    @property
    def shown(self) -> dict[str, Any]:
        said = {"phase": self.phase, "status": self.status, "step": self.step}
        return said | {"undo": True} if self.undo else said

    @property
    def peers(self) -> frozenset[str]:
        return frozenset({self.cluster})

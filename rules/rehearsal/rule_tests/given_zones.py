"""Zones and commands in a rule test, with the keys of histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from bus.messages import (
    AnyCommand,
    Approve,
    FailbackTraffic,
    FailbackZone,
    FailoverTraffic,
    IsolateZone,
    MarkedNodes,
    Pause,
    Reject,
    ReleaseTraffic,
    Resume,
    RetryZone,
    ZoneInventory,
    Zones,
)
from rules.rehearsal.simulation import at
from rules.rulefile.model import YEAR, ClusterName, Model

Text = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class MarkedGiven(Model):
    """Isolation in which the nodes of a zone say they are, by their annotations."""

    rule: Text
    """The rule that has isolated the zone."""
    nodes: Count
    """Number of fenced nodes."""
    by: Annotated[str, StringConstraints(max_length=253)] = ""
    """Person who has asked for the isolation; empty: the rule itself."""
    practice: bool = False
    """True for a drill."""
    released: Count = 0
    """Number of nodes that its way back has let go."""


class ZoneGiven(Model):
    """One zone's nodes."""

    nodes: Count
    healthy_nodes: Count
    marked: MarkedGiven | None = None
    """Isolation in which the nodes say they are, where its record was lost."""


class ZonesGiven(Model):
    """The zones of a cluster. Without them no rule isolates one."""

    cluster: ClusterName
    zones: Mapping[Text, ZoneGiven]
    demand_nodes: Count | None = None
    quorum_members: Mapping[Text, Count] = {}
    quorum_size: Count | None = None
    single_zone_services: tuple[Text, ...] = ()
    leases_expired: Mapping[Text, Annotated[float, Field(ge=0, le=1)]] = {}
    api_reachable: bool = True
    maintenance: Annotated[str, StringConstraints(max_length=1024)] = ""
    """Person or tool that maintains the cluster: no zone is isolated meanwhile. Empty: no maintenance."""

    def fact(self, second: float) -> Zones:
        """Inventory of the zones at this second."""
        zones = {
            name: ZoneInventory(
                nodes=one.nodes,
                healthy_nodes=one.healthy_nodes,
                marked=MarkedNodes(**one.marked.model_dump(by_alias=False)) if one.marked is not None else None,
            )
            for name, one in self.zones.items()
        }
        return Zones(
            cluster=self.cluster, zones=zones, demand_nodes=self.demand_nodes,
            quorum_members=dict(self.quorum_members), quorum_size=self.quorum_size,
            single_zone_services=self.single_zone_services, leases_expired=dict(self.leases_expired),
            api_reachable=self.api_reachable, maintenance=self.maintenance, observed_at=at(second),
        )  # fmt: skip


class GivenCommand(Model):
    """A command to a rule, or to all rules that match a pattern."""

    rule: Text
    by: Text = "tester"
    reason: Text = "test"


class Stopped(GivenCommand):
    """A pause."""

    for_seconds: Annotated[float, Field(gt=0, le=YEAR)] | None = None


class Approved(GivenCommand):
    """An approval."""

    object: Annotated[str, StringConstraints(min_length=1, max_length=1100)]


class Rejected(Approved):
    """A rejection."""

    for_seconds: Annotated[float, Field(gt=0, le=YEAR)] = 3600


class OfZone(GivenCommand):
    """A command about a zone."""

    zone: Text


class Isolated(OfZone):
    """Take the zone out of service."""

    force: bool = False
    allow_single_zone: tuple[Text, ...] = ()


class Opened(OfZone):
    """Bring the zone back."""

    force: bool = False


class OfTraffic(GivenCommand):
    """A command about the traffic of a rule."""

    object: Annotated[str, StringConstraints(min_length=1, max_length=1100)] | None = None
    """The route; all routes of the rule by default."""


class Returned(OfTraffic):
    """Bring it back."""

    for_seconds: Annotated[float, Field(gt=0, le=YEAR)] | None = None
    force: bool = False


class Moved(Returned):
    """Move it away."""

    to: tuple[Text, ...] = ()


class Commanded(Model):
    """A command, from a second on. Exactly one of its kinds."""

    at: Annotated[float, Field(ge=0, le=YEAR)]
    pause: Stopped | None = None
    resume: GivenCommand | None = None
    approve: Approved | None = None
    reject: Rejected | None = None
    isolate_zone: Isolated | None = None
    failback_zone: Opened | None = None
    retry_zone: OfZone | None = None
    failover_traffic: Moved | None = None
    failback_traffic: Returned | None = None
    release_traffic: OfTraffic | None = None

    @property
    def given(self) -> Mapping[str, GivenCommand]:
        """The kinds that it has; one, where it is right."""
        return {name: word for name in COMMANDS if isinstance(word := getattr(self, name), GivenCommand)}

    def fact(self) -> AnyCommand:
        """The command as rules receive it."""
        name, word = next(iter(self.given.items()))
        return COMMANDS[name](**word.model_dump(by_alias=False), observed_at=at(self.at))


COMMANDS: Mapping[str, type[AnyCommand]] = {
    "pause": Pause, "resume": Resume, "approve": Approve, "reject": Reject, "isolate_zone": IsolateZone,
    "failback_zone": FailbackZone, "retry_zone": RetryZone, "failover_traffic": FailoverTraffic,
    "failback_traffic": FailbackTraffic, "release_traffic": ReleaseTraffic,
}  # fmt: skip

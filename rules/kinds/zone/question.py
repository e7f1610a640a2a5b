"""The question whether a zone may be taken out of service: all that is known, and how much has to be left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one zone."""

    nodes: int
    healthy: int


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Limits of an admission. The defaults are those of the rule."""

    toleration: timedelta = timedelta(seconds=300)
    toleration_seconds: float = 300
    """Toleration as the rule has it; `toleration` is longer by the clock skew."""
    cooldown: timedelta = timedelta(seconds=1800)
    expired_lease_fraction: float = 0.6
    """dependency-watchdog's: from here on it is rather the watcher that has lost sight."""
    healthy_share: float = 0.75
    """Of the remaining nodes."""
    demand_share: float = 1.0
    """Of the nodes that are needed."""
    quorum_share: float = 0.5
    """More than this share of the members has to stay: a majority."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """All that is known when a zone is to be isolated."""

    zone: str
    zones: Mapping[str, Nodes]
    isolated: tuple[str, ...] = ()
    in_progress: str | None = None
    """The zone that another operation is about."""
    maintenance: str = ""
    """Person or tool that maintains the cluster; empty: no maintenance."""
    since_last_ended: timedelta | None = None
    """Since the last isolation of the cluster was over; None: there was none."""
    paused: str = ""
    """Person who has paused the rule, and why; empty: not paused."""
    api_reachable: bool = True
    expired_elsewhere: float = 0.0
    """Share of the expired leases in the other zones."""
    expired_what: str = "leases elsewhere have expired"
    """Description of that share for people."""
    bad_elsewhere: tuple[str, ...] = ()
    """Other zones that are bad or Unknown, in words."""
    seconds_bad: float = 0.0
    """Since the zone was bad without a break."""
    sources_bad: tuple[str, ...] = ()
    """Signals that have said so without a break for as long."""
    sources_new: tuple[str, ...] = ()
    """Those that say so now, however long."""
    demand_nodes: int | None = None
    quorum_members: Mapping[str, int] = field(default_factory=dict)
    """Those that are ready, by zone."""
    quorum_size: int | None = None
    """All, also those that are not ready; None: as many as are."""
    single_zone_services: tuple[str, ...] = ()
    by_hand: bool = False
    force: bool = False


def expired_share(leases: int, expired: float) -> float:
    """Give the share of expired leases; a single one never says that the world is down (as in dependency-watchdog)."""
    return round(expired / leases, 9) if leases > 1 else 0.0

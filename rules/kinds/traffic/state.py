"""State of a route's traffic: its failover and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from bus.messages import Health
from rules.core.group import Group
from rules.core.member import LONG_AGO
from rules.core.values import replace


@dataclass(frozen=True, slots=True)
class BackendStretch:
    """Status of a backend, and the time since which it has been seen without a break."""

    status: Health
    since: datetime

    def restarted_at(self, after: BackendStretch | None) -> datetime | None:
        """Give when a later stretch of the same status began; None: it goes on, or is another."""
        anew = after is not None and self.status is after.status and after.since > self.since
        return after.since if after is not None and anew else None


@dataclass(frozen=True, slots=True)
class Flap:
    """A backend that traffic has left because it was bad."""

    away: bool
    """True until it has its traffic back; in a trial it has not."""
    left_at: datetime
    failures: int = 0
    """Number of failures in a row: in a trial, or soon after its return."""
    returned_at: datetime | None = None
    """Time at which it last got its traffic back."""
    good_since: datetime | None = None
    """Since when no signal says that it is bad, or since its last trial failed; None: one does. Restarted
    by the first look after a time in which a source did not look."""
    seen: Mapping[str, BackendStretch] = field(default_factory=dict)
    """Status by signal, and since when without a break; only where its trial waits for all signals."""


@dataclass(frozen=True, slots=True)
class TrialState:
    """The primary has its percent, and is looked at."""

    began_at: datetime
    readings: Mapping[str, int] = field(default_factory=dict)
    """Healthy readings that count, by signal."""
    passed: bool = False
    failed: str = ""
    """Reason why it has failed; empty: it has not."""


@dataclass(frozen=True, slots=True)
class Override:
    """A person's command where the traffic is to be."""

    by: str
    reason: str
    since: datetime
    until: datetime | None = None
    """End of the override; None: until it is released."""
    home: bool = False
    """At the primary; else at `to`."""
    to: tuple[str, ...] = ()
    """The services that are meant; empty: those that were ready."""
    forced: bool = False
    """Without proof: what was named is not left for being bad."""
    weights: Mapping[str, int] | None = None
    """Weights that follow from it; None: not yet decided."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Another writer has changed the weights, and the rule leaves them so."""

    since: datetime
    before: Mapping[str, int]
    """The weights at that time."""


@dataclass(frozen=True, slots=True)
class Spill:
    """Change of weights that the tiers call for, and that has to last before it is made."""

    since: datetime
    rising: bool
    """The primary is to get more; else less, or as much as it has."""
    stretches: Mapping[str, BackendStretch] = field(default_factory=dict)
    """Of the backends that call for it, by service."""


@dataclass(frozen=True, slots=True)
class RefusedCommand:
    """A command that was not followed."""

    detail: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FailoverState:
    """Progress of a route's failover and return."""

    flaps: Mapping[str, Flap] = field(default_factory=dict)
    """By service."""
    trial: TrialState | None = None
    override: Override | None = None
    drift: Drift | None = None
    spill: Spill | None = None
    """Only with `overflow`."""
    commanded_at: datetime | None = None
    """Time of the newest command."""
    refused: RefusedCommand | None = None


@dataclass(frozen=True, slots=True)
class RouteState:
    """A route as it was last seen."""

    backends: tuple[tuple[str, int], ...]
    """Service and weight, in the route's order; a service may be given twice."""
    observed_at: datetime
    exists: bool = True
    problem: str = ""
    primary: str | None = None
    """By annotation; None: no annotation."""
    healthy: Mapping[str, int] = field(default_factory=dict)
    """Weights remembered from before the first failover."""
    written: Mapping[str, int] | None = None
    """The weights of the last action, once they were carried out and while no other is asked for."""
    disturbed: Mapping[str, int] | None = None
    """The weights before another writer changed them; None: no other writer has since our last write."""
    primary_changed: bool = False
    """Its annotation has named another primary since our last write."""
    life: str = ""
    """Of a load balancer that forgets its weights when it starts: which start this is."""
    lost: Mapping[str, int] | None = None
    """The weights to write again since it has forgotten them; None: they were seen there since."""
    sum_to: int = 0
    """Of a kind of the settings': what its weights have to add up to; 0: their ratio counts."""
    all_zero: bool = False
    """Of a kind of the settings': whether all of them may be zero."""


@dataclass(frozen=True, slots=True)
class TrafficState:
    """A route, and how its traffic goes away and comes back."""

    route: RouteState | None = None
    """Newest inventory of the route; None: not listed yet."""
    asked: Mapping[str, int] | None = None
    """DryRun: what the weights would be had the rule acted."""
    step: int | None = None
    """The step of a gradual return that is asked for."""
    step_at: datetime | None = None
    """Time at which that step was carried out."""
    failover: FailoverState | None = None
    """None: nothing has failed yet, and no person has changed the traffic."""


def without_dates(state: TrafficState) -> TrafficState:
    """Give the state without the date at which the route was last seen."""
    route = state.route
    return state if route is None else replace(state, route=replace(route, observed_at=LONG_AGO))


TrafficGroup: TypeAlias = Group[TrafficState]

"""Limits as algorithms: how much a share is, when the next token is due, how disrupted peers are.

Percentages are computed in whole numbers: 55% of 20 is 11, whatever floats make of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from math import ceil

from rules.core.reasons import Held
from rules.rulefile.guards import Guards, Rounding

WHOLE = 1 - 1e-9
"""A token that floats have nearly filled is whole: else the moment at which it is due would come twice."""
PARTIAL_MIN = 3
"""Fewer bad peers than this are no disruption (Kubernetes: more than two)."""


def amount(share: int | str, total: int, rounding: Rounding) -> int:
    """Give a count as it is, and a percentage of the total as a count."""
    if isinstance(share, int):
        return share
    exact = Fraction(share.removesuffix("%")) * total / 100
    return ceil(exact) if rounding == "Up" else int(exact)


@dataclass(frozen=True, slots=True)
class PeerHealth:
    """Peers selected by a guard: `total`, and `bad` = Unhealthy or Unknown."""

    total: int
    bad: int
    """Unhealthy, or Unknown."""

    @property
    def good(self) -> int:
        return self.total - self.bad


def widespread(guards: Guards, peers: PeerHealth) -> tuple[Held, str] | None:
    """Give why so many bad peers are reason enough to do nothing: Cluster API's and the node healthcheck's gates.

    What is equal to a limit is allowed.
    """
    rounding = guards.rounding or "Down"
    if guards.max_unhealthy is not None:
        most = amount(guards.max_unhealthy, peers.total, rounding)
        if peers.bad > most:
            limit = f"maxUnhealthy {guards.max_unhealthy} allows {most}"
            return Held.WIDESPREAD_FAILURE, f"{peers.bad} of {peers.total} peers are bad, {limit}"
    if guards.min_healthy is not None:
        least = amount(guards.min_healthy, peers.total, rounding)
        if peers.good < least:
            limit = f"minHealthy {guards.min_healthy} asks for {least}"
            return Held.WIDESPREAD_FAILURE, f"{peers.good} of {peers.total} peers are healthy, {limit}"
    return None


class DisruptionBudget(StrEnum):
    """Share of bad peers, in the words of the Kubernetes node lifecycle controller."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


def disrupted(guards: Guards, peers: PeerHealth) -> DisruptionBudget:
    """Give the state of the peers (ComputeZoneState); without the guard it is always normal."""
    disruption = guards.disruption
    if disruption is None:
        return DisruptionBudget.NORMAL
    if peers.bad and not peers.good:
        return DisruptionBudget.FULL
    threshold = amount(disruption.unhealthy_at, peers.total, disruption.rounding)
    partial = peers.bad >= max(threshold, PARTIAL_MIN)
    return DisruptionBudget.PARTIAL if partial else DisruptionBudget.NORMAL


def rate(guards: Guards, peers: PeerHealth) -> float | None:
    """Give how many actions may begin per second while the peers are like this; None: as many as there are."""
    disruption, state = guards.disruption, disrupted(guards, peers)
    if disruption is None or state is DisruptionBudget.NORMAL:
        return guards.rate_per_second
    if state is DisruptionBudget.FULL or peers.total <= disruption.large_size:
        return 0
    return disruption.secondary_rate_per_second


@dataclass(frozen=True, slots=True)
class RateBucket:
    """A token bucket as a value. It holds one token: what was not used is not made up for."""

    tokens: float = 1
    at: datetime | None = None
    """Time at which `tokens` was computed; None: the bucket is full."""

    def filled(self, rate: float | None, now: datetime) -> RateBucket:
        """Give it as it is now, having filled at this rate since; None: at once."""
        if self.at is None or rate is None:
            return RateBucket()
        tokens = self.tokens + rate * (now - self.at).total_seconds()
        return RateBucket() if tokens >= WHOLE else RateBucket(tokens, now)

    def taken(self, now: datetime) -> RateBucket:
        """Give it with one token less."""
        return RateBucket(self.tokens - 1, now)

    def due(self, rate: float | None) -> datetime | None:
        """Give the moment at which it is full, filling at this rate; None: it is, or never will be."""
        if self.at is None or not rate:
            return None
        return self.at + timedelta(microseconds=ceil((1 - self.tokens) / rate * 1_000_000))

"""State of a limiter: its queue, tokens and peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, TypeAlias

from bus.messages import AcquireRequest
from rules.core.group import Group
from rules.core.member import LONG_AGO
from rules.core.values import replace


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A group's acquire request in the queue of a limiter, with the answer."""

    IDENTITY: ClassVar = ("rule", "object")
    rule: str
    object: str
    generation: int
    since: datetime
    """Time at which it took its place in the queue."""
    said_at: datetime
    """Time of the newest acquire request received for it."""
    wanted: bool = True
    """False: given back. Remembered for a while, so that a late word does not revive it."""
    slot: bool = False
    """True while it counts as in flight: from its first grant until it is given back."""
    paid: bool = False
    """True once it has spent its token."""
    granted: bool = False
    reason: str = ""
    """Reason why it is not granted; empty: granted."""
    detail: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Rule and object of the request."""
        return self.rule, self.object


@dataclass(frozen=True, slots=True)
class Listed:
    """Last inventory of a peer."""

    exists: bool
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class LimiterState:
    """A guard that several groups share."""

    queue: tuple[QueuedRequest, ...] = ()
    """In the order in which they are served."""
    inbox: tuple[AcquireRequest, ...] = ()
    """Received in this step and not in the queue yet; never stored."""
    tokens: float = 1
    tokens_at: datetime | None = None
    rate: float | None = None
    """Tokens per second since then; None: no limit."""
    listed: Mapping[str, Listed] = field(default_factory=dict)
    """Peers by inventory."""


def without_dates(state: LimiterState) -> LimiterState:
    """Give the state without the dates at which the peers were last listed."""
    return replace(state, listed={name: replace(one, observed_at=LONG_AGO) for name, one in state.listed.items()})


LimiterGroup: TypeAlias = Group[LimiterState]

"""What a guard remembers of the groups that it limits, and what a group remembers of its guards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bus.messages import AcquireRequest, Health


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """What one group has asked a guard for, and the answer."""

    rule: str
    object: str
    generation: int
    since: datetime
    """When it took its place in the queue."""
    said_at: datetime
    """When the group last said so."""
    wanted: bool = True
    """False: given back. Remembered for a while, so that a late word does not revive it."""
    slot: bool = False
    """It counts as in flight: from its first grant until it is given back."""
    paid: bool = False
    """It has had its token."""
    granted: bool = False
    reason: str = ""
    """Why not."""
    detail: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Whose request it is: rule and object."""
        return self.rule, self.object


@dataclass(frozen=True, slots=True)
class Listed:
    """What the inventory last said of a peer."""

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


@dataclass(frozen=True, slots=True)
class QuorumState:
    """What a Quorum source last said of its target."""

    status: Health
    detail: str
    said_at: datetime
    since: datetime | None = None
    """Since when it has been so; None: since `said_at`."""
    proven_until: datetime | None = None
    """Until when its members' words prove it."""
    wanted_from: datetime | None = None
    """It was asked for what the members show at this moment or later, and has not said it yet."""
    healthy_percent: float | None = None
    """How many of its members are Healthy; None: said by a version that did not count."""


@dataclass(frozen=True, slots=True)
class GrantRequest:
    """One guard's part of a request."""

    generation: int
    """Of this request: a reply to an older one means nothing."""
    since: datetime
    """When it was first asked."""
    said_at: datetime
    """When it was last asked."""
    spent: bool = False
    """Something was done by it: what is wanted after that is requested anew."""
    granted: bool | None = None
    """None: no answer yet."""
    reason: str = ""
    detail: str = ""
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person was asked to approve."""

    desired: str
    """A fingerprint: the yes holds for exactly this."""
    asked_at: datetime
    approved_at: datetime | None = None
    named: bool = False
    """The yes says to what: it counts also when it comes late."""
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A person's no to a plan."""

    desired: str
    """The plan's fingerprint."""
    by: str
    reason: str
    since: datetime
    until: datetime
    """Before this the same is not asked for again."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What a group has asked its guards and people for, and what they said."""

    generation: int = 0
    """Of the last request that was made; no two requests of a group ever have the same one."""
    asked: Mapping[str, GrantRequest] = field(default_factory=dict)
    """By guard. A guard is asked once those before it have granted."""
    request: ApprovalRequest | None = None
    rejected: tuple[Rejection, ...] = ()
    """What people said no to, the newest last. It outlives the request: what is dropped may be wanted again."""

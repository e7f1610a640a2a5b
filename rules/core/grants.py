"""What a group has asked its guards and people for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar


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
    """Something was done by it: what is wanted after that is requested again."""
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

    IDENTITY: ClassVar = ("desired", "by", "since")
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

"""Requests of a group to its guards and to people, and the answers."""

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
    """Time of the first request."""
    said_at: datetime
    """Time of the newest repetition of the request."""
    spent: bool = False
    """Something was done by it: what is wanted after that is requested again."""
    granted: bool | None = None
    """Answer of the guard; None: not answered yet."""
    reason: str = ""
    detail: str = ""
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """Plan that a person is asked to approve, and the approval."""

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
    """Requests of a group to its guards and to people, and their answers."""

    generation: int = 0
    """Of the last request that was made; no two requests of a group ever have the same one."""
    asked: Mapping[str, GrantRequest] = field(default_factory=dict)
    """By guard. A guard is asked once those before it have granted."""
    request: ApprovalRequest | None = None
    rejected: tuple[Rejection, ...] = ()
    """Rejected plans, the newest last. They outlive the request: a plan that was dropped may be wanted again."""

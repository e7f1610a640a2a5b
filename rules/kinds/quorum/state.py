"""State of a Quorum source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from bus.messages import Health
from rules.core.group import Group


@dataclass(frozen=True, slots=True)
class Judgement:
    """Newest observation that a Quorum source has made of its target."""

    status: Health
    detail: str
    said_at: datetime
    since: datetime | None = None
    """Since when it has been so; None: since `said_at`."""
    proven_until: datetime | None = None
    """Until when its members' words prove it."""
    wanted_from: datetime | None = None
    """Earliest moment for which a look was asked that it has not answered yet; None: none is open."""
    healthy_percent: float | None = None
    """Healthy members in percent; None: made by a version that did not count."""
    wanted_until: datetime | None = None
    """The last of these; None: there is one at most."""


@dataclass(frozen=True, slots=True)
class QuorumState:
    """A Quorum source."""

    said: Judgement | None = None
    """None: it has made no observation yet."""


QuorumGroup: TypeAlias = Group[QuorumState]

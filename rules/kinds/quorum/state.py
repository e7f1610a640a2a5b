"""What is remembered of a Quorum source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from bus.messages import Health
from rules.core.group import Group


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a Quorum source last said of its target."""

    status: Health
    detail: str
    said_at: datetime
    since: datetime | None = None
    """Since when it has been so; None: since `said_at`."""
    proven_until: datetime | None = None
    """Until when its members' words prove it."""
    wanted_from: datetime | None = None
    """It was asked for what the members show at this moment or later, and has not said it yet: the first of these."""
    healthy_percent: float | None = None
    """How many of its members are Healthy; None: said by a version that did not count."""
    wanted_until: datetime | None = None
    """The last of these; None: there is one at most."""


@dataclass(frozen=True, slots=True)
class QuorumState:
    """A Quorum source."""

    said: Judgement | None = None
    """None: it has not spoken yet."""


QuorumGroup: TypeAlias = Group[QuorumState]

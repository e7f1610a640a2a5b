"""State of a target that people are notified about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rules.core.group import Group


@dataclass(frozen=True, slots=True)
class NotificationState:
    """A target."""

    last_notified: str | None = None
    """The status that people were last told: Healthy or Unhealthy; None: nothing yet."""


NotificationGroup: TypeAlias = Group[NotificationState]

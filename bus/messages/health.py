"""A target's health."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field

from bus.messages.base import Health, Message, Name, Target, Text


class Observation(Message):
    """A target's health as one source saw it at one moment."""

    type: ClassVar[str] = "dev.alert-reactor.observation.v1"

    target: Target
    status: Health
    signal: Name = "health"
    """Which of several opinions about the target this is; the source's name by default."""
    observed_at: AwareDatetime
    """When it was seen, by the source's clock."""
    stale_seconds: Annotated[float, Field(gt=0, le=86_400 * 366)] | None = None
    """Seconds after which silence makes it Unknown; None: it never goes stale."""
    resolved: bool = False
    """Unknown because an alert was resolved without proof: another signal's Healthy settles it."""
    labels: dict[str, Text] = {}
    detail: Text = ""
    """One line for people: what was seen (`HTTP 503`)."""

    @property
    def about(self) -> str:
        return self.target

"""What groups and the guards that they share say to each other."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field

from bus.messages.base import Message, Name, ObjectName, Text


class Claim(Message):
    """A group asks its guard for leave to act, or gives it back."""

    type: ClassVar[str] = "dev.alert-reactor.claim.v1"

    guard: Name
    rule: Name
    object: ObjectName
    generation: Annotated[int, Field(ge=0)]
    """Which desired state of the group: a reply to an older one means nothing."""
    wanted: bool = True
    """False: what was asked for is no longer wanted."""
    what: Text = ""
    """For people: what would be done."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.guard


class Verdict(Message):
    """A guard's answer."""

    type: ClassVar[str] = "dev.alert-reactor.verdict.v1"

    guard: Name
    rule: Name
    object: ObjectName
    generation: Annotated[int, Field(ge=0)]
    granted: bool
    reason: str = ""
    detail: Text = ""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.object

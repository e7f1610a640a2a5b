"""The limiter protocol: a group asks for a grant, the limiter of a shared guard replies."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field

from bus.messages.base import Message, Name, ObjectName, Text


class AcquireRequest(Message):
    """A group asks the limiter of a shared guard for a grant to act, or gives one back."""

    type: ClassVar[str] = "dev.alert-reactor.acquire-request.v1"

    guard: Name
    rule: Name
    object: ObjectName
    generation: Annotated[int, Field(ge=0)]
    """Generation of the group's desired state: a reply to an older one means nothing."""
    wanted: bool = True
    """False: what was asked for is no longer wanted."""
    what: Text = ""
    """Text for people: what would be done."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.guard


class AcquireReply(Message):
    """The limiter's reply to an AcquireRequest."""

    type: ClassVar[str] = "dev.alert-reactor.acquire-reply.v1"

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

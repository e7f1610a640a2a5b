"""A target's health."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field, StringConstraints

from bus.messages.base import Health, Message, MessagePart, Name, Target, Text


class Observation(Message):
    """A target's health as one source saw it at one moment."""

    type: ClassVar[str] = "dev.alert-reactor.observation.v1"

    target: Target
    status: Health
    signal: Name = "health"
    """Name of this one of several opinions about the target; the source's name by default."""
    observed_at: AwareDatetime
    """Time at which it was seen, by the source's clock."""
    stale_seconds: Annotated[float, Field(gt=0, le=86_400 * 366)] | None = None
    """Seconds after which silence makes it Unknown; None: it never goes stale."""
    resolved: bool = False
    """Unknown because an alert was resolved without proof. A signal that was Unhealthy too settles it by Healthy."""
    gone: bool = False
    """Unknown because the object behind the target was deleted, which is proven: it is not silent, it is no more."""
    labels: dict[str, Text] = Field(default_factory=dict, json_schema_extra={"default": {}})
    source: Annotated[str, StringConstraints(max_length=253)] = ""
    """The source that can be asked to look again (`bus.subjects.refresh`). Empty: none can, and what it says holds for
    `valid_seconds`."""
    since: AwareDatetime | None = None
    """Since when the source has seen this status without a break. None: it does not say; it goes on from what the same
    signal said before."""
    valid_seconds: Annotated[float, Field(ge=-86_400 * 366, le=86_400 * 366)] | None = None
    """Seconds after `observed_at` for which it proves how the target is; less than 0: what is repeated was last seen so
    many seconds before. None: until it is stale, or at `observed_at` where there is a `source` to ask."""
    version: Annotated[str, StringConstraints(max_length=64)] = ""
    """The state of the observed objects. The same one as before: nothing has changed in between, for any observer."""
    resolution_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0
    """The source cannot see changes shorter than this. A longer time without a look breaks `since`."""
    unanswered_until: AwareDatetime | None = None
    """Time at which the look ended without an answer to the question of `observed_at`. None: there was one."""
    doubted: bool = False
    """An API server has answered that this is gone, and is not believed yet: this is how it was before."""
    healthy_percent: Annotated[float, Field(ge=0, le=100)] | None = None
    """Percent of the target that is healthy, such as endpoints that are ready of all; None: the source does not say."""
    detail: Text = ""
    """One line for people: what was seen (`HTTP 503`)."""

    @property
    def about(self) -> str:
        return self.target


class RefreshRequest(MessagePart):
    """Asks a source for what it sees of these targets at `not_before` or later. The answer is an Observation of each.

    Sent on a core subject and stored nowhere: the process that needs the answer asks again until it has come.
    """

    targets: tuple[Target, ...]
    not_before: AwareDatetime

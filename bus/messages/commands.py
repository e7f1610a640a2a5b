"""People's words."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field, StringConstraints

from bus.messages.base import Message, Name, ObjectName, Words
from bus.subjects import token

ForSeconds = Annotated[float, Field(gt=0, le=366 * 86_400)]


class Command(Message):
    """Command of a person: without a person and a reason it is no command."""

    rule: Name
    by: Name
    """Name of the person, as given by that person."""
    user: Annotated[str, StringConstraints(max_length=43)] = ""
    """The user of the bus who published it: the last token of its subject, which the server's permissions bind."""
    reason: Words
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.rule

    @property
    def who(self) -> str:
        """The user, and in quotes the name that was given beside it, where that is another one."""
        if not self.user:
            return self.by
        return self.user if token(self.by) == self.user else f'{self.user} as "{self.by}"'


class Pause(Command):
    """Rules whose names match do not act until they are resumed, or the time is over. `rule` is a pattern; `*`: all."""

    type: ClassVar[str] = "dev.alert-reactor.pause.v1"

    for_seconds: ForSeconds | None = None
    """Seconds from `observedAt` on for which it lasts; by default until they are resumed."""


class Resume(Command):
    """Ends a pause. `rule` is a pattern."""

    type: ClassVar[str] = "dev.alert-reactor.resume.v1"

    reason: Words = ""


class Approve(Command):
    """Approval of the action that a rule in mode Approve asks for."""

    type: ClassVar[str] = "dev.alert-reactor.approve.v1"

    object: ObjectName
    """Object of the action that waits, as its hold names it."""
    request: Annotated[str, StringConstraints(max_length=64)] = ""
    """Fingerprint of what was shown: the yes counts for nothing else. Empty: whatever was asked for last."""


class Reject(Command):
    """Rejection of the action that a rule asks for, and of asking for it again for a while."""

    type: ClassVar[str] = "dev.alert-reactor.reject.v1"

    object: ObjectName
    """Object of the action that waits, as its hold names it."""
    request: Annotated[str, StringConstraints(max_length=64)] = ""
    """Fingerprint of what was shown: the no counts for nothing else. Empty: whatever was asked for last."""
    for_seconds: ForSeconds = 3600
    """Seconds, from `observedAt` on, for which the same is not asked for again."""


class FailoverTraffic(Command):
    """Move a route's traffic away from its primary now, until the time is over or it is released."""

    type: ClassVar[str] = "dev.alert-reactor.failover-traffic.v1"

    object: ObjectName | None = None
    """Route of the rule; all by default."""
    to: tuple[Name, ...] = ()
    """The services that get it; by default the ready secondaries."""
    for_seconds: ForSeconds | None = None
    """Seconds for which it lasts; by default until it is released."""
    force: bool = False
    """True: also to what is not Healthy."""


class FailbackTraffic(Command):
    """Bring a route's traffic back to its primary now, until the time is over or it is released."""

    type: ClassVar[str] = "dev.alert-reactor.failback-traffic.v1"

    object: ObjectName | None = None
    """Route of the rule; all by default."""
    for_seconds: ForSeconds | None = None
    """Seconds for which it lasts; by default until it is released."""
    force: bool = False
    """True: also if the primary is not Healthy."""


class ReleaseTraffic(Command):
    """The rule decides by itself again."""

    type: ClassVar[str] = "dev.alert-reactor.release-traffic.v1"

    object: ObjectName | None = None
    """Route of the rule; all by default."""


class IsolateZone(Command):
    """Take the zone out of service."""

    type: ClassVar[str] = "dev.alert-reactor.isolate-zone.v1"

    zone: Name
    force: bool = False
    """Skip the guards that can be forced."""
    allow_single_zone: tuple[Name, ...] = ()
    """Services that may go down with the zone: `namespace/name`."""


class FailbackZone(Command):
    """Remove the isolation: aborts one that is being carried out, brings a finished one back."""

    type: ClassVar[str] = "dev.alert-reactor.failback-zone.v1"

    zone: Name
    force: bool = False
    """True: without proof that the zone is healthy, for which a person answers."""


class RetryZone(Command):
    """Go on after a step has failed."""

    type: ClassVar[str] = "dev.alert-reactor.retry-zone.v1"

    zone: Name

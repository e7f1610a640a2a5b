"""People's words."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field, StringConstraints

from bus.messages.base import Message, Name, ObjectName, Words
from bus.subjects import token

ForSeconds = Annotated[float, Field(gt=0, le=366 * 86_400)]


class Command(Message):
    """What every command carries: a command without a person and a reason is no command."""

    rule: Name
    by: Name
    """Who says so, as they say themselves."""
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
    """How long, from `observedAt` on; until they are resumed by default."""


class Resume(Command):
    """Ends a pause. `rule` is a pattern."""

    type: ClassVar[str] = "dev.alert-reactor.resume.v1"

    reason: Words = ""


class Approve(Command):
    """What a rule in mode Approve asks for, may be done."""

    type: ClassVar[str] = "dev.alert-reactor.approve.v1"

    object: ObjectName
    """Of the action that waits, as its hold names it."""
    request: Annotated[str, StringConstraints(max_length=64)] = ""
    """Fingerprint of what was shown: the yes counts for nothing else. Empty: whatever was asked for last."""


class Reject(Command):
    """What a rule asks a person for, is not to be done, and not to be asked for again for a while."""

    type: ClassVar[str] = "dev.alert-reactor.reject.v1"

    object: ObjectName
    """Of the action that waits, as its hold names it."""
    request: Annotated[str, StringConstraints(max_length=64)] = ""
    """Fingerprint of what was shown: the no counts for nothing else. Empty: whatever was asked for last."""
    for_seconds: ForSeconds = 3600
    """How long the same is not asked for again, from `observedAt` on."""


class FailoverTraffic(Command):
    """Move a route's traffic away from its primary now, until the time is over or it is released."""

    type: ClassVar[str] = "dev.alert-reactor.failover-traffic.v1"

    object: ObjectName | None = None
    """Which of the rule's routes; all by default."""
    to: tuple[Name, ...] = ()
    """The services that get it; by default the ready secondaries."""
    for_seconds: ForSeconds | None = None
    """How long; until it is released by default."""
    force: bool = False
    """Also to what is not Healthy."""


class FailbackTraffic(Command):
    """Bring a route's traffic back to its primary now, until the time is over or it is released."""

    type: ClassVar[str] = "dev.alert-reactor.failback-traffic.v1"

    object: ObjectName | None = None
    """Which of the rule's routes; all by default."""
    for_seconds: ForSeconds | None = None
    """How long; until it is released by default."""
    force: bool = False
    """Also if the primary is not Healthy."""


class ReleaseTraffic(Command):
    """The rule decides by itself again."""

    type: ClassVar[str] = "dev.alert-reactor.release-traffic.v1"

    object: ObjectName | None = None
    """Which of the rule's routes; all by default."""


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
    """Without proof that the zone is healthy: a person answers for it."""


class RetryZone(Command):
    """Go on after a step has failed."""

    type: ClassVar[str] = "dev.alert-reactor.retry-zone.v1"

    zone: Name

"""Context of all steps of an isolation: the zone, its clients and settings, and the time for a call.

Terminal
└── Declined       (outcomes.py) the zone cannot be isolated so: a person has to change something
Retryable
├── InProgress     the step has not reached its end yet: the numbers say how far it is; ask again with the same action
└── Maintained     the complete isolation was checked again, unchanged; ask again with the same action in a minute
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bus.messages import Fact, ZoneStep
from reactor.actions.execution import ExecutionContext
from reactor.actions.guarded import GuardedEc2, GuardedKube
from reactor.actions.zone.origin import IsolationOrigin
from reactor.actions.zone.step_settings import StepSettings
from reactor.clients import aws
from reactor.clients.aws import Ec2
from reactor.clients.instant_queries import Sample
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable

CALL_SECONDS = 6.0
"""Seconds within which one call may begin writes."""
WRITE_SECONDS = aws.CONNECT_SECONDS + aws.READ_SECONDS
"""Seconds that one write may take: a call is over after both, which is under the 15 s after which an action without an
outcome is published again, and after which another process may begin to undo it."""


QueryPrometheus = Callable[[str, str], Awaitable[Sequence[Sample]]]
"""Gives the series of a query to a Prometheus of the settings, by its name. Raises QueryFailed, QueryRefused."""
Say = Callable[[Fact], Awaitable[None]]
"""Publishes a fact. Raises Retryable."""


class InProgress(Retryable):
    """The step goes on; the message has the numbers."""


class Maintained(Retryable):
    """An isolation in force is never done: nodes may join, and pods slip onto them. The message has the numbers."""


@dataclass(frozen=True, slots=True)
class ZoneWorld:
    """The ways to the world that isolations need. What may be None is missed only by who asks for it."""

    clusters: Callable[[str], Awaitable[KubeApi]]
    """Gives the API of a cluster by its name. Raises SettingsError."""
    ec2: Callable[[str], Awaitable[Ec2]]
    """Gives the EC2 of a region. Raises SettingsError."""
    query: QueryPrometheus | None = None
    say: Say | None = None


def guarded(world: ZoneWorld, context: ExecutionContext) -> ZoneWorld:
    """Give the world with the context before each write to it."""
    tell = world.say

    async def clusters(name: str) -> KubeApi:
        return GuardedKube(await world.clusters(name), context)

    async def ec2(region: str) -> Ec2:
        return GuardedEc2(await world.ec2(region), context)

    async def say(fact: Fact) -> None:
        if tell is not None:
            await context.write(fact.about, lambda: tell(fact))

    return replace(world, clusters=clusters, ec2=ec2, say=say if tell is not None else None)


@dataclass(frozen=True, slots=True)
class IsolationContext:
    """One step of one zone's isolation."""

    action: ZoneStep
    settings: StepSettings
    clock: Clock
    world: ZoneWorld

    @property
    def zone(self) -> str:
        """The zone's name (on AWS its code), as nodes carry it."""
        return self.action.zone

    @property
    def mark(self) -> str:
        """Value of our taints, labels and tags: the provider's ID, which means the same zone in every account, else the
        zone's name."""
        return self.action.zone_id or self.action.zone

    @property
    def origin(self) -> IsolationOrigin:
        """The rule, and the person who has asked for it, as nodes that are fenced say."""
        return IsolationOrigin(self.action.rule, self.settings.by, self.settings.practice)

    @property
    def standing(self) -> bool:
        """True if the isolation is complete, and this call only keeps it so: nodes may have gone, and come, since."""
        return self.action.phase == "Failover" and self.action.status == "Done"

    @property
    def deadline(self) -> datetime:
        """Time at which the step is to be over. Repeats of an action keep `decided_at`, so asking again moves
        nothing."""
        return self.action.decided_at + timedelta(seconds=self.settings.timeout_seconds)

    @property
    def late(self) -> bool:
        """True if the deadline has passed. The moment itself counts as passed."""
        return self.clock.now() >= self.deadline


@dataclass(frozen=True, slots=True)
class StepResult:
    """The step is at its end."""

    wrote: bool
    detail: str = ""
    """Current state for people, with numbers; also what could not be given back, and why."""

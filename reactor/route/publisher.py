"""Publishes facts to the partitions that they concern. Every role that learns a fact uses it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bus import subjects
from bus.envelope import encode
from bus.errors import Unavailable
from bus.messages import Cluster, ClusterTaints, Fact, Observation, Route, Workload, WorkloadCopy, iso
from bus.port import Bus, Outgoing
from reactor.route.rounds import Rounds
from reactor.runtime import tracing
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable
from rules.core.interests import path_of
from rules.engine.routing import PATHS_MAX, Routing


class FactPublisher:
    """Publishes facts under the partitions of the groups that they concern."""

    def __init__(self, bus: Bus, routing: Routing, partitions: int, clock: Clock, *, source: str) -> None:
        """`source`: the CloudEvents source of what is published, such as `/reactor/observer`."""
        self._bus = bus
        self._routing = routing
        self._partitions = partitions
        self._clock = clock
        self._source = source
        self._rounds = Rounds(bus)
        self._known: dict[Sequence[str], Sequence[int]] = {}
        """The partitions of facts that come again and again, by what rules look at to find them: `_key`."""

    @property
    def routing(self) -> Routing:
        """The routing by which it finds the partitions."""
        return self._routing

    def messages(
        self,
        fact: Fact,
        id_: str | None = None,
        trace: str | None = None,
        *,
        also: Iterable[int] = (),
        body: bytes | None = None,
    ) -> Sequence[Outgoing]:
        """Give the messages that carry the fact, one for each partition; none where no rule is concerned.

        `id_`: what makes this fact the same when it is published again. `trace`: the traceparent that it came with;
        default: of what this task does.
        `also`: partitions that it concerns by whatever rules another process uses. `body`: the fact as it came, to
        be passed on like this.
        """
        partitions = self._concerned(fact)
        if also:
            partitions = sorted({*partitions, *also})
        if not partitions:
            return ()
        id_, trace = id_ or _id(fact), trace or tracing.current()
        body = body or encode(fact, id=id_, source=self._source, time=fact.observed_at)
        copies = subjects.of_partitions(_subject(fact), partitions)
        return [
            Outgoing(subject, body, f"{partition}/{id_}", None, trace)
            for partition, subject in zip(partitions, copies, strict=True)
        ]

    def _concerned(self, fact: Fact) -> Sequence[int]:
        """The partitions that it concerns, in order."""
        if (key := _key(fact)) is None:
            return range(self._partitions) if self._routing.everywhere(fact) else self._homes(fact)
        if (known := self._known.get(key)) is None:
            if len(self._known) >= PATHS_MAX:
                self._known.clear()
            known = self._known[key] = self._homes(fact)
        return known

    def _homes(self, fact: Fact) -> Sequence[int]:
        found: set[int] = set()
        for home in self._routing.homes(fact):
            found.add(subjects.partition_of(*home, self._partitions))
            if len(found) == self._partitions:  # thousands of rules may have homes of their own
                break
        return sorted(found)

    async def publish(
        self, fact: Fact, id_: str | None = None, trace: str | None = None, *, also: Iterable[int] = ()
    ) -> None:
        """Publish; return once every partition has stored it. Raises Unavailable."""
        await self._bus.publish_all(self.messages(fact, id_, trace, also=also))

    async def publish_all(self, facts: Iterable[Fact]) -> None:
        """Publish many in one go. Raises Unavailable: some of them may be stored."""
        await self._bus.publish_all([message for fact in facts for message in self.messages(fact)])

    async def tell(self, fact: Fact) -> None:
        """Publish what a source has seen. Raises Retryable: the source owes it, and says it again."""
        try:
            if messages := self.messages(fact):
                await self._rounds.publish(messages)
        except Unavailable as error:
            raise Retryable(str(error)) from error


def _key(fact: Fact) -> Sequence[str] | None:
    """Give all of the fact by which rules find its partitions: of an observation its target and signal, of inventory
    what it is about. None: they look at more of it."""
    if isinstance(fact, Observation):
        return fact.target, fact.signal
    return path_of(fact) if isinstance(fact, Route | Workload | WorkloadCopy | Cluster | ClusterTaints) else None


def _subject(fact: Fact) -> str:
    """Subject of the copy for partition 0."""
    if isinstance(fact, Observation):
        return subjects.observed(0, fact.target, f"{fact.signal}-{fact.status.value}")
    return subjects.fact(0, type(fact).__name__.lower(), fact.about)


def _id(fact: Fact) -> str:
    """Id of a fact: the same for the same fact, whichever process publishes it, and however often."""
    kind = type(fact).__name__.lower()
    signal = f"{fact.signal}/{fact.status.value}/" if isinstance(fact, Observation) else ""
    return f"{kind}/{signal}{iso(fact.observed_at)}/{subjects.token(fact.about)}"

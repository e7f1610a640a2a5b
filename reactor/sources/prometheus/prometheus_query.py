"""PrometheusQuery: a PromQL instant query on a schedule; each series is about one target.

    - name: errors
      kind: PrometheusQuery
      prometheus: main
      query: sum by (service) (rate(http_errors_total[1m])) / sum by (service) (rate(http_requests_total[1m]))
      target: service/east/shop/{service}
      unhealthyWhen: {above: 0.05}     # default Present: a series is Unhealthy, one that leaves is Healthy

A query that fails is logged, once for each reason, and makes all its targets Unknown: no answer is not a healthy one.
So does a series that leaves a query with a bound, and NaN. An answer is dated by its evaluation: one that a cache gives
once more says nothing new. Several series of one target: the worst counts. A source
without labels in its target observes it from the first result on, even an empty one; other targets become known with
their first series.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bus.messages import Health
from reactor.clients.changes import ReadInterval
from reactor.clients.instant_queries import Queries, Sample
from reactor.runtime.errors import Retryable, Terminal
from reactor.sources.prometheus.evaluation_times import EvaluationTimes
from reactor.sources.publisher import HealthPublisher
from reactor.sources.republisher import gather
from reactor.sources.source_context import SourceContext
from reactor.sources.target_limit import FORGOTTEN_SECONDS
from reactor.sources.ticker import Ticker
from rules.rulefile.sources import Bound, PrometheusQuery

QUERY_SECONDS = 30.0  # a reading older than two intervals and this is no longer repeated
COMPLAINTS_MAX = 20  # reasons of one outage, for words that are never the same twice
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")  # urllib3 names its connection so, each time another one
_WORST_FIRST = (Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY)

log = logging.getLogger(__name__)


class QueryOpinion(NamedTuple):
    """Health of one target by one reading."""

    status: Health
    detail: str
    labels: dict[str, str]


async def run(source: PrometheusQuery, world: SourceContext) -> None:
    """Query until cancelled."""
    reader = _QueryPoll(source, world, world.prometheus_named(source.prometheus))
    pace = Ticker(
        world, reader.read, name=source.name, every_seconds=source.every_seconds, timeout_seconds=QUERY_SECONDS
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(pace.run())
        group.create_task(reader.publisher.keep(pace.seen, pace.look_again, world.requests))


class _QueryPoll:
    def __init__(self, source: PrometheusQuery, world: SourceContext, prometheus: Queries) -> None:
        self._source = source
        self._clock = world.clock
        self._prometheus = prometheus
        self._resolution = source.every_seconds + min(source.every_seconds, QUERY_SECONDS)
        self.publisher = HealthPublisher(source, world.tell, world.clock, world.on_facts_lost)
        self._known: dict[str, float] = {}
        """Monotonic time at which each target was last present, the longest absent first."""
        if "{" not in source.target:
            self._known[source.target] = self._clock.monotonic()
        self._evaluated = EvaluationTimes()
        self._complaints: set[str] = set()
        """Failures that were logged since the query last worked."""

    async def read(self, *, extra: bool = False) -> None:  # noqa: ARG002 - each result is complete
        """Take one reading."""
        began = self._clock.now()
        try:
            samples = await self._prometheus.query(self._source.query)
        except (Retryable, Terminal) as error:
            if self._clock.standstill.ended_at > began:
                return  # we interrupted it ourselves
            self._failed(error)
            unknown = QueryOpinion(Health.UNKNOWN, str(error), {})
            await self._say(dict.fromkeys(self._known, unknown), ReadInterval(began, self._clock.now()))
            return
        if self._clock.standstill.ended_at > began:
            return
        self._answered()
        asked = ReadInterval(began, self._clock.now())
        look = self._evaluated.dated((sample.timestamp for sample in samples), asked)
        if look is None:
            return  # out of a cache, or of a server that is stuck: it shows nothing new
        present = self._opinions(samples)
        self._note(present)
        absent = QueryOpinion(absence(self._source.unhealthy_when), "no series", {})
        # What there is no room for is told too: the publisher refuses and counts it.
        await self._say({target: present.get(target, absent) for target in [*self._known, *present]}, look)

    async def _say(self, opinions: Mapping[str, QueryOpinion], look: ReadInterval) -> None:
        await gather(
            self.publisher.say(
                target, opinion.status, labels=opinion.labels, detail=opinion.detail, look=look,
                resolution_seconds=self._resolution,
            )
            for target, opinion in opinions.items()
        )  # fmt: skip

    def _failed(self, error: Retryable | Terminal) -> None:
        """Count it, and log each reason once: a query that has never worked is about no target that could show it."""
        self.publisher.complain(type(error).__name__)
        reason = _ADDRESS.sub("", str(error))
        if reason not in self._complaints and len(self._complaints) < COMPLAINTS_MAX:
            self._complaints.add(reason)
            log.warning("a query fails, trying again", extra={"source": self._source.name, "reason": reason})

    def _answered(self) -> None:
        if self._complaints:
            log.info("a query works again", extra={"source": self._source.name})
            self._complaints.clear()

    def _opinions(self, samples: Iterable[Sample]) -> dict[str, QueryOpinion]:
        found: dict[str, QueryOpinion] = {}
        for sample in samples:
            target = self.publisher.target(sample.labels)
            if target is None:
                continue
            status = judge(self._source.unhealthy_when, sample.value)
            if target not in found or _worse(status, found[target].status):
                found[target] = QueryOpinion(status, f"value {sample.value:g}", dict(sample.labels))
        return found

    def _note(self, present: Iterable[str]) -> None:
        """Know these from now on, as many as there is room for: labels come and go without end."""
        now, new = self._clock.monotonic(), list[str]()
        for target in present:
            if self._known.pop(target, None) is None:
                new.append(target)
            else:
                self._known[target] = now
        room = self._source.max_targets - len(self._known)
        for target in [*self._known][: max(0, len(new) - room)]:
            if now - self._known[target] < FORGOTTEN_SECONDS:
                break
            del self._known[target]
            self.publisher.forget(target)
        self._known |= dict.fromkeys(new[: max(0, self._source.max_targets - len(self._known))], now)


def judge(unhealthy_when: str | Bound, value: float) -> Health:
    """Give what a series that is there says."""
    if not isinstance(unhealthy_when, Bound):
        return Health.UNHEALTHY if unhealthy_when == "Present" else Health.HEALTHY
    if math.isnan(value):
        return Health.UNKNOWN
    too_high = unhealthy_when.above is not None and value > unhealthy_when.above
    too_low = unhealthy_when.below is not None and value < unhealthy_when.below
    return Health.UNHEALTHY if too_high or too_low else Health.HEALTHY


def absence(unhealthy_when: str | Bound) -> Health:
    """Give what it says of a known target that it has no series."""
    if isinstance(unhealthy_when, Bound):
        return Health.UNKNOWN
    return Health.HEALTHY if unhealthy_when == "Present" else Health.UNHEALTHY


def _worse(one: Health, other: Health) -> bool:
    return _WORST_FIRST.index(one) < _WORST_FIRST.index(other)

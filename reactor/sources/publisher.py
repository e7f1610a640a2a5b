"""The one way in which a source speaks: on every change at once, and again at least every `refreshSeconds`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Set
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from bus.messages import Health, Observation, Target
from reactor.clients.changes import ReadInterval
from reactor.runtime import telemetry, tracing
from reactor.runtime.clock import Clock
from reactor.sources.refresh import LookAgain, Requests, Unlisted, answer_requests, ignore_unlisted
from reactor.sources.republisher import Doubted, OnFactsLost, Republisher, SeenEach, never_doubted, no_facts_lost
from reactor.sources.target_limit import Refusals
from rules.rulefile.sources import Source
from rules.rulefile.targets import MissingLabel, fill

_TARGET = TypeAdapter(Target)
LABEL_CHARACTERS = 4096  # what a message takes
RESOLUTION_SECONDS_MAX = 86_400.0  # the same
PERCENT_POINTS = 5.0  # as many as a change of weights needs: rules/kinds/traffic/overflow.py
DETAIL_CHARACTERS = 500  # one line for people
COMPLAINTS_KEPT = 1000  # label sets that were complained about, so that each is logged once

log = logging.getLogger(__name__)

Tell = Callable[[Observation], Awaitable[None]]


class HealthPublisher:
    """Publishes the health of one source's targets."""

    def __init__(self, source: Source, tell: Tell, clock: Clock, on_facts_lost: OnFactsLost = no_facts_lost) -> None:
        self._source = source
        self._clock = clock
        self._outward = tell
        self._standing: Republisher[Observation] = Republisher(
            self._tell, clock, period_seconds=source.refresh_seconds, on_facts_lost=on_facts_lost
        )
        self._percents: dict[str, float] = {}
        """Healthy percent of each target, as last published."""
        self._refusals = Refusals(source.name, source.max_targets)
        self._complained: set[tuple[tuple[str, str], ...]] = set()

    @property
    def wanted(self) -> Set[str]:
        """Targets at which a look is asked for that has not come yet."""
        return self._standing.wanted

    def wanted_from(self, target: str) -> datetime | None:
        """Give the moment at which that look is to begin, or later; None: no look is asked for."""
        return self._standing.wanted_from(target)

    async def say(
        self,
        target: str,
        status: Health,
        *,
        labels: Mapping[str, str] | None = None,
        detail: str = "",
        look: ReadInterval | None = None,
        version: str = "",
        resolution_seconds: float = 0,
        unbroken: bool | None = None,
        healthy_percent: float | None = None,
        answered: bool = True,
    ) -> None:
        """Let this be the target's status. Another detail alone is no change: it is told with the next refresh. So is
        a `healthy_percent` that differs by less than five points.

        `look`: what found it; default: one of this moment. `resolution_seconds`: what the source cannot see anyway.
        `unbroken`: whether all that happened since the last word was seen; default: where no more time has passed.
        `answered`: False: the look ended without an answer, so the target was like this to its end.
        """
        if not self._admits(target):
            return
        look = look or ReadInterval(self._clock.now(), self._clock.now())
        observation = self._observation(target, status, labels or {}, detail).model_copy(
            update={
                "version": version, "resolution_seconds": min(resolution_seconds, RESOLUTION_SECONDS_MAX),
                "healthy_percent": healthy_percent, "unanswered_until": None if answered else look.ended,
            }
        )  # fmt: skip
        seen_at = self._standing.seen_at(target)
        if unbroken is None:
            unbroken = seen_at is None or look.began - seen_at <= timedelta(seconds=resolution_seconds)
        changed, due = self._noted(observation), self._differs(observation)
        said = self._standing.say(target, observation, changed=changed, look=look, unbroken=unbroken, due=due)
        if not changed and not due:
            await said
            return
        with tracing.span("observation", None, source=self._source.name, target=target, status=status.value):
            await said

    async def say_once(
        self, target: str, status: Health, *, labels: Mapping[str, str] | None = None, detail: str = "",
        gone: bool = False,
    ) -> None:  # fmt: skip
        """Let this be the last word about the target: nothing is repeated afterwards. `gone`: its object is deleted."""
        if not self._admits(target):
            return
        observation = self._observation(target, status, labels or {}, detail).model_copy(update={"gone": gone})
        self._noted(observation)
        await self._standing.say_once(target, observation)
        self._percents.pop(target, None)

    def _admits(self, target: str) -> bool:
        """True if there is room for this target; counted and logged where there is not."""
        if self._standing.get(target) is not None:
            return True
        if len(self._standing) >= self._source.max_targets:
            self._refusals.add(target)
            return False
        self._refusals.over()
        return True

    def _observation(self, target: str, status: Health, labels: Mapping[str, str], detail: str) -> Observation:
        return Observation(
            target=target,
            status=status,
            signal=self._source.says,
            observed_at=self._clock.now(),
            stale_seconds=self._source.stale_seconds,
            source=self._source.name,
            labels={key: text[:LABEL_CHARACTERS] for key, text in labels.items()},
            detail=" ".join(detail.split())[:DETAIL_CHARACTERS],
        )

    def _noted(self, said: Observation) -> bool:
        """True if its status changed, which is logged."""
        before = self._standing.get(said.target)
        changed = before is None or (before.status, before.resolved) != (said.status, said.resolved)
        if changed:
            log.info(
                "a target's status changed",
                extra={
                    "source": self._source.name, "target": said.target, "status": said.status.value,
                    "detail": said.detail,
                },
            )  # fmt: skip
        return changed

    def _differs(self, said: Observation) -> bool:
        """True if its healthy percent differs from the published one by so much that a route may have to change."""
        told = self._percents.get(said.target)
        return (
            told is not None and said.healthy_percent is not None and abs(told - said.healthy_percent) >= PERCENT_POINTS
        )

    def forget(self, target: str) -> None:
        """Say nothing more about it: it becomes Unknown after its staleSeconds."""
        self._standing.forget(target)
        self._percents.pop(target, None)

    async def answer(self, seen: SeenEach) -> None:
        """Tell what was asked for and has been seen by now."""
        await self._standing.answer(seen)

    async def keep(
        self, seen: SeenEach, look_again: LookAgain, requests: Requests, doubted: Doubted = never_doubted,
        *, proven: SeenEach | None = None, absent: Unlisted = ignore_unlisted,
    ) -> None:  # fmt: skip
        """Repeat the current state, without end, and answer requests. What cannot be seen is not repeated; the answer
        to a question about what is doubted says so. `proven`: until when it can be proven; default: as `seen`. `absent`
        gets what is asked for and not known."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._standing.keep_each(seen, proven))
            answering = answer_requests(
                self._source.name, self._standing, proven or seen, look_again, requests, self._clock, doubted, absent
            )
            group.create_task(answering)

    def target(self, labels: Mapping[str, str]) -> str | None:
        """Fill the source's template; None where that gives no target: counted, and logged once per label set."""
        try:
            return _TARGET.validate_python(fill(self._source.target, labels))
        except MissingLabel as error:
            self._no_target("MissingLabel", str(error), labels)
        except ValidationError as error:
            self._no_target("BadTarget", error.errors()[0]["msg"], labels)
        return None

    def _no_target(self, reason: str, why: str, labels: Mapping[str, str]) -> None:
        self.complain(reason)
        key = tuple(sorted(labels.items()))
        if key in self._complained or len(self._complained) >= COMPLAINTS_KEPT:
            return
        self._complained.add(key)
        log.warning(
            "labels give no target",
            extra={
                "source": self._source.name,
                "template": self._source.target,
                "reason": why,
                "labels": repr(dict(labels))[:DETAIL_CHARACTERS],
            },
        )

    def complain(self, reason: str) -> None:
        """Count a reading that gave no answer."""
        telemetry.source_errors.labels(self._source.name, reason).inc()

    async def _tell(self, observation: Observation) -> None:
        await self._outward(observation)
        if observation.healthy_percent is not None:
            self._percents[observation.target] = observation.healthy_percent
        telemetry.observations.labels(self._source.name, observation.status.value).inc()

"""Common part of all probes: paced tries, a threshold of them, one target."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bus.messages import Health
from reactor.clients.changes import ReadInterval
from reactor.runtime.errors import SettingsError
from reactor.runtime.shortages import SHORTAGES, descriptors_missing
from reactor.sources.probes.threshold import ThresholdCounter
from reactor.sources.publisher import HealthPublisher
from reactor.sources.source_context import SourceContext
from reactor.sources.ticker import Ticker
from rules.rulefile.sources import Probe

log = logging.getLogger(__name__)


class TryFailed(Exception):
    """The target did not answer as it should. The message is one line for people: `HTTP 503`."""


ProbeAttempt = Callable[[], Awaitable[str]]
"""One try: gives one line for people, or raises TryFailed. Anything else that it raises is a mistake of ours."""


async def probe(source: Probe, world: SourceContext, attempt: ProbeAttempt) -> None:
    """Try without end, and say what the thresholds make of it."""
    publisher = HealthPublisher(source, world.tell, world.clock, world.on_facts_lost)
    target = publisher.target({})
    if target is None:
        raise SettingsError(f"source {source.name}: a probe has no labels, write its target without braces")
    streak = ThresholdCounter(failures=source.failure_threshold, successes=source.success_threshold)

    async def reading(*, extra: bool) -> None:
        began = world.clock.now()
        succeeded, detail, answered = await _tried(source, publisher, attempt)
        look = ReadInterval(began, world.clock.now())
        if world.clock.standstill.ended_at > began:
            return  # a try that we interrupted ourselves says nothing about the target
        if succeeded is None and not extra:
            # Our own mistake or lack says nothing about the target: it is Unknown, and the streak starts again.
            streak.lose()
            await publisher.say(target, Health.UNKNOWN, detail=detail, look=look)
        if succeeded is None:
            return
        if not extra:  # it counts towards no threshold: often asked for, it would turn the verdict too soon
            streak.add(succeeded=succeeded)
        # A try that disagrees confirms nothing: the current verdict was last seen at the try before it.
        if (verdict := streak.verdict) is not None and streak.agrees(succeeded=succeeded):
            await publisher.say(
                target, verdict, detail=detail, look=look, resolution_seconds=resolution(source, verdict),
                answered=answered,
            )  # fmt: skip

    pace = Ticker(
        world, reading, name=source.name, every_seconds=source.every_seconds, timeout_seconds=source.timeout_seconds
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(pace.run())
        group.create_task(publisher.keep(pace.seen, pace.look_again, world.requests))


def resolution(source: Probe, status: Health) -> float:
    """Give for how many seconds a target may be otherwise without this being seen: the other status has its threshold
    as well."""
    other = source.failure_threshold if status is Health.HEALTHY else source.success_threshold
    return source.every_seconds * other + source.timeout_seconds


class _Tried(NamedTuple):
    succeeded: bool | None
    detail: str
    answered: bool = True


async def _tried(source: Probe, publisher: HealthPublisher, attempt: ProbeAttempt) -> _Tried:
    try:
        async with asyncio.timeout(source.timeout_seconds):
            return _Tried(True, await attempt())
    except (TryFailed, TimeoutError) as error:
        if (lacking := descriptors_missing(error)) is not None:
            publisher.complain("NoDescriptors")
            log.warning("no try was made", exc_info=lacking, extra={"source": source.name})
            return _Tried(None, SHORTAGES[lacking.errno or errno.EMFILE])
        if isinstance(error, TimeoutError):
            return _Tried(False, f"no answer within {source.timeout_seconds:g} s", answered=False)
        return _Tried(False, str(error))
    except Exception as error:  # a mistake of ours says nothing of the target: Unknown, counted and logged
        publisher.complain(type(error).__name__)
        log.exception("a probe broke", extra={"source": source.name})
        return _Tried(None, f"the probe itself broke: {type(error).__name__}")

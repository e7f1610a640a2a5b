"""What all probes share: a paced try, a streak of them, one target."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bus.messages import Health
from reactor.errors import SettingsError
from reactor.sources.pacing import Pace
from reactor.sources.streak import Streak
from reactor.sources.voice import Voice
from reactor.sources.world import World
from rules.language.sources import Probe

log = logging.getLogger(__name__)


class TryFailed(Exception):
    """The target did not answer as it should. The message is one line for people: `HTTP 503`."""


Try = Callable[[], Awaitable[str]]
"""One try: gives one line for people, or raises TryFailed. Anything else that it raises is a mistake of ours."""


async def probe(source: Probe, world: World, attempt: Try) -> None:
    """Try for ever, and say what the thresholds make of it."""
    voice = Voice(source, world.tell, world.clock)
    target = voice.target({})
    if target is None:
        raise SettingsError(f"source {source.name}: a probe has no labels, write its target without braces")
    streak = Streak(failures=source.failure_threshold, successes=source.success_threshold)

    async def reading() -> None:
        succeeded, detail = await _tried(source, voice, attempt)
        if succeeded is None:
            # Our own mistake says nothing about the target: nobody knows, and the streak starts anew.
            streak.lose()
            await voice.say(target, Health.UNKNOWN, detail=detail)
        elif (verdict := streak.add(succeeded=succeeded)) is not None:
            await voice.say(target, verdict, detail=detail)

    pace = Pace(
        world, reading, name=source.name, every_seconds=source.every_seconds, timeout_seconds=source.timeout_seconds
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(pace.run())
        group.create_task(voice.refresh(lambda: pace.vouched))


async def _tried(source: Probe, voice: Voice, attempt: Try) -> tuple[bool | None, str]:
    try:
        async with asyncio.timeout(source.timeout_seconds):
            return True, await attempt()
    except TryFailed as error:
        return False, str(error)
    except TimeoutError:
        return False, f"no answer within {source.timeout_seconds:g} s"
    except Exception as error:
        voice.complain(type(error).__name__)
        log.exception("a probe broke", extra={"source": source.name})
        return None, f"the probe itself broke: {type(error).__name__}"

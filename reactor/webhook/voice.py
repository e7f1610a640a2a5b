"""What is said of each target, and when: at once where it changes, and again every refreshSeconds while it stands.

Any number of processes say the same. So what is said again carries the start of its slot as its time, not the moment:
the same words from two processes are the same message, and the bus keeps one of them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bus.messages import Health, Observation
from reactor.webhook.mirror import Mirror
from reactor.webhook.origins import Origins
from reactor.webhook.states import SILENT, AlertState, Opinion, health_of, speaker
from rules.language.sources import AlertmanagerWebhook

AT_ONCE = 64
"""How many observations are on their way to the bus at the same time."""
LASTING = timedelta(minutes=30)
"""A recovery that is older is said so that it does not go stale: there is nothing more to hear of it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Tell = Callable[[Observation], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Told:
    status: Health
    observed_at: datetime
    again_at: datetime


class Voice:
    """Knows what this process has said."""

    def __init__(self, mirror: Mirror, origins: Origins, tell: Tell, heard: Mapping[str, datetime]) -> None:
        """`heard`: when Alertmanager's API last showed an alert, by key."""
        self._mirror = mirror
        self._origins = origins
        self._tell = tell
        self._heard = heard
        self._told: dict[Opinion, _Told] = {}

    async def speak(self, opinions: Iterable[Opinion], now: datetime) -> None:
        """Say what has to be said of these. Raises what `tell` raises, after all were tried."""
        wanted = list(opinions)
        failures: list[BaseException] = []
        for start in range(0, len(wanted), AT_ONCE):
            due = [(one, self._due(one, now)) for one in wanted[start : start + AT_ONCE]]
            failures += await self._say([(opinion, *said) for opinion, said in due if said])
        if failures:
            raise failures[0]

    async def refresh(self, now: datetime) -> None:
        """Say what changed in the bucket against our own words, and what it is time to say again."""
        for opinion in self._told.keys() - set(self._mirror.opinions()):
            del self._told[opinion]
        changed = self._mirror.take_changed()
        due = [one for one in self._mirror.opinions() if one in changed or self._again(one, now)]
        await self.speak(due, now)

    async def last_word(self, opinion: Opinion, now: datetime) -> None:
        """Say it once more, never to go stale: nothing is said after it until an alert fires again.

        An alert that is over is no longer remembered; its target is as healthy as before, not unknown.
        """
        state = self._speaker(opinion, now)
        origin = self._origins.of_state(state) if state else None
        if state and origin:
            await self._tell(_observation(state, origin.source, now, lasting=True))

    def _again(self, opinion: Opinion, now: datetime) -> bool:
        told = self._told.get(opinion)
        return told is None or now >= told.again_at

    def _due(self, opinion: Opinion, now: datetime) -> tuple[Observation, _Told] | None:
        state = self._speaker(opinion, now)
        origin = self._origins.of_state(state) if state else None
        if state is None or origin is None:
            self._told.pop(opinion, None)
            return None
        refresh = timedelta(seconds=origin.source.refresh_seconds)
        slot = _slot(opinion, refresh, now)
        changed = max(one.changed_at for one in self._mirror.of(opinion))
        told = self._told.get(opinion)
        news = told is None or told.status != health_of(state)
        at = changed if news and now - changed < refresh else max(slot, changed)
        if told and at <= told.observed_at:
            if not news:
                return None
            # We said otherwise of the same moment, before we knew of another process's alert.
            at = max(now, told.observed_at + timedelta(microseconds=1))
        # Soon it is forgotten. All processes change over well before, so that none of them has another last word.
        lasting = state.confirmed and now - state.changed_at > LASTING
        return _observation(state, origin.source, at, lasting=lasting), _Told(health_of(state), at, slot + refresh)

    def _speaker(self, opinion: Opinion, now: datetime) -> AlertState | None:
        states = self._mirror.of(opinion)
        return speaker(states, silent=[state.fingerprint for state in states if self._silent(state, now)])

    def _silent(self, state: AlertState, now: datetime) -> bool:
        heard = max(state.last_post_at, self._heard.get(state.key, state.last_post_at))
        return state.status == "firing" and now - heard > SILENT

    async def _say(self, due: list[tuple[Opinion, Observation, _Told]]) -> list[BaseException]:
        """Say all at once, remember what was said, and give what failed."""
        results = await asyncio.gather(*(self._tell(said) for _, said, _ in due), return_exceptions=True)
        for (opinion, _, told), result in zip(due, results, strict=True):
            if isinstance(result, BaseException):
                self._told.pop(opinion, None)  # so that the next sweep says it
            else:
                self._told[opinion] = told
        return [result for result in results if isinstance(result, BaseException)]


def _observation(state: AlertState, source: AlertmanagerWebhook, at: datetime, *, lasting: bool) -> Observation:
    return Observation(
        target=state.target, status=health_of(state), signal=state.signal, observed_at=at,
        stale_seconds=None if lasting else source.stale_seconds, resolved=state.waits, labels=state.labels,
        detail=state.detail,
    )  # fmt: skip


def _slot(opinion: Opinion, refresh: timedelta, now: datetime) -> datetime:
    """Give the start of the slot that `now` is in; each opinion has its own, so that not all speak at once."""
    digest = hashlib.sha256(f"{opinion.source}\0{opinion.signal}\0{opinion.target}".encode()).digest()
    offset = refresh * (int.from_bytes(digest[:4], "big") / 2**32)
    return now - (now - _EPOCH - offset) % refresh

"""Publishes the health of alert targets: at once where it changes, and again every refreshSeconds while it is
unchanged.

Any number of processes say the same. So what is said again carries the start of its slot as its time, not the moment:
the same words from two processes are the same message, and the bus keeps one of them. That keeps the target from going
stale; how far it proves anything, `validSeconds` says: until the last look, which may be before the slot.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bus.errors import NotPermitted, Unavailable
from bus.messages import Health, Observation
from reactor.alerts.alert_evidence import AlertEvidence
from reactor.alerts.cache import AlertCache
from reactor.alerts.origins import Origin, Origins
from reactor.alerts.states import AlertOpinion, AlertState, health_of, speaker
from reactor.runtime.slices import sliced

LOOKS = 1000
"""Targets that are looked at between two pauses of the event loop."""
AT_ONCE = 128
"""Observations that go to the bus in one round: to wait for it costs as much as many of them."""
LASTING = timedelta(minutes=30)
"""A recovery that is older is said so that it does not go stale: there is nothing more to get of it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Tell = Callable[[Sequence[Observation]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _PublishedStatus:
    status: Health
    observed_at: datetime
    again_at: datetime
    proves_until: datetime

    @classmethod
    def of(cls, said: Observation, again_at: datetime) -> _PublishedStatus:
        """Record of this observation for after it is published."""
        proves_until = said.observed_at + timedelta(seconds=said.valid_seconds or 0)
        return cls(said.status, said.observed_at, again_at, proves_until)


class AlertPublisher:
    """Knows what this process has said."""

    def __init__(self, alert_cache: AlertCache, origins: Origins, tell: Tell, evidence: AlertEvidence) -> None:
        self._alert_cache = alert_cache
        self._origins = origins
        self._tell = tell
        self._evidence = evidence
        self._told: dict[AlertOpinion, _PublishedStatus] = {}
        self._one_at_a_time = asyncio.Lock()

    async def speak(self, opinions: Iterable[AlertOpinion], now: datetime) -> None:
        """Say what has to be said of these. Raises what `tell` raises, after all were tried."""
        wanted = list(opinions)
        failures: list[Exception] = []
        for start in range(0, len(wanted), AT_ONCE):
            due = [(one, self._due(one, now)) for one in wanted[start : start + AT_ONCE]]
            if failure := await self._say([(opinion, *said) for opinion, said in due if said]):
                failures.append(failure)
            await asyncio.sleep(0)  # also where none of these was due
        if failures:
            raise failures[0]

    def forget(self) -> None:
        """The bus has lost what was said: all of it is said again."""
        self._told.clear()

    async def refresh(self, now: datetime) -> None:
        """Say what changed in the bucket against our own words, and then what it is time to say again."""
        await self.news(now)
        await self.speak(
            [one async for one in sliced(self._alert_cache.opinions(), size=LOOKS) if self._again(one, now)], now
        )

    async def news(self, now: datetime) -> set[AlertOpinion]:
        """Publish what changed in the bucket, and give the opinions of it.

        What is confirmed afterwards comes behind it: else a group would be decided on half of what one look found.
        """
        async with self._one_at_a_time:
            changed = self._alert_cache.take_changed()
            async for opinion in sliced([*changed], size=LOOKS):
                if not self._alert_cache.of(opinion):
                    self._told.pop(opinion, None)
            await self.speak(changed, now)
            return changed

    async def last_word(self, opinion: AlertOpinion, now: datetime) -> None:
        """Say it once more, never to go stale: nothing is said after it until an alert fires again.

        An alert that is over is no longer remembered; its target is as healthy as before, not unknown.
        """
        if found := self._speaker(opinion):
            await self._tell([self._observation(*found, now, lasting=True)])

    async def answer(self, opinions: Iterable[AlertOpinion], not_before: datetime, now: datetime) -> None:
        """Say of these what was seen since, after the news. What was not seen since is not said.

        Raises what `tell` raises.
        """
        news = await self.news(now)
        wanted = [one for one in opinions if one not in news or not self._has_proven(one, not_before)]
        answers = [(one, said) async for one in sliced(wanted) if (said := self._answer(one, not_before, now))]
        for start in range(0, len(answers), AT_ONCE):
            if failure := await self._say([(one, *said) for one, said in answers[start : start + AT_ONCE]]):
                raise failure

    def _has_proven(self, opinion: AlertOpinion, moment: datetime) -> bool:
        told = self._told.get(opinion)
        return told is not None and told.proves_until >= moment

    def _answer(
        self, opinion: AlertOpinion, not_before: datetime, now: datetime
    ) -> tuple[Observation, _PublishedStatus] | None:
        found = self._speaker(opinion)
        if found is None or _lasting(found[0], now):
            return None
        state, origin = found
        proof = self._evidence.of(self._alert_cache.of(opinion), health_of(state), origin.source, lasting=False)
        seen_at = now if health_of(state) is Health.UNKNOWN else proof.until
        if seen_at is None or seen_at < not_before:
            return None
        # Later than what any process has said of it by now, or it would be dropped as old.
        refresh = timedelta(seconds=origin.source.refresh_seconds)
        slot, told = _slot(opinion, refresh, now), self._told.get(opinion)
        said_at = max(slot, told.observed_at) if told else slot
        at = max(min(seen_at, now), state.changed_at, said_at + timedelta(microseconds=1))
        observation = self._observation(state, origin, at, lasting=False)
        return observation, _PublishedStatus.of(observation, told.again_at if told else slot + refresh)

    def _again(self, opinion: AlertOpinion, now: datetime) -> bool:
        told = self._told.get(opinion)
        return told is None or now >= told.again_at

    def _due(self, opinion: AlertOpinion, now: datetime) -> tuple[Observation, _PublishedStatus] | None:
        found = self._speaker(opinion)
        if found is None:
            self._told.pop(opinion, None)
            return None
        state, origin = found
        refresh = timedelta(seconds=origin.source.refresh_seconds)
        slot = _slot(opinion, refresh, now)
        changed = self._changed_at(opinion)
        told = self._told.get(opinion)
        news = told is None or told.status != health_of(state)
        at = changed if news and now - changed < refresh else max(slot, changed)
        if told and at <= told.observed_at:
            if not news:
                return None
            # We said otherwise of the same moment, before we knew of another process's alert.
            at = max(now, told.observed_at + timedelta(microseconds=1))
        observation = self._observation(state, origin, at, lasting=_lasting(state, now))
        return observation, _PublishedStatus.of(observation, slot + refresh)

    def _changed_at(self, opinion: AlertOpinion) -> datetime:
        """Time of the last change of this opinion. A POST of a standing alert counts where nothing else proves it."""
        states = self._alert_cache.of(opinion)
        posts = [state.last_post_at for state in states if state.status == "firing" and not self._evidence.pollable]
        return max(*(state.changed_at for state in states), *posts, _EPOCH)

    def _speaker(self, opinion: AlertOpinion) -> tuple[AlertState, Origin] | None:
        state = speaker(self._alert_cache.of(opinion))
        origin = self._origins.of_state(state) if state else None
        return (state, origin) if state and origin else None

    def _observation(self, state: AlertState, origin: Origin, at: datetime, *, lasting: bool) -> Observation:
        source, status = origin.source, health_of(state)
        proof = self._evidence.of(self._alert_cache.of(state.opinion), status, source, lasting=lasting)
        return Observation(
            target=state.target, status=status, signal=state.signal, observed_at=at,
            stale_seconds=None if lasting else source.stale_seconds, source=proof.source, since=proof.since,
            valid_seconds=None if proof.until is None else (proof.until - at).total_seconds(),
            # Where a confirming query is given, nothing else settles it.
            resolved=state.waits and source.confirm is None, labels=state.labels,
            detail=f"ended, recovery not proven: {state.detail}" if state.waits else state.detail,
        )  # fmt: skip

    async def _say(self, due: list[tuple[AlertOpinion, Observation, _PublishedStatus]]) -> Exception | None:
        """Say all in one round, and remember what was said; give what failed.

        Where the bus refuses one of them, each is said alone: it harms no other.
        """
        if not due:
            return None
        try:
            await self._tell([said for _, said, _ in due])
        except Exception as error:  # noqa: BLE001 - given back
            if len(due) > 1 and (isinstance(error, NotPermitted) or not isinstance(error, Unavailable)):
                return next(filter(None, [await self._say([one]) for one in due]), None)
            for opinion, _, _ in due:
                self._told.pop(opinion, None)  # so that the next sweep says it
            return error
        self._told.update((opinion, told) for opinion, _, told in due)
        return None


def _lasting(state: AlertState, now: datetime) -> bool:
    # Soon it is forgotten. All processes change over well before, so that none of them has another last word.
    return state.confirmed and now - state.changed_at > LASTING


def _slot(opinion: AlertOpinion, refresh: timedelta, now: datetime) -> datetime:
    """Give the start of the slot that `now` is in; each opinion has its own, so that not all speak at once."""
    digest = hashlib.sha256(f"{opinion.source}\0{opinion.signal}\0{opinion.target}".encode()).digest()
    offset = refresh * (int.from_bytes(digest[:4], "big") / 2**32)
    return now - (now - _EPOCH - offset) % refresh

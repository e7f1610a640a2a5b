"""Aggregates what several objects say of one target: the worst counts. A target that no object makes any more is
Unknown.

A template may take labels of the object, so that many objects make one target, and one whose label changes makes
another one than before. What a whole batch of changes says is noted first and told afterwards, so that no rule gets
half of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping, Set
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from bus.messages import Health
from reactor.clients.changes import ReadInterval, digest
from reactor.runtime.clock import Clock
from reactor.sources.publisher import HealthPublisher
from reactor.sources.refresh import LookAgain, Requests, Unlisted, ignore_unlisted
from reactor.sources.republisher import gather
from reactor.sources.standing_fact import LONG_AGO

CATCH_UP_SECONDS = 5.0
"""Seconds between two tries to publish what could not be published because a watch was lost."""
WORST_FIRST = (Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY)

Key = TypeVar("Key", bound=Hashable)


class _Note(NamedTuple):
    target: str
    status: Health
    labels: Mapping[str, str]
    detail: str
    gone: bool
    look: ReadInterval
    version: str
    healthy_percent: float | None = None


class _Heard(NamedTuple):
    note: _Note
    seen: datetime
    version: str


class TargetAggregator(Generic[Key]):
    """The objects of one source, and the targets that they make."""

    def __init__(
        self,
        publisher: HealthPublisher,
        clock: Clock,
        seen: Callable[[Key], datetime | None],
        proven: Callable[[Key], datetime | None],
        *,
        doubted: Callable[[Key], bool],
        resolution_seconds: float = 0,
    ) -> None:
        """`seen`: until when what this object said is known to be so; None: it cannot be believed now. `proven`: until
        when that is proven, also by what was seen of others.

        `doubted`: whether that is because a LIST lacks it that is not believed. `resolution_seconds`: what is not seen
        of a target that is Healthy.
        """
        self._publisher = publisher
        self._clock = clock
        self._seen, self._proven = seen, proven
        self._doubted = doubted
        self._resolution = resolution_seconds
        self._notes: dict[Key, _Note] = {}
        self._makers: dict[str, set[Key]] = {}
        self._unspoken: dict[str, _Note] = {}
        """Targets of which something was noted, and who last said it."""
        self._broken: set[str] = set()
        """Targets in `_unspoken` whose health may have been different since the last observation, as no watch was
        open."""

    def note(
        self, key: Key, status: Health, *, labels: Mapping[str, str], look: ReadInterval, detail: str = "",
        gone: bool = False, version: str = "", unbroken: bool = True, healthy_percent: float | None = None,
    ) -> None:  # fmt: skip
        """Let this be what an object says, from the next `speak` on. `gone`: it counts where no other is there.

        `look`: what found it. `version`: the state of what it was found in. `unbroken`: whether all that happened to it
        since the last note was seen.
        """
        target = self._publisher.target(labels)
        before = self._notes.get(key)
        if before is not None and before.target != target:
            self.leave(key, "its labels have changed")
        if target is not None:
            note = _Note(target, status, labels, detail, gone, look, version, healthy_percent)
            self._notes[key] = self._unspoken[target] = note
            self._makers.setdefault(target, set()).add(key)
            if not unbroken:
                self._broken.add(target)

    def leave(self, key: Key, detail: str) -> None:
        """Let an object say nothing any more. A target that was its alone is Unknown, for this reason."""
        if note := self._dropped(key):
            self._unspoken[note.target] = note._replace(detail=detail)

    def forget(self, key: Key) -> None:
        """The same, without a word: a target that was its alone becomes Unknown in its time."""
        note = self._dropped(key)
        if note is not None and note.target in self._makers:
            self._unspoken[note.target] = note
        elif note is not None:
            self._unspoken.pop(note.target, None)
            self._publisher.forget(note.target)

    def makers(self, target: str) -> Set[Key]:
        """Give the objects that make this target."""
        return self._makers.get(target, set())

    async def speak(self) -> None:
        """Say what was noted, each target once, and what was asked for."""
        unspoken, self._unspoken = self._unspoken, {}
        sayings = []
        for target, last in sorted(unspoken.items()):
            heard = self._heard(target, self._proven_of)
            if target not in self._makers:
                words = self._publisher.say_once(
                    target, Health.UNKNOWN, labels=last.labels, detail=last.detail, gone=True
                )
                sayings.append(words)
            elif heard is None:
                self._unspoken.setdefault(target, last)
            else:
                note = heard.note
                # Where something is not seen of a target, a gap that is no longer than this is none.
                resolution = self._resolution if note.status is Health.HEALTHY else 0.0
                unbroken = None if resolution else True
                saying = self._publisher.say(
                    target, note.status, labels=note.labels, detail=note.detail,
                    look=ReadInterval(heard.seen, max(heard.seen, last.look.ended)), version=heard.version,
                    unbroken=unbroken if target not in self._broken else False, resolution_seconds=resolution,
                    healthy_percent=note.healthy_percent,
                )  # fmt: skip
                self._broken.discard(target)
                sayings.append(saying)
        await gather(sayings)
        await self._publisher.answer(self._proven_until)

    async def keep(self, look_again: LookAgain, requests: Requests, absent: Unlisted = ignore_unlisted) -> None:
        """Repeat the current state, without end, and tell what could not be told, once all objects of a target are
        seen. `absent` gets the targets that are asked for and that no object makes."""
        async with asyncio.TaskGroup() as group:
            keeping = self._publisher.keep(
                self._seen_until, look_again, requests, self._in_doubt, proven=self._proven_until, absent=absent
            )
            group.create_task(keeping)
            group.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        while True:
            await self._clock.sleep(CATCH_UP_SECONDS)
            await self.speak()

    def _in_doubt(self, target: str) -> bool:
        return any(self._doubted(key) for key in self._makers.get(target, ()))

    def _seen_until(self, target: str) -> datetime | None:
        return self._until(target, self._seen)

    def _proven_until(self, target: str) -> datetime | None:
        return self._until(target, self._proven_of)

    def _proven_of(self, key: Key) -> datetime | None:
        """Give until when this is proven: by what was seen of all, or by the look that found it."""
        proven, seen = self._proven(key), self._seen(key)
        return None if proven is None or seen is None else max(proven, min(self._notes[key].look.began, seen))

    def _until(self, target: str, of: Callable[[Key], datetime | None]) -> datetime | None:
        if target not in self._makers:
            return LONG_AGO  # a last word that is still owed
        heard = self._heard(target, of)
        return None if heard is None else heard.seen

    def _heard(self, target: str, of: Callable[[Key], datetime | None]) -> _Heard | None:
        """Give the worst that can be believed; None: one that is not seen may be worse. `of`: until when each is."""
        keys = self._makers.get(target, set())
        there = [key for key in keys if not self._notes[key].gone] or keys
        seen = {key: until for key in there if (until := of(key)) is not None}
        # Of several that are as bad always the same, so that its detail does not jump.
        if not seen:
            return None
        worst = next(iter(seen)) if len(seen) == 1 else min(seen, key=self._rank)
        note = self._notes[worst]
        if len(seen) < len(there) and note.status is not Health.UNHEALTHY:
            return None
        until = seen[worst] if note.status is Health.UNHEALTHY else min(seen.values())
        return _Heard(note, until, self._version(there))

    def _rank(self, key: Key) -> tuple[int, str]:
        return WORST_FIRST.index(self._notes[key].status), repr(key)

    def _version(self, keys: Collection[Key]) -> str:
        versions = [self._notes[key].version for key in keys]
        return versions[0] if len(versions) == 1 else digest(versions)

    def _dropped(self, key: Key) -> _Note | None:
        note = self._notes.pop(key, None)
        if note is not None:
            makers = self._makers[note.target]
            makers.discard(key)
            if not makers:
                del self._makers[note.target]
        return note

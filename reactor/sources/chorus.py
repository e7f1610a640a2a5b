"""What several objects say of one target: the worst speaks. Of a target that no object makes any more, nobody knows.

A template may take labels of the object, so that many objects make one target, and one whose label changes makes
another one than before. What a whole batch of changes says is noted first and spoken afterwards, so that nobody hears
half of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from math import inf
from typing import Generic, NamedTuple, TypeVar

from bus.messages import Health
from reactor.clock import Clock
from reactor.sources.standing import together
from reactor.sources.voice import Voice

CATCH_UP_SECONDS = 5.0
"""So often it is looked whether what could not be spoken, as a watch was lost, can be spoken now."""
WORST_FIRST = (Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY)

Key = TypeVar("Key", bound=Hashable)


class _Note(NamedTuple):
    target: str
    status: Health
    labels: Mapping[str, str]
    detail: str
    gone: bool


class _Heard(NamedTuple):
    note: _Note
    age: float


class Chorus(Generic[Key]):
    """The objects of one source, and the targets that they make."""

    def __init__(self, voice: Voice, clock: Clock, vouched: Callable[[Key], float | None]) -> None:
        """`vouched`: for how many seconds nobody has vouched for what this object said; None: too long."""
        self._voice = voice
        self._clock = clock
        self._vouched = vouched
        self._notes: dict[Key, _Note] = {}
        self._makers: dict[str, set[Key]] = {}
        self._unspoken: dict[str, _Note] = {}
        """Targets of which something was noted, and who last said it."""

    def note(
        self, key: Key, status: Health, *, labels: Mapping[str, str], detail: str = "", gone: bool = False
    ) -> None:
        """Let this be what an object says, from the next `speak` on. `gone`: it counts where no other is there."""
        target = self._voice.target(labels)
        before = self._notes.get(key)
        if before is not None and before.target != target:
            self.leave(key, "its labels have changed")
        if target is not None:
            self._notes[key] = self._unspoken[target] = _Note(target, status, labels, detail, gone)
            self._makers.setdefault(target, set()).add(key)

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
            self._voice.forget(note.target)

    async def speak(self) -> None:
        """Say what was noted, each target once."""
        unspoken, self._unspoken = self._unspoken, {}
        sayings = []
        for target, last in sorted(unspoken.items()):
            heard = self._heard(target)
            if target not in self._makers:
                sayings.append(self._voice.say_once(target, Health.UNKNOWN, labels=last.labels, detail=last.detail))
            elif heard is None:
                self._unspoken.setdefault(target, last)
            else:
                note = heard.note
                sayings.append(self._voice.say(target, note.status, labels=note.labels, detail=note.detail))
        await together(sayings)

    async def keep(self) -> None:
        """Repeat what stands, for ever, and speak what could not be spoken, where all who make a target are seen."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._voice.refresh_each(self._age))
            group.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        while True:
            await self._clock.sleep(CATCH_UP_SECONDS)
            await self.speak()

    def _age(self, target: str) -> float | None:
        if target not in self._makers:
            return inf  # a last word that is still owed
        heard = self._heard(target)
        return None if heard is None else heard.age

    def _heard(self, target: str) -> _Heard | None:
        """Give the worst that can be believed; None: one that is not seen may be worse."""
        keys = self._makers.get(target, set())
        there = [key for key in keys if not self._notes[key].gone] or keys
        ages = {key: age for key in there if (age := self._vouched(key)) is not None}
        # Of several that are as bad always the same, so that its detail does not jump.
        worst = min(ages, key=lambda key: (WORST_FIRST.index(self._notes[key].status), repr(key)), default=None)
        if worst is None:
            return None
        note = self._notes[worst]
        if len(ages) < len(there) and note.status is not Health.UNHEALTHY:
            return None
        return _Heard(note, ages[worst] if note.status is Health.UNHEALTHY else max(ages.values()))

    def _dropped(self, key: Key) -> _Note | None:
        note = self._notes.pop(key, None)
        if note is not None:
            makers = self._makers[note.target]
            makers.discard(key)
            if not makers:
                del self._makers[note.target]
        return note

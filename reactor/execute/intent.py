"""Intent of executors for an object: the newest action that was begun on it, and whether it is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bus.errors import Malformed
from bus.json_text import parsed
from bus.messages import Action, iso

CLOCKS = timedelta(seconds=5)
"""More than the clocks of two deciders are ever apart: who decides uses the bus's time within a second."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One action of one concurrency key of one object, as it is stored in KV."""

    generation: int
    epoch: int
    action: str
    done: bool
    until: str = ""
    """Time until which a process may work on it, as ISO; empty: none does, or it is one write, which its object
    fences."""
    older: str = ""
    """Time until which another process may still write an earlier action, as ISO; empty: there is none."""
    decided_at: str = ""
    """Time of the decision, as ISO: a group that was forgotten and comes again counts from one again, and its actions
    have the ids of the old ones. Empty: an older version has written it."""
    later: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Keys that a later release stored and this one does not know: kept, and written back."""

    @classmethod
    def of(cls, action: Action, *, until: str = "", older: str = "", known: Intent | None = None) -> Intent:
        """Give that of an action that begins now.

        `known`: the intent before. Where it is of the same action, what a later release says there counts on; what it
        says of another action goes with that.
        """
        later = known.later if known is not None and known.is_of(action) else {}
        return cls(action.generation, action.epoch, action.id, False, until, older, iso(action.decided_at), later)

    @classmethod
    def read(cls, body: bytes) -> Intent:
        """Give what `dump` gave. Raises Malformed."""
        try:
            found = parsed(body)
            known = {name: found[name] for name in _STORED if name in found}
            return _checked(cls(**known, later={name: found[name] for name in found if name not in known}))
        except (ValueError, TypeError) as error:
            raise Malformed(f"{body[:80]!r} is no intent: {error}") from error

    def dump(self) -> bytes:
        """Give it as JSON."""
        known = {name: said for name in _STORED if (said := getattr(self, name)) or name not in ("until", "older")}
        return json.dumps({**known, **self.later}).encode()

    def is_of(self, action: Action) -> bool:
        """True if it is for this action, and not for one of the same id from an earlier life of the group."""
        return self.action == action.id and self.decided_at in ("", iso(action.decided_at))

    def is_newer_than(self, action: Action) -> bool:
        """True if it is for a later decision: a higher generation, and the action was not decided clearly after it."""
        if (self.generation, self.epoch) <= (action.generation, action.epoch):
            return False
        return not self.decided_at or action.decided_at <= datetime.fromisoformat(self.decided_at) + CLOCKS

    def left(self, now: datetime) -> timedelta:
        """Time for which a process may still work on it; zero or less: none."""
        return datetime.fromisoformat(self.until) - now if self.until else timedelta(0)

    def has_rival(self, now: datetime) -> bool:
        """True if an earlier action may still be written."""
        return bool(self.older) and now < datetime.fromisoformat(self.older)


_STORED = [name for name in Intent.__slots__ if name != "later"]


def _checked(one: Intent) -> Intent:
    """Give it back. Raises ValueError where it says what no intent says."""
    for value, kind in ((one.generation, int), (one.epoch, int), (one.action, str), (one.done, bool)):
        if type(value) is not kind:
            msg = f"{value!r} is not of type {kind.__name__}"
            raise ValueError(msg)
    for moment in (one.until, one.older, one.decided_at):
        if moment and datetime.fromisoformat(moment).tzinfo is None:
            msg = f"{moment!r} has no time zone"
            raise ValueError(msg)
    return one

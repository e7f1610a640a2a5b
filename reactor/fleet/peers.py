"""Peers of one member: the other members that it knows, and which of them are present.

A member without a heartbeat for LEASE is gone, and so is one that did not answer twice. Silence counts only while we
listen: a member that was cut off itself gets no heartbeats, and that says nothing about the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reactor.runtime.clock import Clock

LEASE = 4.0
"""Seconds without a heartbeat after which a member counts as gone."""
DEAF = 2.5
"""Seconds after which we no longer listen, if nothing shows that we do: two heartbeats of our own, and a little."""
DOUBTS = 2
"""A member is gone after so many questions without an answer: one that reconnects has no subscription for a moment."""


@dataclass(slots=True)
class _Peer:
    revision: int
    seen: float
    doubts: int = 0


class Peers:
    """The members of a fleet, ourselves included."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._peers: dict[str, _Peer] = {}
        self._listened = clock.monotonic()
        """Monotonic time at which we last knew all that had been said."""

    def there(self) -> list[str]:
        """Sorted names of the members that are present, ourselves included."""
        return sorted({self._name, *(name for name, peer in self._peers.items() if self._counts(peer))})

    def asked(self) -> Sequence[str]:
        """Names of the members that are asked whether they still answer."""
        return [name for name, peer in self._peers.items() if peer.doubts < DOUBTS]

    def listened(self) -> None:
        """Note that all that was said until now is known. After a time in which we were deaf, every lease begins
        again."""
        now = self._clock.monotonic()
        if now - self._listened > DEAF:
            for peer in self._peers.values():
                peer.seen = now if self._counts(peer) else peer.seen
        self._listened = now

    def spoke(self, name: str, revision: int) -> bool:
        """The heartbeat of a member has this revision; True: the member is new, or back."""
        known = self._peers.get(name)
        # Unequal, not greater: a store that was wiped counts from one again.
        if known is not None and known.revision == revision:
            return False
        there = known is not None and self._counts(known)
        self._peers[name] = _Peer(revision, self._clock.monotonic())
        return not there

    def left(self, name: str) -> None:
        """A member has left in good order."""
        self._peers.pop(name, None)

    def answered(self, name: str, answer: bool | None) -> bool:
        """A member was asked (`Bus.ask`); True: it counts as gone now."""
        peer = self._peers.get(name)
        if peer is None:
            return False  # it left meanwhile
        peer.doubts = peer.doubts + 1 if answer is False else 0
        return peer.doubts == DOUBTS

    def names(self) -> Sequence[str]:
        """Names of all known members, present or not."""
        return list(self._peers)

    def _counts(self, peer: _Peer) -> bool:
        listened = min(self._clock.monotonic(), self._listened + DEAF)
        return peer.doubts < DOUBTS and listened - peer.seen < LEASE

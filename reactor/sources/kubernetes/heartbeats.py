"""Detects lost heartbeats: a renewal counts from when *we saw* it, on our own monotonic clock.

A Lease's own timestamps are those of another machine, whose clock may be hours off. And silence counts only while we
are listening: time in which the watch was lost, or this process was stopped, does not count as silence of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reactor.clients.changes import metadata_of
from reactor.clients.kubernetes_port import JsonObject

LATE = 2.0
"""A look that comes later than so many times its period after the last one: in between, this process did not listen."""

LEASE_SECONDS = 40.0  # the kubelet's, where a Lease does not say


@dataclass(slots=True)
class Beat:
    """One Lease."""

    mark: object
    """Value that changes with every renewal."""
    first_seen: float
    last_beat: float | None = None
    """Monotonic time at which a renewal was last seen; None: not yet. The first sight of a Lease is none, it may be
    years old."""

    def silent_seconds(self, now: float) -> float:
        """Seconds since a renewal was last seen, or since the first sight if none was."""
        return now - (self.first_seen if self.last_beat is None else self.last_beat)


class Heartbeats:
    """The Leases of one watch, by any key. Moments are seconds on one monotonic clock."""

    def __init__(self, now: float, *, look_seconds: float) -> None:
        self._beats: dict[Any, Beat] = {}
        self._look = look_seconds
        self._looked_at = now

    def __iter__(self) -> Iterator[tuple[Any, Beat]]:
        return iter([*self._beats.items()])

    def get(self, key: object) -> Beat | None:
        """Give one of them."""
        return self._beats.get(key)

    def seen(self, key: object, mark: object, now: float) -> Beat:
        """Take note of a Lease as it now is."""
        beat = self._beats.get(key)
        if beat is None:
            beat = self._beats[key] = Beat(mark, now)
        elif beat.mark != mark:
            beat.mark, beat.last_beat = mark, now
        return beat

    def gone(self, key: object) -> None:
        """Forget a Lease."""
        self._beats.pop(key, None)

    def look(self, now: float, *, listening: bool) -> None:
        """Note that time has passed, to be called every `look_seconds`; `listening`: whether renewals were heard."""
        passed = now - self._looked_at
        self._looked_at = now
        deaf = passed if not listening else max(0.0, passed - LATE * self._look)
        if not deaf:
            return
        for beat in self._beats.values():
            beat.first_seen = min(now, beat.first_seen + deaf)
            if beat.last_beat is not None:
                beat.last_beat = min(now, beat.last_beat + deaf)


def project(found: JsonObject) -> JsonObject:
    """Keep of a Lease its name, its labels and what a renewal changes."""
    metadata, spec = metadata_of(found), found.get("spec")
    kept = ("holderIdentity", "renewTime", "leaseTransitions", "leaseDurationSeconds")
    return {
        "metadata": {key: metadata.get(key) for key in ("namespace", "name", "labels")},
        "spec": {key: spec.get(key) for key in kept} if isinstance(spec, dict) else {},
    }


def lasts(lease: JsonObject) -> float:
    """Give for how many seconds a renewal is good."""
    said = lease["spec"].get("leaseDurationSeconds")
    return float(said) if isinstance(said, int) and said > 0 else LEASE_SECONDS


def mark(lease: JsonObject) -> object:
    """Give what every renewal changes; None for a Lease that was never renewed. A new label is no heartbeat."""
    spec: Mapping[str, Any] = lease["spec"]
    return (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))

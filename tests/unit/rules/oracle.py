"""The promises in a second form: second by second, from the whole history at once.

It shares no code with the core. All moments of its histories are whole seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

BAD, GOOD, DONT_KNOW = "Unhealthy", "Healthy", "Unknown"


@dataclass(frozen=True)
class Heard:
    """One observation."""

    service: str
    status: str
    seen: int
    heard: int
    signal: str = "x"
    stale: int | None = None


def taken(history: Sequence[Heard], service: str, until: int) -> list[Heard]:
    """Observations of this service that count: one that is older than an earlier heard one does not."""
    last: dict[str, int] = {}
    out = []
    for word in sorted(history, key=lambda word: (word.heard, min(word.seen, word.heard))):
        seen = min(word.seen, word.heard)  # a clock that is ahead cannot see the future
        if word.service == service and word.heard <= until and seen >= last.get(word.signal, seen):
            last[word.signal] = seen
            out.append(replace(word, seen=seen))
    return out


def status(words: Sequence[Heard], second: int) -> str | None:
    """The worst of all signals in this second, as far as these observations tell; None: no observation yet."""
    latest: dict[str, Heard] = {}
    for word in words:
        if word.seen <= second and (word.signal not in latest or word.seen >= latest[word.signal].seen):
            latest[word.signal] = word
    found = {
        DONT_KNOW if word.stale is not None and second >= word.seen + word.stale else word.status
        for word in latest.values()
    }
    return next((answer for answer in (BAD, DONT_KNOW, GOOD) if answer in found), None)


@dataclass(frozen=True)
class Patience:
    """A rule's windows."""

    toleration: int = 0
    recovery: int = 0
    unknown_is_bad: bool = False


def bad_for_long_enough(history: Sequence[Heard], service: str, patience: Patience, second: int) -> bool:
    """True if it had been bad for the toleration, and not good again for the recovery time, in this second.

    Seconds of unknown health count neither way.
    """
    words = taken(history, service, second)
    down, bad, good = False, 0, 0
    for moment in range(second + 1):
        answer = status(words, moment)
        if answer == DONT_KNOW and patience.unknown_is_bad:
            answer = BAD
        if answer == BAD:
            good = 0
            down = down or bad >= patience.toleration
            bad += 1
        elif answer == GOOD:
            bad = 0
            down = down and good < patience.recovery
            good += 1
    return down


def could_know(history: Sequence[Heard], service: str, patience: Patience, first: int, last: int) -> bool:
    """True if, in any second of this time, the observations heard until then showed it bad for long enough."""
    return any(bad_for_long_enough(history, service, patience, second) for second in range(last, first - 1, -1))

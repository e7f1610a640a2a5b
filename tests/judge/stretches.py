"""Questions about stretches of time, for every judge: the part after a window, the part that several share."""

from __future__ import annotations

from collections.abc import Iterable

from reactor.audit.spans import Span

SEEN_WITHIN = 1.0
"""Seconds, beside a period of the source, from a change to the last write that does not know of it: a look, a decision
and a request take so long on a busy machine."""


def over(spells: Iterable[Span], window: float) -> list[Span]:
    """Give the part of each stretch that comes after its window."""
    return [Span(one.begin + window, one.end) for one in spells if one.begin + window <= one.end]


def common(some: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Give the time that is in both."""
    known = list(others)
    return [both for one in some for other in known if (both := one.within(other)) is not None]

"""Stretches of time in which something was so, as judges compare them."""

from __future__ import annotations

from collections.abc import Iterable

from reactor.audit.spans import Span, merged

SEEN_WITHIN = 1.0
"""Seconds, beside a period of the source, from a change to the last write that does not know of it: a look, a decision
and a request take so long on a busy machine."""

IN_HANDS = 5.0
"""Seconds that an action may be in an executor's hands: its own limit is a little less in a chaos run."""


def over(spells: Iterable[Span], window: float) -> list[Span]:
    """Give the part of each stretch that comes after its window."""
    return [Span(one.begin + window, one.end) for one in spells if one.begin + window <= one.end]


def common(some: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Give the time that both have."""
    known = list(others)
    return [both for one in some for other in known if (both := one.within(other)) is not None]


def current(spells: Iterable[Span], at: float) -> Span | None:
    """Give the stretch in which this moment is."""
    return next((one for one in spells if one.begin <= at < one.end), None)


def covered(span: Span, gaps: Iterable[Span]) -> bool:
    """True if one gap, or some that touch, cover the whole of it."""
    return any(gap.begin <= span.begin and span.end <= gap.end for gap in merged(gaps))


def length(span: Span) -> str:
    """Length of a stretch, for people."""
    return f"{span.end - span.begin:.3f} s"

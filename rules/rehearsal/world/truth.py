"""Truth of a world, whatever is observed of it: the measure for acts that outages may have misled.

It has only targets whose sources all confirm what they report: an outsider's observation holds until it is stale, also
where the truth is another by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rules.rehearsal.world.fault_plan import Interval, merged

SEEN_WITHIN = 8.0
"""Seconds that what an act rests on may be old: 5 s between the looks, 2 s until they are heard, and the clocks."""
ROUNDING = 1.0
"""Seconds by which a window may seem too short: clocks differ by half a second."""


@dataclass(slots=True)
class Truth:
    """Intervals in which targets are bad, and copies start."""

    lines: Mapping[str, Mapping[str, Sequence[Interval]]] = field(default_factory=dict)
    """Target to signal to when its source sees the target bad, whenever it looks."""
    starts: Mapping[str, Sequence[Interval]] = field(default_factory=dict)
    """Copy to when it was placed and when it was ready."""

    def bad(self, target: str, names: Sequence[str] | None, now: float) -> list[Interval] | None:
        """Give when any of the signals that count could see it bad, up to now; None: not all of them can be known."""
        lines = self.lines.get(target, {})
        counting = list(lines) if names is None else names
        if not counting or any(name not in lines for name in counting):
            return None
        spans = [span for name in counting for span in lines[name]] + list(self.starts.get(target, ()))
        return merged([(first, min(last, now)) for first, last in spans if first < now])

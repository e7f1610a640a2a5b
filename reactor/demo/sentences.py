"""The demo's sentences: pure functions from what is to what people read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reactor.demo.ground_truth import RouteWrite
from reactor.demo.tally import TrafficSecond
from rules.core.member import Member, Window


def moved(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """`checkout 1 → 0, checkout-west 0 → 1`; of a backend that stays as it is, only its weight."""
    names = {**before, **after}
    return ", ".join(_moved(name, before.get(name), after.get(name)) for name in names) or "no backends"


def _moved(name: str, before: int | None, after: int | None) -> str:
    if before == after:
        return f"{name} {after}"
    return f"{name} {'-' if before is None else before} → {'-' if after is None else after}"


def traffic(second: TrafficSecond | None) -> str:
    """`checkout 50/s 100% ok, checkout-west 0/s`: each backend's rate and success."""
    if second is None or not any(count.sent for count in second.counts.values()):
        return "no traffic yet"
    return ", ".join(
        f"{name or 'no backend'} {count.sent}/s" + (f" {percent(count.ok, count.sent)} ok" if count.sent else "")
        for name, count in second.counts.items()
    )


def percent(part: int, whole: int) -> str:
    """`98%`; 100% and 0% only where it is all or nothing."""
    value = round(100 * part / whole)
    if part not in (0, whole):
        value = min(max(value, 1), 99)
    return f"{value}%"


def seconds_left(window: Window, length: float, now: datetime) -> float:
    """Give how long a window has still to run; one that waits does not run."""
    until = window.waiting_since or now
    return max(0.0, length - (until - window.since).total_seconds())


def countdown(target: str, window: Window, length: float, now: datetime) -> str:
    """`service/… bad: 3.2 s of 5 s left`."""
    state = "good again" if window.healthy else "bad"
    waits = " (waits: Unknown)" if window.waiting_since else ""
    return f"{target} {state}: {seconds_left(window, length, now):.1f} s of {length:g} s left{waits}"


def seen(target: str, member: Member) -> str:
    """`service/… is Unhealthy (HTTP 503)`."""
    return f"{target} is {member.status}" + (f" ({member.detail})" if member.detail else "")


def opened(target: str, window: Window, length: float) -> str:
    """Sentence about a window that has opened."""
    if window.healthy:
        return f"{target} must stay good for {length:g} s before it gets its traffic back"
    return f"{target} is tolerated for {length:g} s before its traffic moves away"


def shifted(route: str, shift: RouteWrite, waited: float | None) -> str:
    """Sentence about a write: the weights that it changed, and its delay since the reading that began it."""
    late = "" if waited is None else f", {waited:.1f} s after the first reading that said so"
    return f"{route}: {moved(shift.before, shift.after)}{late}"

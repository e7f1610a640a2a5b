"""Members that are no more: a pattern lists none, so one without an observation for long is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from bus.messages import Health
from rules.core.group import Group, updated
from rules.core.member import Member

GONE = timedelta(days=1)
"""A member is forgotten so long after it was last heard. Until then it is Unknown: a source may be away for hours."""
SPEAKS = timedelta(minutes=10)
"""And another one has been known for so long: where all are silent it is the sources that are away, and when they
come back they do not all speak in the same moment."""


def forget(group: Group, now: datetime, keeps: Callable[[str], bool] = lambda _: False) -> Group:
    """Give the group without the members that are gone. `keeps`: who is known to exist, whatever is observed of it."""
    gone = {target for target, end in _ends(group.members).items() if end <= now and not keeps(target)}
    if not gone or not any(_speaks(member, now) for member in group.members.values()):
        return group
    return updated(group, members={target: one for target, one in group.members.items() if target not in gone})


def next_end(group: Group, now: datetime, keeps: Callable[[str], bool] = lambda _: False) -> datetime | None:
    """Give when the next member is to be forgotten."""
    ends = [end for target, end in _ends(group.members).items() if not keeps(target)]
    if any(end <= now for end in ends):  # no signal yet
        ends = [end for end in ends if end > now]
        ends += [now + SPEAKS] if any(one.status is not Health.UNKNOWN for one in group.members.values()) else []
    return min(ends, default=None)


def _ends(members: Mapping[str, Member]) -> dict[str, datetime]:
    """Expiry time of each Unknown member: GONE after its last observation, never before all its signals are stale."""
    out = {}
    for target, member in members.items():
        if member.status is Health.UNKNOWN:
            stale = [one.stale_at for one in member.signals.values() if one.stale_at is not None]
            if stale and len(stale) == len(member.signals):
                heard = max(one.observed_at for one in member.signals.values())
                out[target] = max(heard + GONE, *stale)
    return out


def _speaks(member: Member, now: datetime) -> bool:
    if member.status is Health.UNKNOWN or now < member.since + SPEAKS:
        return False
    return any(one.stale_at is not None and one.stale_at > now for one in member.signals.values())

"""Deadlines of members and ends of their windows: the changes that time alone will make.

Most decisions concern one member of many and ask for the moments of all, so they are kept with each member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from bus.messages import Health
from rules.core.group import Group
from rules.core.member import Member, keep
from rules.core.reader import ALWAYS, Reader
from rules.engine.known_kinds import kind_of
from rules.engine.signals import proven, silence_proven
from rules.engine.unbroken import window_length
from rules.rulefile.model import Rule

SILENT = timedelta(hours=1)
"""A signal that is stale for so long, while another one of its target speaks, is forgotten."""
SILENT_BAD = timedelta(days=1)
"""Time after which a silent signal is forgotten where the target is settled as unhealthy: silence is no recovery, and
the silent signal may be the one that reported the failure."""


class Deadlines(NamedTuple):
    """Deadlines of one member under the current rule and reader."""

    rule: Rule
    reader: Reader
    deadline: datetime | None
    """Next time at which the member changes without a new fact; None: never."""
    window_end: datetime | None
    """End of its running window, proven or not; None: no window runs."""
    unheard: bool
    """True if a source has been silent for too long: its messages may merely not have arrived."""


def deadlines(member: Member, rule: Rule, reader: Reader) -> Deadlines:
    """Give what is to come of a member; kept with it, so that it is computed once."""
    found: Deadlines | None = getattr(member, "kept", None)
    if found is None or found.rule is not rule or (found.reader is not reader and found.reader != reader):
        end = window_end(member, rule)
        unheard = False
        for one in member.signals.values():
            unheard = unheard or (bool(one.source) and one.status_before is not None)
        found = Deadlines(rule, reader, _deadline(member, rule, end, reader), end, unheard)
        keep(member, found)
    return found


class Outlook(NamedTuple):
    """Earliest deadlines of several members."""

    members: Mapping[str, Member]
    """All of the group: with others it is another outlook."""
    deadline: datetime | None
    """Earliest time at which a member changes without a new fact; None: never."""
    window_end: datetime | None
    """Earliest end of a running window, proven or not; None: no window runs."""
    unheard: bool
    """True if a source of one of the members has been silent for too long."""

    def is_quiet(self, now: datetime) -> bool:
        """True if every deadline and window end is later than `now`."""
        return (self.deadline is None or self.deadline > now) and (self.window_end is None or self.window_end > now)


def outlook(group: Group, targets: Iterable[str], rule: Rule, reader: Reader) -> Outlook:
    """Give what is to come of these members. Of many, most are as they were: this only compares."""
    members = group.members
    deadline = end = None
    unheard = False
    for member in members.values() if targets is members else [members[target] for target in targets]:
        ahead: Deadlines | None = getattr(member, "kept", None)
        if ahead is None or ahead.rule is not rule or ahead.reader is not reader:
            ahead = deadlines(member, rule, reader)
        if ahead.deadline is not None and (deadline is None or ahead.deadline < deadline):
            deadline = ahead.deadline
        if ahead.window_end is not None and (end is None or ahead.window_end < end):
            end = ahead.window_end
        unheard = unheard or ahead.unheard
    return Outlook(members, deadline, end, unheard)


def of_members(group: Group, targets: Iterable[str], rule: Rule, reader: Reader) -> list[tuple[str, Member, Deadlines]]:
    """Give what is to come of these members."""
    members = group.members
    return [(target, member := members[target], deadlines(member, rule, reader)) for target in targets]


def deadline(member: Member, rule: Rule, reader: Reader = ALWAYS) -> datetime | None:
    """Give the next moment at which this member changes by itself."""
    return deadlines(member, rule, reader).deadline


def is_unproven(member: Member, rule: Rule, end: datetime, now: datetime) -> bool:
    """True if the member's window ended at `end`, not after `now`, and no observation from then or later confirms its
    status."""
    return end <= now and not is_proven(member, rule, end)


def window_end(member: Member, rule: Rule) -> datetime | None:
    """Give when the member's window is over, proven or not; None: it has none that runs."""
    window = member.window
    if window is None or window.waiting_since is not None:
        return None
    return window.since + window_length(rule, healthy=window.healthy)


def is_proven(member: Member, rule: Rule, end: datetime) -> bool:
    """True if an observation at `end` or later confirms the status that the member's window leads to."""
    return member.window is not None and proven(member, rule, end, healthy=member.window.healthy)


def runs_out(member: Member, rule: Rule, end: datetime, reader: Reader) -> datetime | None:
    """Give when the window runs out: at its end, or later where only silence shows that the member is bad."""
    if is_proven(member, rule, end):
        return end
    return None if member.window is None or member.window.healthy else silence_proven(member, rule, end, reader)


def forgotten_at(member: Member, name: str, rule: Rule) -> datetime | None:
    """Time at which this signal is forgotten; None: not unless something changes. Signals that the rule names are never
    forgotten."""
    signal = member.signals[name]
    if signal.stale_at is None or rule.signals is not None:
        return None
    if kind_of(rule).remembers(rule, name):
        return None
    at = signal.stale_at + (SILENT_BAD if member.settled is False else SILENT)
    others = (one for key, one in member.signals.items() if key != name and one.stale_at is not None)
    speaks = any(one.observed_at >= signal.stale_at and one.stale_at > at for one in others if one.stale_at)
    return at if speaks else None


def _deadline(member: Member, rule: Rule, end: datetime | None, reader: Reader) -> datetime | None:
    signals = member.signals
    found = [
        signal.stale_at
        for name, signal in signals.items()
        if signal.stale_at is not None
        and (signal.status is not Health.UNKNOWN or signal.resolved)
        and (rule.signals is None or name in rule.signals)
    ]
    if len(signals) > 1:
        found += [at for name in signals if (at := forgotten_at(member, name, rule)) is not None]
    if end is not None and (over := runs_out(member, rule, end, reader)) is not None:
        found.append(over)
    return min(found, default=None)

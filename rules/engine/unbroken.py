"""Continuity of what is measured: a status counts from the time since which it has been seen without a gap.

While a source does not look, the status may have ended and begun again. Then the window, and an act that is still to
come, begin again; a source that reports having seen it all the time moves them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from bus.messages import Health
from rules.core.group import Group, updated
from rules.core.member import Member, Signal, WindowRestart
from rules.core.values import replace
from rules.engine.signals import goes_on, is_bad, stretch, unhealthy
from rules.rulefile.model import Rule


def window_length(rule: Rule, *, healthy: bool) -> timedelta:
    """Time for which a member has to be healthy, or bad, before it is settled so."""
    return rule.window(rule.recovery_seconds if healthy else rule.toleration_seconds)


def lengthened(member: Member, rule: Rule) -> Member:
    """Give a member that was settled by what its rule said before: an act that is still to come waits for the whole
    window of the rule as it is now."""
    if member.settled is None or member.settled_at is None or member.unproven:
        return member
    if member.settled is (member.status is not Health.HEALTHY):
        return member  # it is otherwise by now: `debounce` lengthens that
    due = member.since + window_length(rule, healthy=member.settled)
    return updated(member, settled_at=max(member.settled_at, due))


def is_broken(member: Member, last: Signal, new: Signal) -> bool:
    """True if the source reports since when it has looked, and leaves a gap in which the status may have
    been another."""
    before = last.status_before or last.status
    asked = new.status if before is not Health.UNKNOWN or member.status is not Health.UNKNOWN else Health.UNKNOWN
    return new.since is not None and before is asked and not goes_on(last, new)


def restarted(member: Member, rule: Rule, name: str, last: Signal, signal: Signal) -> Member:
    """No look shows that the status lasted: what was measured of it begins again with this stretch of the signal, which
    has this name and was `last` before."""
    same = is_bad(rule, signal.status) is is_bad(rule, member.status)
    waits = member.window is not None and member.window.waiting_since is not None
    if not same and not waits:
        return member
    healthy = not is_bad(rule, signal.status)
    restart = WindowRestart(signal.begun, min(last.lasts_until, signal.begun), name)
    if member.settled is healthy:
        # It was settled like this before. An act that is still to come needs the whole length once more.
        end = signal.begun + window_length(rule, healthy=healthy)
        return replace(member, since=signal.begun, settled_at=end, window=None, covered_until=None, restart=restart)
    return replace(member, since=signal.begun, window=None, covered_until=None, restart=restart)


def extended(member: Member, rule: Rule, signal: Signal) -> Member:
    """This signal saw the target bad before the others did, and all the time since."""
    window = member.window
    if member.settled is False and member.settled_at is not None:
        due = signal.begun + window_length(rule, healthy=False)
        member = updated(member, settled_at=min(member.settled_at, due))
    if member.status is Health.UNHEALTHY and signal.proves(member.since):
        member = updated(member, since=min(member.since, signal.begun))
    if window is None or window.healthy or window.waiting_since is not None or not signal.proves(window.since):
        return member
    return updated(member, window=updated(window, since=min(window.since, signal.begun)))


def followed(member: Member, before: Member, rule: Rule, name: str, at: datetime) -> Member:
    """Follow until when the signals show, one after the other and without a gap, that the member is Unhealthy.

    In a gap it may have been well: what is measured, and an act that is still to come, begin again after it. Who saw it
    bad all the time and is heard later moves the window back (`extended`). `name`: the signal that was heard at `at`.
    """
    saying = unhealthy(member, rule)
    if member.status is not Health.UNHEALTHY or not saying:
        waits = member.status is Health.UNKNOWN and not is_bad(rule, Health.UNKNOWN)
        return member if waits else updated(member, covered_until=None)
    since, until = stretch(saying)
    if member.covered_until is None or _waited(before):
        return updated(member, covered_until=until)
    covered = min(member.covered_until, at)
    if since <= covered:
        return updated(member, covered_until=max(covered, until))
    window, due, restart = member.window, member.settled_at, member.restart
    if window is not None and not window.healthy:
        if since > window.since:
            restart = WindowRestart(since, covered, name)
        window = updated(window, since=max(window.since, since))
    elif member.settled is False and due is not None:
        due = max(due, since + window_length(rule, healthy=False))
    return updated(member, covered_until=until, window=window, settled_at=due, restart=restart)


def _waited(member: Member) -> bool:
    """True if the member is Unknown, and was shown to be Unhealthy up to the moment at which that began."""
    return member.status is Health.UNKNOWN and member.covered_until is not None and member.covered_until >= member.since


def restarts(before: Group, after: Group) -> Mapping[str, WindowRestart]:
    """Give the windows that have restarted from one state of a group to the next, by target."""
    if before.members is after.members or after.rule.startswith("@"):
        return {}
    known = before.members
    return {
        target: member.restart
        for target, member in after.members.items()
        if member.restart is not None and (target not in known or known[target].restart != member.restart)
    }

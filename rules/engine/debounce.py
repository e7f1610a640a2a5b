"""Second verb: windows. How a member's status becomes a debounced answer.

Windows start when the status was observed, not when we heard of it. Deadlines are taken in their order, also when they
are looked at late, so the answer does not depend on when anybody looked.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from bus.messages import Health
from rules.group import Group, Member, Signal, Window, updated
from rules.language.model import Rule, UnknownAs


def debounce(rule: Rule, group: Group, now: datetime) -> Group:
    """Let all members' time pass up to this moment."""
    members = {target: advance(member, rule, now) for target, member in group.members.items()}
    if all(member is group.members[target] for target, member in members.items()):
        return group
    return replace(group, members=members)


def combined(member: Member, rule: Rule, at: datetime) -> Health | None:
    """Give the worst of the signals that count at this moment: Unhealthy, then Unknown, then Healthy.

    None: none of them was ever heard. Unknown from a resolved alert is settled by another signal's Healthy.
    """
    healthy = unknown = resolved = False
    for name, signal in member.signals.items():
        if rule.signals is not None and name not in rule.signals:
            continue
        stale = signal.stale_at is not None and signal.stale_at <= at
        if signal.status is Health.UNKNOWN or stale:
            resolved |= signal.resolved and not stale
            unknown |= stale or not signal.resolved
        elif signal.status is Health.UNHEALTHY:
            return Health.UNHEALTHY
        else:
            healthy = True
    if unknown or (resolved and not healthy):
        return Health.UNKNOWN
    return Health.HEALTHY if healthy else None


def heard(member: Member, name: str, signal: Signal, rule: Rule) -> Member:
    """Fold one observation in, at the moment when it was made."""
    member = advance(member, rule, signal.observed_at, inclusive=False)
    signals = {**member.signals, name: signal}
    if name not in member.signals:
        signals = dict(sorted(signals.items()))
    member, at = replace(member, signals=signals), signal.observed_at
    if len(signals) > 1 and combined(member, rule, at) is Health.HEALTHY:
        # They all say so only since the last of them does: a word that comes late does not date that back.
        at = max(one.observed_at for key, one in signals.items() if rule.signals is None or key in rule.signals)
    return _looked_at(member, rule, at)


def advance(member: Member, rule: Rule, to: datetime, *, inclusive: bool = True) -> Member:
    """Let time pass: signals go stale and windows run out, each at its own moment, in order."""
    while (at := deadline(member, rule)) is not None and (at < to or (inclusive and at == to)):
        # Silence first: a window that would run out just as its only witness falls silent waits.
        looked = _looked_at(member, rule, at)
        member = _run_out(looked, rule, at)
    return member


def deadline(member: Member, rule: Rule) -> datetime | None:
    """Give the next moment at which this member changes by itself."""
    moments = [
        signal.stale_at
        for name, signal in member.signals.items()
        if signal.stale_at is not None
        and (signal.status is not Health.UNKNOWN or signal.resolved)
        and (rule.signals is None or name in rule.signals)
    ]
    if member.window is not None and member.window.waiting_since is None:
        moments.append(member.window.since + _length(rule, healthy=member.window.healthy))
    return min(moments, default=None)


def _length(rule: Rule, *, healthy: bool) -> timedelta:
    return timedelta(seconds=rule.recovery_seconds if healthy else rule.toleration_seconds)


def _looked_at(member: Member, rule: Rule, at: datetime) -> Member:
    """Take the status as it is at this moment. A signal that has gone stale is Unknown from now on."""
    if any(signal.stale_at is not None and signal.stale_at <= at for signal in member.signals.values()):
        member = replace(member, signals={name: _aged(signal, at) for name, signal in member.signals.items()})
    status = combined(member, rule, at)
    if status is None:
        return member
    if status is not member.status:
        member = replace(member, status=status, since=at)
    bad = status is Health.UNHEALTHY or (status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.UNHEALTHY)
    if status is Health.UNKNOWN and not bad:
        return _wait(member, at)
    return _move(member, at, healthy=not bad)


def _aged(signal: Signal, at: datetime) -> Signal:
    if signal.stale_at is None or signal.stale_at > at:
        return signal
    return replace(signal, status=Health.UNKNOWN, resolved=False, stale_at=None)


def _wait(member: Member, at: datetime) -> Member:
    window = member.window
    if window is None or window.waiting_since is not None:
        return member
    return replace(member, window=replace(window, waiting_since=max(at, window.since)))


def _move(member: Member, at: datetime, *, healthy: bool) -> Member:
    """The member is sure of its status: open, keep, resume or close its window."""
    if member.settled is healthy:
        return updated(member, window=None)
    if healthy and member.settled is None:
        # It was never taken as bad, so there is nothing that it has to recover from.
        return replace(member, settled=True, unproven=True, window=None)
    window = member.window
    if window is None or window.healthy is not healthy:
        return replace(member, window=Window(healthy, at))
    if window.waiting_since is not None:
        waited = max(at - window.waiting_since, timedelta())
        return replace(member, window=Window(healthy, window.since + waited))
    return member


def _run_out(member: Member, rule: Rule, at: datetime) -> Member:
    window = member.window
    if window is None or window.waiting_since is not None:
        return member
    if at >= window.since + _length(rule, healthy=window.healthy):
        return replace(member, settled=window.healthy, unproven=False, window=None)
    return member

"""Second verb: windows. How a member's status becomes a debounced answer.

Windows start when the status was observed, not when we heard of it. Deadlines are taken in their order, also when they
are looked at late, so the answer does not depend on when anybody looked. A signal that is silent for long while another
one speaks is of a source that is no more, and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from bus.messages import Health
from rules.group import Group, Member, Signal, Window, updated
from rules.language.model import Rule, UnknownAs
from rules.language.zone import ZoneIsolation

SILENT = timedelta(hours=1)
"""A signal that is stale for so long, while another one of its target speaks, is forgotten."""
SILENT_BAD = timedelta(days=1)
"""Where the target is taken as bad: silence is no recovery, and maybe it is the silent one that said so."""


def debounce(rule: Rule, group: Group, now: datetime, before: Group | None = None) -> Group:
    """Let all members' time pass up to this moment. `before`: the group as it was last decided."""
    passed = {}
    for target in touched(group, now, before):
        if (member := advance(group.members[target], rule, now)) is not group.members[target]:
            passed[target] = member
    return replace(group, members={**group.members, **passed}) if passed else group


def touched(group: Group, now: datetime, before: Group | None) -> Iterable[str]:
    """The members whose time has to be looked at: all, or before their next moment those that were heard since.

    Only guards and quorums are spared the others: they have thousands, and no windows that new rules could shorten.
    """
    if before is None or not group.rule.startswith("@") or (before.wake_at is not None and before.wake_at <= now):
        return group.members
    known = before.members
    return [target for target, member in group.members.items() if known.get(target) is not member]


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
    member, at = advance(member, rule, signal.observed_at, inclusive=False), signal.observed_at
    last = member.signals.get(name)
    signals = {**member.signals, name: signal}
    if last is None:
        signals = dict(sorted(signals.items()))
    if last is None or (last.stale_at is not None and last.stale_at < at):
        # Maybe all were silent, and it is only the first that speaks again: the others have their time from now on.
        signals = {key: _silent_from(one, at) for key, one in signals.items()}
    member = replace(member, signals=signals)
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
    if len(member.signals) > 1:
        moments += [at for name in member.signals if (at := _gone_at(member, name, rule)) is not None]
    if member.window is not None and member.window.waiting_since is None:
        moments.append(member.window.since + _length(rule, healthy=member.window.healthy))
    return min(moments, default=None)


def _length(rule: Rule, *, healthy: bool) -> timedelta:
    return timedelta(seconds=rule.recovery_seconds if healthy else rule.toleration_seconds)


def _looked_at(member: Member, rule: Rule, at: datetime) -> Member:
    """Take the status as it is at this moment. A signal that has gone stale is Unknown from now on."""
    if any(signal.stale_at is not None and signal.stale_at <= at for signal in member.signals.values()):
        member = replace(member, signals={name: _aged(signal, at) for name, signal in member.signals.items()})
    if len(member.signals) > 1:
        gone = {name for name in member.signals if (end := _gone_at(member, name, rule)) is not None and end <= at}
        if gone:
            member = replace(member, signals={key: one for key, one in member.signals.items() if key not in gone})
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
    if signal.stale_at is None or signal.stale_at > at or (signal.status is Health.UNKNOWN and not signal.resolved):
        return signal
    return replace(signal, status=Health.UNKNOWN, resolved=False)


def _silent_from(signal: Signal, at: datetime) -> Signal:
    stale = signal.stale_at is not None and signal.stale_at < at
    return replace(signal, stale_at=at) if stale else signal


def _gone_at(member: Member, name: str, rule: Rule) -> datetime | None:
    """When this signal is forgotten; None: not as things stand. One that the rule names is never."""
    signal = member.signals[name]
    if signal.stale_at is None or rule.signals is not None:
        return None
    if isinstance(rule, ZoneIsolation) and name in (rule.failback.signals or ()):
        return None
    at = signal.stale_at + (SILENT_BAD if member.settled is False else SILENT)
    others = (one for key, one in member.signals.items() if key != name and one.stale_at is not None)
    speaks = any(one.observed_at >= signal.stale_at and one.stale_at > at for one in others if one.stale_at)
    return at if speaks else None


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

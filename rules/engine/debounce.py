"""Second verb: windows. How a member's status becomes a debounced answer.

Windows start when the status was observed, not when we got it, and run out only on evidence from their end or
later (decision 21). Deadlines are taken in their order, also when they are looked at late, so the answer does not
depend on when a process looked. A signal that is silent for long while another one is heard is of a source that is no
more, and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from bus.messages import Health
from rules.core.group import Group, updated
from rules.core.member import Member, Signal, Window
from rules.core.reader import ALWAYS, Reader
from rules.core.values import replace
from rules.engine.deadlines import Outlook, deadline, forgotten_at, of_members, runs_out, window_end
from rules.engine.signals import begun, bridged, combined, is_bad, joined, unknown_from
from rules.engine.unbroken import extended, followed, is_broken, restarted, window_length
from rules.rulefile.model import Rule


def debounce(
    rule: Rule, group: Group, now: datetime, before: Group | None = None, reader: Reader = ALWAYS,
    ahead: Outlook | None = None,
) -> Group:  # fmt: skip
    """Let all members' time pass up to this moment. `before`: the group as it was last decided. `ahead`: of those that
    are touched, where it is known."""
    if ahead is not None and ahead.members is group.members and (ahead.deadline is None or ahead.deadline > now):
        return group
    passed = {
        target: advance(member, rule, now, reader)
        for target, member, ahead in of_members(group, touched(group, now, before), rule, reader)
        if ahead.deadline is not None and ahead.deadline <= now
    }
    return replace(group, members={**group.members, **passed}) if passed else group


def touched(group: Group, now: datetime, before: Group | None) -> Iterable[str]:
    """The members whose time has to be looked at: all, or before their next moment those that were heard since.

    Only rules that the reactor makes itself are spared the others: they have thousands of members, and no windows that
    another rule file could shorten.
    """
    if (
        before is None
        or not group.rule.startswith("@")
        or (before.next_deadline is not None and before.next_deadline <= now)
    ):
        return group.members
    known = before.members
    return [target for target, member in group.members.items() if known.get(target) is not member]


def heard(member: Member, name: str, signal: Signal, rule: Rule, reader: Reader = ALWAYS) -> Member:
    """Fold one observation in, at the moment when it was made."""
    member, at = advance(member, rule, signal.observed_at, reader, inclusive=False), signal.observed_at
    before = member
    last = member.signals.get(name)
    broken = last is not None and is_broken(member, last, signal)
    dated = signal.since is not None
    signal = joined(last, signal)
    signals = {**member.signals, name: signal}
    if last is None:
        signals = dict(sorted(signals.items()))
    if last is None or (last.stale_at is not None and last.stale_at < at):
        # Maybe all were silent, and it is only the first that speaks again: the others have their time from now on.
        signals = {key: _silent_from(one, at) for key, one in signals.items()}
    member = replace(member, signals=signals)
    if broken and last is not None and not bridged(member, rule, last, signal):
        member = restarted(member, rule, name, last, signal)
    elif dated and signal.status is Health.UNHEALTHY:
        member = extended(member, rule, signal)
    member = _waits_since(_looked_at(member, rule, at, said=True), signal)
    return _restart_kept(followed(member, before, rule, name, at))


def _waits_since(member: Member, signal: Signal) -> Member:
    """A window that waits since a signal went stale has waited for longer, if a late word of it says Unknown."""
    window = member.window
    if signal.status is not Health.UNKNOWN or window is None or window.waiting_since is None:
        return member
    since = max(min(window.waiting_since, signal.begun), window.since)
    return member if since == window.waiting_since else replace(member, window=replace(window, waiting_since=since))


def _restart_kept(member: Member) -> Member:
    """Forget a restart that no longer says since when it counts: another signal saw it all the time, or it is over."""
    if member.restart is None:
        return member
    begun = member.window.since if member.window is not None else member.since
    return member if begun >= member.restart.at else replace(member, restart=None)


def advance(member: Member, rule: Rule, to: datetime, reader: Reader = ALWAYS, *, inclusive: bool = True) -> Member:
    """Let time pass: signals go stale and windows run out, each at its own moment, in order."""
    while (at := deadline(member, rule, reader)) is not None and (at < to or (inclusive and at == to)):
        # Silence first: a window that would run out just as its only witness falls silent waits.
        looked = _looked_at(member, rule, at)
        member = _run_out(looked, rule, at, reader)
    return member


def _looked_at(member: Member, rule: Rule, at: datetime, *, said: bool = False) -> Member:
    """Take the status as it is at this moment. A signal that has gone stale is Unknown from now on.

    `said`: a signal says so, and it counts since when they all have; else it is time that changed it, at `at`.
    """
    for signal in member.signals.values():
        if signal.stale_at is not None and signal.stale_at <= at:
            member = replace(member, signals={name: _aged(one, at) for name, one in member.signals.items()})
            break
    if len(member.signals) > 1:
        gone = {name for name in member.signals if (end := forgotten_at(member, name, rule)) is not None and end <= at}
        if gone:
            member = replace(member, signals={key: one for key, one in member.signals.items() if key not in gone})
    status = combined(member, rule, at)
    if status is None:
        return member
    if said and status is Health.UNKNOWN and (unknown_at := unknown_from(member, rule, at)) is not None:
        # A late word: all signals of this moment say Healthy, and it is Unknown only since a later one.
        member, at = _is(member, rule, Health.HEALTHY, at, at), unknown_at
    return _is(member, rule, status, begun(member, rule, status, at) if said else at, at)


def _is(member: Member, rule: Rule, status: Health, since: datetime, at: datetime) -> Member:
    """Give the member with this status, which it has since then, at this moment."""
    if status is not member.status:
        restart = member.restart if member.restart is not None and member.restart.at == since else None
        member = replace(member, status=status, since=since, restart=restart)
    bad = is_bad(rule, status)
    if status is Health.UNKNOWN and not bad:
        return _wait(member, at)
    if member.settled is (not bad) and member.window is not None:
        # It was otherwise in between, though not for long enough: an act that is still to come needs the whole length.
        member = replace(member, settled_at=since + window_length(rule, healthy=not bad))
    return _episode_ended(_move(member, since, healthy=not bad))


def _aged(signal: Signal, at: datetime) -> Signal:
    if signal.stale_at is None or signal.stale_at > at or (signal.status is Health.UNKNOWN and not signal.resolved):
        return signal
    return replace(signal, status=Health.UNKNOWN, resolved=False, status_before=signal.status)


def _silent_from(signal: Signal, at: datetime) -> Signal:
    stale = signal.stale_at is not None and signal.stale_at < at
    return replace(signal, stale_at=at) if stale else signal


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
        # It was never considered unhealthy, so there is nothing that it has to recover from.
        return replace(member, settled=True, settled_at=at, unproven=True, window=None)
    window = member.window
    if window is None or window.healthy is not healthy:
        return replace(member, window=Window(healthy, at))
    if window.waiting_since is not None:
        waited = max(at - window.waiting_since, timedelta())
        return replace(member, window=Window(healthy, window.since + waited))
    return member


def _run_out(member: Member, rule: Rule, at: datetime, reader: Reader) -> Member:
    window, end = member.window, window_end(member, rule)
    if window is None or end is None or at < end:
        return member
    over = runs_out(member, rule, end, reader)
    if over is None or at < over:
        return member
    settled = replace(member, settled=window.healthy, settled_at=end, unproven=False, window=None)
    return _episode_ended(settled)


def _episode_ended(member: Member) -> Member:
    """Once it is settled as healthy, and healthy, no signal has anything to recover from."""
    if member.settled is not True or member.status is not Health.HEALTHY:
        return member
    if not any([one.failed for one in member.signals.values()]):  # noqa: C419 - of one or two, twice as fast
        return member
    return replace(member, signals={name: replace(one, failed=False) for name, one in member.signals.items()})

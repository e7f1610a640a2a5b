"""First verb: fold the facts in. A late fact never undoes a newer one; silence is itself a fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeGuard

from bus.messages import AcquireReply, Approve, Fact, Health, Notify, Observation, Outcome, Pause, Reject, Resume
from rules.core.group import Group
from rules.core.member import Member, Signal
from rules.core.reader import ALWAYS, Reader
from rules.core.reasons import REFUSALS
from rules.core.values import replace
from rules.engine.debounce import heard
from rules.engine.known_kinds import kind_of
from rules.engine.pauses import commanded
from rules.limits import acquire, approvals
from rules.rulefile.model import Rule

RETRY_FIRST = timedelta(seconds=5)
RETRY_MAX = timedelta(minutes=5)
RETRY_AWAY = timedelta(seconds=1.5)
"""Delay before the next try while the API server does not answer. An action has to be done within five seconds of its
return; the rest of these is for the action itself."""
RETRY_REFUSED = timedelta(seconds=3.5)
"""Delay before the next try while the API server, or a proxy before it, refuses. A storm of refusals ends like an
outage, and the action has to be done within five seconds of its end."""
TRIES_ALIKE = 68
"""Number of refusals that are followed by the same delay: about four minutes. After that the delay doubles each time:
each try costs the server up to three requests."""
NO_LABELS: Mapping[str, str] = {}
"""The same for all targets without labels, which may be 100,000."""
_AWAY = "ApiUnavailable"
WAITED = "Waited"
NON_FAILURES = {"InProgress": RETRY_FIRST, "Maintained": timedelta(minutes=1), WAITED: timedelta(seconds=1)}
"""Reasons of an action that is not done and has not failed, and how soon the same one is asked for again.

InProgress: it takes longer than one call, and gets on. Maintained: a complete isolation is checked for as long as it is
wanted. Waited: no executor began it in time. A decider that gets this has read what was said before, and a second more
for what is on its way."""


class _Draft(dict[str, Member]):
    """The members while facts are folded in: one copy for all facts of a step. Afterwards it is not written."""

    __slots__ = ("is_over",)
    is_over: bool


def observe_all(rule: Rule, group: Group, facts: Iterable[Fact], now: datetime, reader: Reader = ALWAYS) -> Group:
    """Give the group with these facts folded in, one after the other."""
    known = len(group.members)
    for fact in facts:
        group = folded(rule, group, fact, now, reader)
    members = group.members
    if not _is_open(members):
        return group
    if len(members) > known:
        return replace(group, members=dict(sorted(members.items())))
    members.is_over = True
    return group


def _is_open(members: Mapping[str, Member]) -> TypeGuard[_Draft]:
    return isinstance(members, _Draft) and not hasattr(members, "is_over")


def folded(rule: Rule, group: Group, fact: Fact, now: datetime, reader: Reader = ALWAYS) -> Group:
    """Fold one of a step's facts in; the members may be a draft before and after."""
    match fact:
        case Observation():
            return _observation(rule, group, fact, now, reader)
        case Outcome():
            return _outcome(rule, group, fact, now)
        case Pause() | Resume():
            return _command(group, fact)
        case Approve():
            return approvals.hear(group, fact)
        case Reject():
            return approvals.refuse(group, fact)
        case AcquireReply():
            return acquire.on_reply(group, fact, now)
        case _:
            return kind_of(rule).observe(rule, group, fact, now)


def _observation(rule: Rule, group: Group, fact: Observation, now: datetime, reader: Reader) -> Group:
    # A source whose clock is ahead must not see the future: its window would open late, and its silence late.
    at = min(fact.observed_at, now)
    known = group.members.get(fact.target)
    last = known.signals.get(fact.signal) if known else None
    if last is not None and at <= last.observed_at:
        return group  # older, or the same again: a bus may say everything twice
    stale_at = at + timedelta(seconds=fact.stale_seconds) if fact.stale_seconds is not None else None
    valid_until = None
    if fact.valid_seconds is not None:
        # What is proven up to a moment before it was said is dated by those who looked, not by who said it.
        valid = timedelta(seconds=fact.valid_seconds)
        valid_until = min(fact.observed_at + valid, at + max(valid, timedelta(0)))
    percent = fact.healthy_percent
    if percent is None and last is not None and fact.status is Health.UNKNOWN:
        percent = last.healthy_percent  # not seen now: it counts as it was seen last
    signal = Signal(
        fact.status, at, stale_at, fact.resolved, fact.labels or NO_LABELS, fact.detail,
        since=min(fact.since, at) if fact.since is not None else None, source=fact.source, valid_until=valid_until,
        version=fact.version, resolution_seconds=fact.resolution_seconds,
        unanswered_until=min(fact.unanswered_until, now) if fact.unanswered_until is not None else None,
        gone=fact.gone, doubted=fact.doubted, healthy_percent=percent,
    )  # fmt: skip
    member = known or Member(Health.UNKNOWN, at)
    member = heard(member, fact.signal, signal, rule, reader)
    members = group.members if _is_open(group.members) else _Draft(group.members)
    members[fact.target] = member
    group = group if group.members is members else replace(group, members=members)
    return kind_of(rule).heard(rule, group, fact.target, at)


def _command(group: Group, fact: Pause | Resume) -> Group:
    at = max(group.commanded_at or fact.observed_at, fact.observed_at)
    return replace(commanded(group, fact), commanded_at=at)


def _outcome(rule: Rule, group: Group, fact: Outcome, now: datetime) -> Group:
    entry = next((entry for entry in group.outbox if entry.action.id == fact.action), None)
    if entry is None:
        return group  # of an action that is no longer asked for
    rest = tuple(other for other in group.outbox if other is not entry)
    at = min(fact.observed_at, now)
    if fact.status == "Done":
        acted_at = group.acted_at if isinstance(entry.action, Notify) else at
        group = kind_of(rule).done(rule, replace(group, outbox=rest, acted_at=acted_at), entry.action, at)
        return kind_of(rule).said(rule, group, entry.action, fact)
    if fact.status == "Refused" or not entry.wanted:
        return replace(group, outbox=rest)
    goes_on = (fact.reason or "") in NON_FAILURES
    wait = NON_FAILURES[fact.reason or ""] if goes_on else _retry_after(fact, entry.tries)
    failed = f"{fact.reason or 'Failed'}: {fact.detail}".rstrip(": ")
    uncounted = goes_on or fact.reason == _AWAY  # an outage, however long, uses up no tries
    tries, rounds = entry.tries + (not uncounted), entry.rounds + uncounted
    again = replace(
        entry, retry_at=now + wait, tries=tries, rounds=rounds, failed=failed, failed_at=at, ended=True
    )  # fmt: skip
    return kind_of(rule).failed(rule, replace(group, outbox=(*rest, again)), entry.action, fact, at)


def _retry_after(fact: Outcome, tries: int) -> timedelta:
    """Delay before the next try after the `tries`-th failure of the current action."""
    if fact.reason == _AWAY:
        return RETRY_AWAY
    if fact.reason not in REFUSALS:
        return min(RETRY_FIRST * (1 << min(tries - 1, 10)), RETRY_MAX)
    if tries <= TRIES_ALIKE:
        return RETRY_REFUSED
    return min(RETRY_REFUSED * (1 << min(tries - TRIES_ALIKE, 10)), RETRY_MAX)

"""Acquire requests of a group to the guards that it shares with others: sent, renewed while wanted, and given back.

A guard is asked once those before it have granted; while it denies, their slots are given back. A grant is good for
what is done in one step: what the group wants after that is requested again, and keeps its slot meanwhile. Messages may
be lost, doubled and late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus.messages import AcquireReply, AcquireRequest, Fact, Notify
from rules.core.grants import GrantRequest, Grants
from rules.core.group import Group
from rules.core.reasons import Held
from rules.core.values import replace
from rules.limits.limiters import REHEARSED, holds_slots, spends
from rules.rulefile.guards import Guards

REQUEST_REPEAT = timedelta(seconds=3)
"""A request without a reply is said again after this long: the guard's partition may just have changed its owner."""
UNANSWERED = timedelta(seconds=15)
"""A guard that has not replied for so long is what the rule holds for."""
DENIED = timedelta(seconds=60)
"""One that was denied: should the grant have been lost on its way."""
GRANTED = timedelta(seconds=200)
"""One that is in use: three times before the guard takes the group for dead."""
CLOSED = (Held.WIDESPREAD_FAILURE, Held.DISRUPTED)
"""Denials that say of all groups alike that this is no time to act, and may last without end."""


@dataclass(frozen=True, slots=True)
class AcquireResult:
    """Result of acquire(): the new group, the requests to send, and whether all guards have granted."""

    group: Group
    emits: tuple[Fact, ...] = ()
    granted: bool = True
    held: tuple[Held, str] | None = None
    requeue_at: datetime | None = None


def acquire(
    group: Group, guards: Mapping[str, Guards], what: str, now: datetime, *, tells: bool, use: bool = True
) -> AcquireResult:
    """Ask these guards in turn for a grant of what the group wants now. `use`: it is done as soon as all grant it.

    `tells`: whether telling people is what the rule does, as its kind says.

    One that denies is waited for, and those before it are given back meanwhile: others may need them. Once it grants,
    they are asked again. So a group that waits for slots holds slots only of guards that come later, which leaves no
    circle in which groups could wait for, or give way to, each other without end.
    """
    grants = group.grants or Grants()
    generation = max(grants.generation, group.generation)
    given_back, waits = _given_back(group, guards, tells=tells)
    asked: dict[str, GrantRequest] = {}
    emits: list[Fact] = []
    held: tuple[Held, str] | None = None
    granted = True
    for guard in guards:
        part = grants.asked.get(guard)
        if part is not None and guard in given_back:
            emits.append(_request(group, guard, part, now, wanted=False))
            continue
        if granted and (waits is None or guard == waits) and (part is None or part.spent):
            generation += 1
            part = GrantRequest(generation, now, now)
            emits.append(_request(group, guard, part, now, what=what))
        elif part is None:
            continue
        elif now >= part.said_at + _patience(part):
            part = replace(part, said_at=now)
            emits.append(_request(group, guard, part, now, what=what))
        asked[guard] = part
        if granted and part.granted is not True:
            granted, held = False, _why(group, guard, part, now)
    moments = [part.said_at + _patience(part) for part in asked.values()]
    if granted and use:
        asked = {guard: replace(part, spent=True) for guard, part in asked.items()}
    group = replace(group, grants=replace(grants, generation=generation, asked=asked))
    return AcquireResult(group, tuple(emits), granted, held, min(moments, default=None))


def _given_back(group: Group, guards: Mapping[str, Guards], *, tells: bool) -> tuple[frozenset[str], str | None]:
    """Give the guards whose grant is given back, because another one denies, and the one that alone is waited for.

    Nothing is given back of what is in flight.
    """
    asked = group.grants.asked if group.grants is not None else {}
    denied = [name for name in guards if name in asked and asked[name].granted is False and not asked[name].spent]
    if not denied or _in_flight(group, tells=tells):
        return frozenset(), None
    names = list(guards)
    closed = next((name for name in denied if asked[name].reason in CLOSED), None)
    if closed is not None:
        after = names[names.index(closed) + 1 :]
        return frozenset(name for name in names if name in after or (name != closed and _has(guards[name]))), closed
    # A token is used when it comes or not at all: kept while slots are waited for, many would act at once later.
    after = [name for name in names[names.index(denied[0]) + 1 :] if not holds_slots(guards[name])]
    full = next((name for name in reversed(denied) if asked[name].reason != Held.RATE_LIMITED), None)
    if full is None:
        return frozenset(after), None  # its turn comes by itself, and who waits for it holds up no other
    before = [name for name in names[: names.index(full)] if _has(guards[name])]
    return frozenset({*before, *after} - {full}), full


def _has(guards: Guards) -> bool:
    """True if the guard gives out slots or tokens, which others wait for."""
    return holds_slots(guards) or spends(guards)


def renew(group: Group, now: datetime, *, tells: bool) -> AcquireResult:
    """Keep what is granted while something done by it is in flight, and give it back once nothing is. `tells`: as in
    acquire()."""
    grants = group.grants
    if grants is None or not grants.asked:
        return AcquireResult(group)
    if not _in_flight(group, tells=tells):
        emits = tuple(_request(group, guard, part, now, wanted=False) for guard, part in grants.asked.items())
        return AcquireResult(replace(group, grants=replace(grants, asked={})), emits)
    due = {guard for guard, part in grants.asked.items() if now >= part.said_at + GRANTED}
    asked = {guard: replace(part, said_at=now) if guard in due else part for guard, part in grants.asked.items()}
    if due:
        group = replace(group, grants=replace(grants, asked=asked))
    emits = tuple(_request(group, guard, asked[guard], now) for guard in asked if guard in due)
    moment = min(part.said_at + GRANTED for part in asked.values())
    return AcquireResult(group, emits, requeue_at=moment)


def on_reply(group: Group, fact: AcquireReply, now: datetime) -> Group:
    """Fold a reply in. One to an older request, or older than the last one, means nothing."""
    grants = group.grants
    part = grants.asked.get(fact.guard) if grants is not None else None
    at = min(fact.observed_at, now)
    if grants is None or part is None or fact.generation != part.generation:
        return group
    if part.answered_at is not None and at < part.answered_at:
        return group
    part = replace(part, granted=fact.granted, reason=fact.reason, detail=fact.detail, answered_at=at)
    return replace(group, grants=replace(grants, asked={**grants.asked, fact.guard: part}))


def _in_flight(group: Group, *, tells: bool) -> bool:
    """True if an action is without an outcome. Notifications about it do not count, unless the rule's kind is to notify
    (`tells`)."""
    return any(entry.wanted and (tells or not isinstance(entry.action, Notify)) for entry in group.outbox)


def _patience(part: GrantRequest) -> timedelta:
    if part.granted is None:
        return REQUEST_REPEAT
    return GRANTED if part.granted else DENIED


def _why(group: Group, guard: str, part: GrantRequest, now: datetime) -> tuple[Held, str] | None:
    if part.granted is None:
        if now < part.since + UNANSWERED:
            return None  # it takes a moment, and is no hold yet
        return Held.AWAITING_GUARD, f"guard {guard} has not answered since {part.since.isoformat()}"
    name = guard.removesuffix(REHEARSED).removeprefix("guard.")
    detail = part.detail if name == f"rule.{group.rule}" else f"{part.detail} (guard {name})"
    return Held(part.reason), detail


def _request(
    group: Group, guard: str, part: GrantRequest, now: datetime, *, wanted: bool = True, what: str = ""
) -> AcquireRequest:
    return AcquireRequest(
        guard=guard, rule=group.rule, object=group.object, generation=part.generation, wanted=wanted, what=what,
        observed_at=now,
    )  # fmt: skip

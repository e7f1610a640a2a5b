"""The Quorum source as an actor: it hears its members, and says how its target is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from bus.messages import Fact, Health, Observation
from rules.core.desired import DesiredState
from rules.core.expiry import forget, next_end
from rules.core.group import with_state
from rules.core.interests import Interest, observed
from rules.core.kind import (
    RuleKind,
    all_of,
    its_object,
    itself,
    no,
    no_targets,
    none,
    nothing,
    unchanged,
    whole_state,
    yes,
)
from rules.core.member import Member
from rules.core.values import replace
from rules.kinds.quorum.model import QUORUM, QuorumRule
from rules.kinds.quorum.state import Judgement, QuorumGroup, QuorumState
from rules.limits.rates import amount
from rules.rulefile.sources import Quorum, Source
from rules.rulefile.targets import matches

INSTANT = timedelta(microseconds=1)
"""Resolution of dates."""
PERCENT_POINTS = 5.0
"""Change of the share of healthy members, in percent points, that is reported at once."""


def interests(rule: QuorumRule) -> Iterable[Interest]:
    """Every look at a member."""
    yield Interest(observed(rule.source.members))


def objects(rule: QuorumRule, fact: Fact) -> Iterable[str]:
    """The one group there is, where the fact is about a member."""
    return ("*",) if isinstance(fact, Observation) and _matches(rule.source.members, fact.target) else ()


def covers(_rule: QuorumRule, object_: str) -> bool:
    """True for the source's only group, `*`."""
    return object_ == "*"


def advance(rule: QuorumRule, group: QuorumGroup, _shared_group: QuorumGroup | None, now: datetime) -> QuorumGroup:
    """Forget who is gone, and say how the target is: when that changes, where it was asked for, and again every
    refreshSeconds."""
    group = forget(_without_deleted(group), now)
    status, detail = judged(rule.source, group)
    said = group.state.said
    if status is None:
        return group
    since, proven_until = _stretch(rule.source, group, status, now)
    percent = _healthy_percent(rule.source, group)
    goes_on = said is not None and said.status is status
    if said is not None and goes_on:
        began = said.since or said.said_at
        if status is Health.UNKNOWN or (said.proven_until is not None and since <= said.proven_until):
            since = min(since, began)  # earlier: members' words that came after ours say more of the time before it
        answers = said.wanted_from is not None and proven_until >= said.wanted_from
        moved = said.healthy_percent is not None and abs(percent - said.healthy_percent) >= PERCENT_POINTS
        if not answers and not moved and since >= began and now < _again_at(rule, said):
            return with_state(group, said=replace(said, since=since, proven_until=proven_until))
    last = said.wanted_until or said.wanted_from if said is not None else None
    wanted = last if last is not None and last > proven_until else None
    # Of two words of one instant the second one would be as old as the first, and no news.
    said_at = now if said is None else max(now, said.said_at + INSTANT)
    judgement = Judgement(status, detail, said_at, since, proven_until, wanted, percent, wanted)
    return with_state(group, said=judgement)


def judge_of(source: str) -> tuple[str, str]:
    """Give the rule and the object of the group that judges for the Quorum source of this name."""
    return f"{QUORUM}{source}", "*"


def asked(rule: QuorumRule, group: QuorumGroup, moment: datetime) -> tuple[QuorumGroup, list[tuple[str, str, str]]]:
    """Note that the judgement is wanted by what is seen at this moment or later.

    Each moment that was asked for is answered as soon as it is proven: who asks again and again, by a clock that is
    ahead of those of the members' sources, would get no answer if only the last one were. Gives the sources, targets
    and signals of the looks that are missing.
    """
    said = group.state.said
    if said is None:
        return group, []
    wanted_from = min(moment, said.wanted_from or moment)
    wanted_until = max(moment, said.wanted_until or said.wanted_from or moment)
    missing = [
        (signal.source, target, name)
        for target, member in group.members.items()
        if _matches(rule.source.members, target)
        for name, signal in member.signals.items()
        if signal.source and not signal.proves(moment)
    ]
    return with_state(group, said=replace(said, wanted_from=wanted_from, wanted_until=wanted_until)), missing


def _without_deleted(group: QuorumGroup) -> QuorumGroup:
    """A member of which one signal says that it is deleted, and none says anything else, is a member no more."""
    deleted = {target for target, member in group.members.items() if _is_deleted(member)}
    if not deleted:
        return group
    return replace(group, members={target: one for target, one in group.members.items() if target not in deleted})


def _is_deleted(member: Member) -> bool:
    if member.status is not Health.UNKNOWN:
        return False
    signals = member.signals.values()
    return any(one.gone for one in signals) and all(one.gone or one.status_before is not None for one in signals)


def _stretch(source: Quorum, group: QuorumGroup, status: Health, now: datetime) -> tuple[datetime, datetime]:
    """Since when, and until when, enough members are known to be as the judgement says."""
    members = [member for target, member in group.members.items() if _matches(source.members, target)]
    limit = max(amount(source.unhealthy_at, len(members), source.rounding or "Down"), 1)
    enough = limit if status is Health.UNHEALTHY else len(members) - limit + 1
    deciding = [member for member in members if member.status is status]
    if status is Health.UNKNOWN or not 0 < enough <= len(deciding):
        return now, now
    lasts = now + timedelta(seconds=source.stale_seconds)
    return _together([(member.since, _proven_until(member, lasts)) for member in deciding], enough, now)


def _together(spans: Sequence[tuple[datetime, datetime]], enough: int, now: datetime) -> tuple[datetime, datetime]:
    """Give the last stretch in which so many of these spans lie over each other at every moment.

    Where none of one member's reaches that of another, as one fell silent before the other failed, it begins now.
    """
    ends = [(max(begin, end), 1) for begin, end in spans]
    points = sorted(ends + [(begin, 0) for begin, _ in spans], reverse=True)
    count, until = 0, None
    for at, is_end in points:
        count += 1 if is_end else -1
        if until is None and count >= enough:
            until = at
        elif until is not None and count < enough:
            return min(at, now), until
    return now, min(end for _, end in spans)


def _proven_until(member: Member, lasts: datetime) -> datetime:
    """Until when its signals prove a member's status; `lasts`: what never goes stale."""
    saying = [one for one in member.signals.values() if one.status is member.status]
    return max((one.proven_until or one.stale_at or lasts for one in saying), default=member.since)


def judged(source: Quorum, group: QuorumGroup) -> tuple[Health | None, str]:
    """Give the target's health by its members', and why; None: no member was ever observed.

    Members of unknown health may be bad: only where they cannot decide it does their health not matter.
    """
    total = unknown = 0
    bad = []
    for target, member in group.members.items():
        if not _matches(source.members, target):
            continue
        total += 1
        if member.status is Health.UNHEALTHY:
            bad.append(target)
        elif member.status is Health.UNKNOWN:
            unknown += 1
    if not total:
        return None, ""
    if total < source.min_members:
        return Health.UNKNOWN, f"{total} of at least {source.min_members} members known"
    bad.sort()
    limit = max(amount(source.unhealthy_at, total, source.rounding or "Down"), 1)
    counts = f"{len(bad)} of {total} members Unhealthy, {unknown} Unknown (Unhealthy at {limit})"
    if len(bad) >= limit:
        return Health.UNHEALTHY, f"{counts}: {', '.join(bad[:3])}{', …' if bad[3:] else ''}"
    return (Health.UNKNOWN if len(bad) + unknown >= limit else Health.HEALTHY), counts


def _healthy_percent(source: Quorum, group: QuorumGroup) -> float:
    members = [member for target, member in group.members.items() if _matches(source.members, target)]
    return 100 * sum(member.status is Health.HEALTHY for member in members) / len(members)


def desire(rule: QuorumRule, group: QuorumGroup, _shared_group: QuorumGroup | None, now: datetime) -> DesiredState:
    """Give when to say it again, or to forget a member."""
    moments = [_again_at(rule, group.state.said) if group.state.said is not None else None, next_end(group, now)]
    return DesiredState(requeue_at=min((at for at in moments if at is not None), default=None))


def says(
    rule: QuorumRule, before: QuorumGroup, after: QuorumGroup, _facts: Sequence[Fact], _now: datetime
) -> tuple[Fact, ...]:
    """Give the observation of the target, where it is time for one; of a judgement that is told again, the same."""
    said, source = after.state.said, rule.source
    if said is None or (before.state.said is not None and said.said_at == before.state.said.said_at):
        return ()
    observation = Observation(
        target=source.target, status=said.status, signal=source.says, observed_at=said.said_at,
        source=source.name, stale_seconds=source.stale_seconds, detail=said.detail, since=said.since,
        valid_seconds=((said.proven_until or said.said_at) - said.said_at).total_seconds(),
        healthy_percent=said.healthy_percent,
    )  # fmt: skip
    return (observation,)


@lru_cache(maxsize=100_000)
def _matches(pattern: str, target: str) -> bool:
    # Asked for every member at every look.
    return matches(pattern, target)


def _again_at(rule: QuorumRule, said: Judgement) -> datetime:
    return said.said_at + timedelta(seconds=rule.source.refresh_seconds)


def implied(_rules: object, _guards: object, sources: Sequence[Source]) -> Iterable[QuorumRule]:
    """One for each source of this kind."""
    return (QuorumRule(name=f"{QUORUM}{one.name}", source=one) for one in sources if isinstance(one, Quorum))


KIND: RuleKind[QuorumRule, QuorumState] = RuleKind(
    model=QuorumRule,
    because=frozenset(),
    holds=frozenset(),
    actions=(),
    implied=implied,
    state=QuorumState,
    resolved=frozenset(),
    interests=interests,
    objects=objects,
    first=nothing,
    creates_group=yes,
    leaves=no,
    everywhere=no,
    subscribed=none,
    subscribing=(),
    subscribes=no_targets,
    owner=itself,
    written=its_object,
    scope=itself,
    shares_home=no,
    desire=desire,
    forbids=none,
    requested=unchanged,
    reschedules=no,
    premises=nothing,
    tells=False,
    observe=unchanged,
    heard=unchanged,
    advance=advance,
    remembers=no,
    done=unchanged,
    failed=unchanged,
    said=unchanged,
    reset=unchanged,
    without_dates=whole_state,
    emits=says,
    is_in_force=no,
    asked=asked,
    takes=none,
    skips_taken=no,
    shared_object=None,
    dependents=all_of,
    selects=covers,
    keeps=no,
    way_back_only=None,
    forget=unchanged,
    as_it_counts=unchanged,
)
"""Registration of the rules that Quorum sources imply."""
FILE_KIND = None
"""No rule file has such a rule."""

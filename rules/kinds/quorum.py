"""The Quorum source as an actor: it hears its members, and says how its target is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from bus.messages import Fact, Health, Mode, Observation
from rules.engine.limits import amount
from rules.group import Group
from rules.kinds.gone import forget, next_end
from rules.kinds.wish import Wish
from rules.language.model import Rule
from rules.language.sources import Quorum
from rules.language.targets import matches
from rules.states.budget import QuorumState


class QuorumRule(Rule):
    """A Quorum source in the form of a rule. Nobody writes it: it follows from the sources in rule files."""

    name: str
    """`@quorum.` and the source's name."""
    mode: Mode = Mode.ENFORCE
    source: Quorum


def objects(rule: QuorumRule, fact: Fact) -> Iterable[str]:
    """The one group there is, where the fact is about a member."""
    return ("*",) if isinstance(fact, Observation) and matches(rule.source.members, fact.target) else ()


def covers(_rule: QuorumRule, object_: str) -> bool:
    """Whether the source has this group."""
    return object_ == "*"


def advance(rule: QuorumRule, group: Group, _around: Group | None, now: datetime) -> Group:
    """Forget who is gone, and say how the target is: when that changes, and again every refreshSeconds."""
    group = forget(group, now)
    status, detail = judged(rule.source, group)
    said = group.quorum
    if status is None or (said is not None and said.status is status and now < _again_at(rule, said)):
        return group
    return replace(group, quorum=QuorumState(status, detail, now))


def judged(source: Quorum, group: Group) -> tuple[Health | None, str]:
    """Give the target's health by its members', and why; None: no member was ever heard of.

    Members that nobody knows may be bad: only where they cannot decide it does their health not matter.
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


def desire(rule: QuorumRule, group: Group, _around: Group | None, now: datetime) -> Wish:
    """Give when to say it again, or somebody is to be forgotten."""
    moments = [_again_at(rule, group.quorum) if group.quorum is not None else None, next_end(group, now)]
    return Wish(look_again=min((at for at in moments if at is not None), default=None))


def says(rule: QuorumRule, before: Group, after: Group, _facts: Sequence[Fact], now: datetime) -> tuple[Fact, ...]:
    """Give the observation of the target, where it is time for one."""
    said, source = after.quorum, rule.source
    if said is None or said == before.quorum:
        return ()
    observation = Observation(
        target=source.target, status=said.status, signal=source.says, observed_at=now,
        stale_seconds=source.stale_seconds, detail=said.detail,
    )  # fmt: skip
    return (observation,)


@lru_cache(maxsize=100_000)
def _matches(pattern: str, target: str) -> bool:
    # Asked for every member at every look.
    return matches(pattern, target)


def _again_at(rule: QuorumRule, said: QuorumState) -> datetime:
    return said.said_at + timedelta(seconds=rule.source.refresh_seconds)

"""The present: an act that takes something away needs to be right by what is seen now (decision 21).

A window may have run out rightly and its act still be wrong: the group may have waited for a landing place, a guard or
the bus since. So each act names what must be so, and from when on that has to have been seen. What the signals
contradict is held (`HealthyNow`); where no signal has been looked at since, its source is asked, and the act waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus.messages import Health
from rules.core.desired import DesiredState, Evidence, PlannedAction
from rules.core.group import Group
from rules.core.member import Member
from rules.core.reader import ALWAYS, Reader
from rules.core.reasons import Held
from rules.core.values import replace
from rules.engine.deadlines import is_unproven, of_members
from rules.engine.outbox import on_its_way
from rules.engine.signals import proofs, proven, silence_proven
from rules.rulefile.model import Rule

ASK_AGAIN, ASK_AGAIN_MAX = timedelta(seconds=1), timedelta(seconds=30)
"""Requests to look again are stored nowhere: so often are they sent while the answer is missing; after a tenth of the
time that it has been missing for, once that is longer."""
TOGETHER = timedelta(seconds=5)
"""Longest distance in time between the observations an act rests on: beyond it, part of the evidence may be outdated.
At least two slow failing looks long (a cluster probe tries for two seconds). Executors ask for fresher ones before they
write."""
OUTDATED_AFTER = timedelta(seconds=5)
"""Age of evidence from which an act that a guard has granted is checked again. Executors check after one second
themselves; this applies where there is no executor, and saves a guard's grant."""
SILENT_AFTER = timedelta(seconds=2)
"""A source that has not answered for so long is told of."""
MEMBERS_MAX = 16
"""In a group of no more members all are asked when a window ends: what replaces the one that is left is wanted next."""


@dataclass(frozen=True, slots=True, order=True)
class Lack:
    """A look that is missing: of this target, by this source, at `since` or later."""

    source: str
    """Empty: there is no source that could be asked."""
    target: str
    since: datetime
    signal: str
    doubted: bool = False
    """The source sees nothing: it does not believe the server that says that the object is gone."""


def present(
    rule: Rule, group: Group, shared_group: Group | None, desired: DesiredState, now: datetime, reader: Reader = ALWAYS
) -> tuple[DesiredState, tuple[Lack, ...]]:
    """Give the acts that the present agrees with, why the others wait, and the looks that they wait for."""
    if not desired.acts:
        return desired, ()
    kept: list[PlannedAction] = []
    lacks: list[Lack] = []
    held = desired.held
    for act in desired.acts:
        asked = _LookRequest(now, reader, _due(act))
        since = _from_when(rule, act.needs, group, shared_group, now)
        contradiction = next(filter(None, (_contradicted(need, group, shared_group) for need in act.needs)), None)
        missing = [lack for need in act.needs for lack in _missing(rule, need, group, shared_group, since, asked)]
        flying = on_its_way(group, act)
        if contradiction is not None:
            # One that was asked for is called off without a word: whether it was carried out is not known yet.
            held = held or (None if flying else (Held.HEALTHY_NOW, contradiction))
        elif missing and not (flying and all(need.since <= now for need in act.needs)):
            lacks += missing
            held = held or silent(missing, now)
        else:
            kept.append(act if not act.needs else replace(act, proven_at=_proven_at(rule, act, group, shared_group)))
    if len(kept) == len(desired.acts):
        return replace(desired, acts=tuple(kept)), ()
    return replace(desired, acts=tuple(kept), withheld=True, held=held), tuple(lacks)


@dataclass(frozen=True, slots=True)
class _LookRequest:
    """Context of a request for looks: asked since the act was `due`; silence counts no earlier than `not_before`."""

    now: datetime
    reader: Reader
    due: datetime | None
    not_before: datetime | None = None


def outdated(
    rule: Rule, group: Group, shared_group: Group | None, desired: DesiredState, now: datetime, reader: Reader
) -> tuple[Lack, ...]:
    """The looks that are needed again where a guard, or a person, lets an act go long after it was found right."""
    return tuple(
        lack
        for act in desired.acts
        if act.proven_at is not None and act.proven_at + OUTDATED_AFTER < now and not on_its_way(group, act)
        for need in act.needs
        for lack in _missing(
            rule, need, group, shared_group, now - OUTDATED_AFTER, _LookRequest(now, reader, _due(act))
        )
    )


def unseen(
    rule: Rule, group: Group, shared_group: Group | None, desired: DesiredState, now: datetime, reader: Reader
) -> Iterator[Lack]:
    """The looks that are missing before anything can be decided."""
    for need in desired.unseen:
        yield from _missing(rule, need, group, shared_group, need.since, _LookRequest(now, reader, need.since))


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Answer to an executor's question whether an action is still wanted."""

    wanted: bool | None
    """None: observations that would decide it are missing (`lacks`)."""
    detail: str = ""
    lacks: tuple[Lack, ...] = ()


def confirmed(
    rule: Rule,
    group: Group,
    shared_group: Group | None,
    act: PlannedAction,
    since: datetime,
    now: datetime,
    reader: Reader = ALWAYS,
) -> Confirmation:
    """Say whether the present agrees with an act that is wanted, by what was seen at `since` or later."""
    for need in act.needs:
        if (contradiction := _contradicted(need, group, shared_group)) is not None:
            return Confirmation(wanted=False, detail=f"{Held.HEALTHY_NOW}: {contradiction}")
    moment = max(since, _due(act) or since)
    if moment > now:
        return Confirmation(wanted=False, detail=f"it is due at {moment.isoformat()}")
    asked = _LookRequest(now, reader, _due(act), since + SILENT_AFTER)
    lacks = tuple(lack for need in act.needs for lack in _missing(rule, need, group, shared_group, moment, asked))
    return Confirmation(wanted=None if lacks else True, lacks=lacks)


def ended(rule: Rule, group: Group, now: datetime, reader: Reader = ALWAYS) -> Iterator[Lack]:
    """The looks that windows wait for that are over by now, and those at what has not been heard for too long."""
    members = of_members(group, group.members, rule, reader)
    ends = {
        target: ahead.window_end
        for target, member, ahead in members
        if ahead.window_end is not None and is_unproven(member, rule, ahead.window_end, now)
    }
    for target, member, ahead in members:
        if ahead.unheard:
            yield from _unheard(rule, target, member)
        if (own := ends.get(target)) is not None:
            yield from _looks(rule.signals, target, member, own, own)
        elif ends and len(group.members) <= MEMBERS_MAX:
            last = max(ends.values())
            yield from (lack for lack in _looks(rule.signals, target, member, last, last) if lack.source)


def _unheard(rule: Rule, target: str, member: Member) -> Iterator[Lack]:
    """The sources that have been silent for too long: maybe they only did not get through."""
    for name, signal in member.signals.items():
        if (rule.signals is None or name in rule.signals) and signal.source and signal.status_before is not None:
            yield Lack(signal.source, target, signal.stale_at or signal.observed_at, name)


def _due(act: PlannedAction) -> datetime | None:
    """Since when all that it needs has to be so."""
    return max((need.since for need in act.needs), default=None)


def _from_when(
    rule: Rule, needs: Sequence[Evidence], group: Group, shared_group: Group | None, now: datetime
) -> datetime:
    """Give when the looks that count have ended: since the act is due, within `TOGETHER` of the newest one."""
    found = [
        min(moment, now)
        for need in needs
        if (member := _member(need, group, shared_group)) is not None
        for moment in _proofs(need, member, rule)
    ]
    return max([*(need.since for need in needs), *(moment - TOGETHER for moment in found)], default=now)


def requeue_at(lacks: Sequence[Lack], now: datetime) -> datetime | None:
    """Give when to ask again for what is missing, or to say that it is."""
    moments = [max(lack.since, now + _patience(lack, now)) for lack in lacks if lack.source]
    moments += [at for lack in lacks for at in (lack.since, lack.since + SILENT_AFTER) if at > now]
    return min(moments, default=None)


def _contradicted(need: Evidence, group: Group, shared_group: Group | None) -> str | None:
    member = _member(need, group, shared_group)
    if member is None or need.names is not None or (member.status is Health.HEALTHY) is need.healthy:
        return None
    return f"{need.target} is {member.status} since {member.since.isoformat()}: {member.detail}"


def _missing(
    rule: Rule, need: Evidence, group: Group, shared_group: Group | None, since: datetime, asked: _LookRequest
) -> Iterator[Lack]:  # fmt: skip
    due = asked.due or since
    if since > asked.now:  # nothing proves what is still to come, also what holds for some seconds
        yield Lack("", need.target, since, "")
        return
    member = _member(need, group, shared_group)
    if member is None or _is_met(need, member, rule, due, since):
        return
    moment = max(need.since, asked.not_before or need.since)
    silent_at = None if need.healthy else silence_proven(member, rule, moment, asked.reader)
    if silent_at is not None and silent_at <= asked.now:
        return
    names = rule.signals if need.names is None else need.names
    looks = [*_looks(names, need.target, member, due, since)]
    yield from looks or [Lack("", need.target, since, "")]


def _is_met(need: Evidence, member: Member, rule: Rule, due: datetime, since: datetime) -> bool:
    if _is_unknown_word(need):
        return False
    return proven(
        member, rule, due, healthy=need.healthy, signals=need.signals, names=need.names, unknown=need.unknown,
        seen=since,
    )  # fmt: skip


def _proofs(need: Evidence, member: Member, rule: Rule) -> list[datetime]:
    if _is_unknown_word(need):
        return []
    names = None if need.member is None else need.names
    return proofs(member, rule, names, healthy=need.healthy, unknown=need.unknown)


def _is_unknown_word(need: Evidence) -> bool:
    """True if another rule says that nothing shows it now: what this rule takes Unknown for is no matter of that."""
    return need.member is not None and need.member.status is Health.UNKNOWN


def _looks(
    names: Sequence[str] | None, target: str, member: Member, due: datetime, since: datetime
) -> Iterator[Lack]:  # fmt: skip
    for name, signal in member.signals.items():
        if (names is None or name in names) and not (signal.proves(due) and signal.is_seen(since)):
            yield Lack(signal.source, target, since, name, signal.doubted)


def _patience(lack: Lack, now: datetime) -> timedelta:
    return max(ASK_AGAIN, min((now - lack.since) / 10, ASK_AGAIN_MAX))


def silent(missing: Sequence[Lack], now: datetime) -> tuple[Held, str] | None:
    """The hold of what waits for a source that does not answer; None: it has only just been asked."""
    late = sorted({lack for lack in missing if lack.since + SILENT_AFTER <= now})
    if not late:
        return None
    whose = sorted({lack.source or lack.signal or "no source" for lack in late})
    since = min(lack.since for lack in late)
    if any(lack.doubted for lack in late):
        return Held.LIST_DOUBTED, f"{', '.join(whose)}: gone, by a list that is not believed yet: {late[0].target}"
    return Held.SOURCE_SILENT, f"{', '.join(whose)}: not seen at {since.isoformat()} or later: {late[0].target}"


def _proven_at(rule: Rule, act: PlannedAction, group: Group, shared_group: Group | None) -> datetime | None:
    """Time of the oldest observation that the act rests on; None: its evidence is valid until it is stale."""
    found = []
    for need in act.needs:
        member = _member(need, group, shared_group)
        if member is not None and (moments := _proofs(need, member, rule)):
            found.append(max(moments))
    return min(found, default=None)


def _member(need: Evidence, group: Group, shared_group: Group | None) -> Member | None:
    if need.member is not None:
        return need.member
    member = group.members.get(need.target)
    return shared_group.members.get(need.target) if member is None and shared_group is not None else member

"""Evidence of an act, as the audit keeps it: each target's window, and the observations from its end or later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bus.messages import Action, Evict, Health, LookSeen, Place, Purge, TargetEvidence
from rules.core.desired import Evidence
from rules.core.member import Member
from rules.core.values import replace
from rules.engine.decide import Decision
from rules.rulefile.targets import encode_segment

TARGETS_MAX = 50
"""Largest number of targets that are kept for one act."""
SMALL = 16
"""Of a group with more members only those that count as bad are kept."""


def evidence(decision: Decision) -> tuple[TargetEvidence, ...]:
    """Give what the actions of a decision rest on, first what they need; empty where it has none."""
    if not decision.actions or decision.seen is None:
        return ()
    seen, members = decision.seen, decision.group.members
    shared_group = seen.shared_group.members if seen.shared_group is not None else {}
    known = {**shared_group, **members}
    before = {**shared_group, **seen.before.members}
    found = [
        _needed(need, member, before.get(need.target) if need.member is None else None)
        for need in dict.fromkeys(decision.needs)
        if (member := need.member or known.get(need.target)) is not None
    ]
    wanted = {
        target: member
        for target, member in members.items()
        if member.settled is False or (member.settled and len(members) <= SMALL)
    }
    if named := {f"cluster/{encode_segment(name)}" for action in decision.actions for name in _clusters(action)}:
        wanted |= {target: shared_group[target] for target in sorted(named & shared_group.keys() - members.keys())}
    needed = {one.target for one in found}
    found += [
        _of(target, member, *_window(member, before.get(target)))
        for target, member in wanted.items()
        if target not in needed
    ]
    return tuple(found[:TARGETS_MAX])


def _clusters(action: Action) -> Iterator[str]:
    match action:
        case Place():
            yield from action.clusters
            yield from action.leaving
        case Evict() | Purge():
            yield action.from_
        case _:
            return


def _needed(need: Evidence, member: Member, before: Member | None) -> TargetEvidence:
    """Evidence as an action needs it. Where some signals decide alone, only these are looked at."""
    if need.names is not None:
        signals = {name: signal for name, signal in member.signals.items() if name in need.names}
        agree = all(signal.status is Health.HEALTHY for signal in signals.values())
        member = replace(member, status=Health.HEALTHY if agree else member.status, signals=signals)
    began = min(_window(member, before)[0], need.since)
    return _of(need.target, member, began, need.since if need.since > began else None)


def _of(target: str, member: Member, began: datetime, ended: datetime | None) -> TargetEvidence:
    looks = tuple(_looks(member))
    return TargetEvidence(target=target, status=member.status, window_began=began, window_ended=ended, looks=looks)


def _window(member: Member, before: Member | None) -> tuple[datetime, datetime | None]:
    """Begin and end of the member's toleration or recovery, or of its status."""
    window = before.window if before is not None else None
    began = window.since if window is not None and window.healthy is member.settled else member.since
    end = None if member.unproven else member.settled_at
    return (min(began, end) if end is not None else began), end


def _looks(member: Member) -> Iterator[LookSeen]:
    for name, signal in member.signals.items():
        if signal.status is member.status:
            yield LookSeen(
                signal=name, source=signal.source, observed_at=signal.observed_at, since=signal.begun,
                valid_until=signal.proven_until, detail=signal.detail,
            )  # fmt: skip


def line(found: Mapping[str, Any]) -> str:
    """Give one target's evidence in a sentence."""
    kind = "window" if found["status"] == Health.HEALTHY else "toleration"
    began, ended = found["windowBegan"], found.get("windowEnded")
    window = f"{kind} {_time(began)} to {_time(ended)}" if ended else "no window"
    looks = "; ".join(_seen(look) for look in found["looks"]) or "no look is kept"
    return f"{found['target']}: {found['status']}, {window}; {looks}"


def _seen(look: Mapping[str, Any]) -> str:
    whose = look["signal"] if look["source"] in ("", look["signal"]) else f"{look['signal']} by {look['source']}"
    detail = f" ({look['detail']})" if look.get("detail") else ""
    return f"{whose} saw it at {_time(look['observedAt'])}, so since {_time(look['since'])}{detail}"


def _time(moment: str) -> str:
    return datetime.fromisoformat(moment).isoformat(timespec="milliseconds").replace("+00:00", "Z")

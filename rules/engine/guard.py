"""Fourth verb: may we? An answer with a reason.

In this order: a pause, what must never be, steps back to safety (which nothing else stops), windows, quiet
time, a person's yes, and last the guards that are shared, because what they give away is gone. What is on its way
already is not asked again, nor is what goes on with something that was let go; windows and approvals are for what
starts by itself, not for what a person asked for. A pause stops no step back to safety that a person asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus.messages import Fact, Mode, Notify
from rules.core.desired import DesiredState, PlannedAction
from rules.core.group import Group, updated
from rules.core.reasons import Held
from rules.core.timers import first_of
from rules.core.values import replace
from rules.engine.known_kinds import kind_of
from rules.engine.outbox import same
from rules.limits.acquire import AcquireResult, acquire, renew
from rules.limits.approvals import approval, dropped, in_short
from rules.limits.limiters import RuleGuards, limits_of
from rules.limits.windows import open_until
from rules.rulefile.guards import Approval, FileGuard
from rules.rulefile.model import Rule


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """Result of the guards: the part of a desired state that may be carried out."""

    group: Group
    """With what was asked of guards and people."""
    desired: DesiredState
    """Only with the acts that may be done; why the others may not is its hold."""
    emits: tuple[Fact, ...] = ()
    """Acquire requests."""
    outdated: bool = False
    """True if the acts are granted but their evidence is too old: it is checked again first, and the grant is kept."""


def guard(
    rule: Rule,
    group: Group,
    desired: DesiredState,
    now: datetime,
    file_guards: Sequence[FileGuard] = (),
    *,
    fresh: bool = True,
    waits: bool = False,
) -> GuardDecision:
    """Give what may be done of this desired state, and why the rest may not. `file_guards`: those of all rule files.

    `fresh`: whether what the desired state rests on was seen a moment ago; otherwise no grant is used up.
    `waits`: acts are missing in it only because their evidence is: the approval request and its answer stay.
    """
    tells = kind_of(rule).tells
    wants = bool(desired.acts) or desired.notice is not None
    refusal = _never(rule, group, desired) if wants else None
    back = _asked_back(desired) if refusal is not None and refusal[0] is Held.PAUSED else ()
    if refusal is not None and (back != desired.acts or desired.notice is not None):
        answer = renew(dropped(group), now, tells=tells)
        return _leave(answer, DesiredState(held=refusal, requeue_at=desired.requeue_at, acts=back))
    acts = _asking(group, desired)
    if not acts:
        still = waits or any(not act.safe and not act.follows for act in desired.acts)
        return _leave(renew(group if still else dropped(group), now, tells=tells), desired)
    limits = limits_of(rule, file_guards)
    group, held, moment = _own(rule, group, limits, acts, now)
    if held is None:
        shared = limits.shared if not all(act.homeward for act in acts) else {}
        answer = AcquireResult(group)
        if shared:
            answer = acquire(group, shared, in_short(acts), now, tells=tells, use=fresh)
        if answer.granted and fresh:
            return _leave(answer, desired)
        held = answer.held
    else:
        answer = renew(group, now, tells=tells)
    rest = tuple(act for act in desired.acts if act not in acts)
    about = acts[0].object if held is not None else desired.about
    requeue_at = first_of(desired.requeue_at, moment)
    desired = replace(
        desired, withheld=True, notice=None, acts=rest, held=held or desired.held, about=about,
        requeue_at=requeue_at,
    )  # fmt: skip
    return replace(_leave(answer, desired), outdated=answer.granted and held is None and not fresh)


def _leave(answer: AcquireResult, desired: DesiredState) -> GuardDecision:
    return GuardDecision(
        answer.group, updated(desired, requeue_at=first_of(desired.requeue_at, answer.requeue_at)), answer.emits
    )


def _never(rule: Rule, group: Group, desired: DesiredState) -> tuple[Held, str] | None:
    if group.paused is not None:
        return Held.PAUSED, group.paused.words
    return kind_of(rule).forbids(rule, group, desired)


def _asked_back(desired: DesiredState) -> tuple[PlannedAction, ...]:
    """Acts that a pause lets through: steps back to safety that a person asked for, so that a person can always undo
    what the reactor did."""
    return tuple(act for act in desired.acts if act.safe and act.by_hand)


def _asking(group: Group, desired: DesiredState) -> tuple[PlannedAction, ...]:
    """Acts that need a grant: those that begin something, are no step back to safety, and are not in flight."""
    acts = [act for act in desired.acts if not act.safe and not act.follows and not _on_its_way(group, act)]
    if desired.notice is not None:
        acts.append(PlannedAction(Notify, {"message": desired.notice.status}, desired.because, desired.detail))
    return tuple(acts)


def _on_its_way(group: Group, act: PlannedAction) -> bool:
    return any(
        entry.wanted and entry.action.concurrency_key == act.concurrency_key and same(entry.action, act)
        for entry in group.outbox
    )


def _own(
    rule: Rule, group: Group, limits: RuleGuards, acts: Sequence[PlannedAction], now: datetime
) -> tuple[Group, tuple[Held, str] | None, datetime | None]:
    """Check the limits that need no other group: give the group, why it has to wait, and until when."""
    if not limits.own and rule.mode is not Mode.APPROVE and (group.acted_at is None or group.acted_at <= now):
        return group, None, None
    by_itself = not all(act.by_hand for act in acts)
    limited = not all(act.homeward for act in acts)
    windows = [window for guards in limits.own for window in guards.blocked_windows if by_itself and limited]
    ends = [end for window in windows if (end := open_until(window, now)) is not None]
    if ends:
        return group, (Held.IN_BLOCKED_WINDOW, f"until {max(ends).isoformat()}"), max(ends)
    quiet = timedelta(seconds=max((guards.cooldown_seconds for guards in limits.own), default=0))
    if limited and group.acted_at is not None and now < (over := group.acted_at + quiet):
        detail = f"last action at {group.acted_at.isoformat()}, quiet until {over.isoformat()}"
        return group, (Held.COOLDOWN, detail), over
    approvals = [guards.approval for guards in limits.own if guards.approval is not None]
    if by_itself and (rule.mode is Mode.APPROVE or (approvals and rule.mode is Mode.ENFORCE)):
        seconds = min((one.expire_seconds for one in approvals), default=Approval().expire_seconds)
        return approval(group, acts, seconds, now)
    return group, None, None

"""Fifth verb: what differs from what was last asked is owed, and stays owed until its outcome is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from bus.messages import Action, Mode, Notify
from rules.catalog import kind_of
from rules.core.desired import DesiredState, PlannedAction, cut
from rules.core.group import Group, OutboxEntry
from rules.rulefile.model import Rule

RESEND = timedelta(seconds=15)
"""An action without an outcome is published again after this long: as long as an executor may take for one."""


def mode_of(rule: Rule) -> Mode:
    """The mode of the rule's actions: what a person has approved is carried out."""
    return Mode.ENFORCE if rule.mode is Mode.APPROVE else rule.mode


def owe(rule: Rule, group: Group, desired: DesiredState, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Give the group with what it owes now, and the actions to publish: new ones, and those that are due again."""
    if kind_of(rule).tells:
        group, fresh = _news(rule, group, desired, now) if desired.told is not None else (group, ())
    else:
        group, fresh = _acts(rule, group, desired, now)
    return _again(group, fresh, now)


def _acts(rule: Rule, group: Group, desired: DesiredState, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    before, fresh = group, []
    wanted = {act.lane for act in desired.acts}
    for owed in before.owed:
        if not isinstance(owed.action, Notify) and owed.action.lane not in wanted:
            # It may still be carried out: it is kept in mind, so that the next desired state goes beyond it.
            group = _with(group, owed, wanted=False, at=now)
    for act in desired.acts:
        flying = _flying(group, act.lane)
        if flying is not None and same(flying.action, act):
            group = _with(group, flying, wanted=True, at=now)
            continue
        group = replace(group, generation=group.generation + 1, owed=_without(group, flying))
        action = _action(rule, group, act, now)
        fresh.append(action)
        if action.mode is Mode.DRY_RUN:
            # Rehearsed, and so not said again.
            group = kind_of(rule).done(rule, replace(group, acted_at=now), action, now)
        else:
            group = replace(group, owed=(*group.owed, OutboxEntry(action, now + RESEND)))
    return kind_of(rule).requested(rule, group, desired, fresh, now), tuple(fresh)


def _action(rule: Rule, group: Group, act: PlannedAction, now: datetime) -> Action:
    return act.verb(
        **act.fields, id=f"{group.rule}/{act.object or group.object}/{group.generation}", rule=group.rule,
        object=act.object or group.object, lane=act.lane, generation=group.generation, mode=mode_of(rule),
        because=act.because, detail=cut(act.detail), decided_at=now,
        proven_at=act.proven_at,
    )  # type: ignore[return-value]  # fmt: skip


def same(action: Action, act: PlannedAction) -> bool:
    """Whether the action does what the act wants."""
    return type(action) is act.verb and all(getattr(action, name) == value for name, value in act.fields.items())


def on_its_way(group: Group, act: PlannedAction) -> bool:
    """Whether just this was asked for, and its outcome is not known."""
    return any(owed.action.lane == act.lane and same(owed.action, act) for owed in group.owed)


def _flying(group: Group, lane: str) -> OutboxEntry | None:
    mine = (owed for owed in group.owed if not isinstance(owed.action, Notify) and owed.action.lane == lane)
    return next(mine, None)


def _with(group: Group, flying: OutboxEntry, *, wanted: bool, at: datetime) -> Group:
    """What is owed, with this one wanted or not; one that is wanted again is published again at once."""
    if flying.wanted is wanted:
        return group
    return replace(group, owed=(*_without(group, flying), replace(flying, wanted=wanted, retry_at=at)))


def _without(group: Group, owed: OutboxEntry | None) -> tuple[OutboxEntry, ...]:
    return tuple(other for other in group.owed if other is not owed)


def _news(rule: Rule, group: Group, desired: DesiredState, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    group = replace(group, generation=group.generation + 1, told=desired.told)
    action = Notify(
        id=f"{group.rule}/{group.object}/{group.generation}", rule=group.rule, object=group.object,
        generation=group.generation, mode=mode_of(rule), because=desired.because, detail=cut(desired.detail),
        decided_at=now, to=rule.notify, message=cut(desired.message), resolves=desired.told == "Healthy",
    )  # fmt: skip
    return owe_news(group, action, now), (action,)


def owe_news(group: Group, action: Notify, now: datetime) -> Group:
    """Give the group that owes people this word."""
    if action.mode is not Mode.ENFORCE:
        return group
    return replace(group, owed=(*group.owed, OutboxEntry(action, now + RESEND)))


def _again(group: Group, fresh: tuple[Action, ...], now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Publish again what has had no outcome for too long: the same action with the same id, so a repeat is no-op."""
    due = tuple(owed.action for owed in group.owed if _is_due(owed, now))
    if not due:
        return group, fresh
    owed = tuple(replace(owed, retry_at=now + RESEND) if _is_due(owed, now) else owed for owed in group.owed)
    return replace(group, owed=owed), (*fresh, *due)


def _is_due(owed: OutboxEntry, now: datetime) -> bool:
    return owed.wanted and now >= owed.retry_at

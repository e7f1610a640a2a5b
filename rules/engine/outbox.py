"""Fifth verb: what differs from what was last asked is owed, and stays owed until its outcome is known."""

from __future__ import annotations

from datetime import datetime, timedelta

from bus.messages import Action, Mode, Notify
from rules.core.desired import DesiredState, Notice, PlannedAction, cut
from rules.core.group import Group, OutboxEntry
from rules.core.values import replace
from rules.engine.known_kinds import kind_of
from rules.rulefile.model import Rule

RESEND = timedelta(seconds=15)
"""An action without an outcome is published again after this long: as long as an executor may take for one."""


def mode_of(rule: Rule) -> Mode:
    """The mode of the rule's actions: what a person has approved is carried out."""
    return Mode.ENFORCE if rule.mode is Mode.APPROVE else rule.mode


def enqueue(rule: Rule, group: Group, desired: DesiredState, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Give the group with what it owes now, and the actions to publish: new ones, and those that are due again."""
    if kind_of(rule).tells:
        group, fresh = (
            _notification(rule, group, desired, desired.notice, now) if desired.notice is not None else (group, ())
        )
        group = kind_of(rule).requested(rule, group, desired, fresh, now)
    else:
        group, fresh = _acts(rule, group, desired, now)
    return _resent(group, fresh, now)


def _acts(rule: Rule, group: Group, desired: DesiredState, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    before, fresh = group, []
    wanted = {act.concurrency_key for act in desired.acts}
    for entry in before.outbox:
        if not isinstance(entry.action, Notify) and entry.action.concurrency_key not in wanted:
            # It may still be carried out: it is kept in mind until its outcome is known.
            group = _dropped(group, entry) if entry.ended else _with(group, entry, wanted=False, at=now)
    for act in desired.acts:
        flying = _in_flight(group, act.concurrency_key)
        if flying is not None and same(flying.action, act):
            group = _with(group, flying, wanted=True, at=now)
            continue
        group = replace(group, generation=group.generation + 1, outbox=_without(group, flying))
        action = _action(rule, group, act, now)
        fresh.append(action)
        if action.mode is Mode.DRY_RUN:
            # Rehearsed, and so not said again.
            group = kind_of(rule).done(rule, replace(group, acted_at=now), action, now)
        else:
            group = replace(group, outbox=(*group.outbox, OutboxEntry(action, now + RESEND)))
    return kind_of(rule).requested(rule, group, desired, fresh, now), tuple(fresh)


def _action(rule: Rule, group: Group, act: PlannedAction, now: datetime) -> Action:
    return act.action_type(
        **act.fields, id=f"{group.rule}/{act.object or group.object}/{group.generation}", rule=group.rule,
        object=act.object or group.object, concurrency_key=act.concurrency_key, generation=group.generation,
        mode=mode_of(rule), because=act.because, detail=cut(act.detail), decided_at=now, proven_at=act.proven_at,
    )  # type: ignore[return-value]  # `action_type` is one of Action  # fmt: skip


def same(action: Action, act: PlannedAction) -> bool:
    """True if the action has the type and all fields of the planned act."""
    return type(action) is act.action_type and all(getattr(action, name) == value for name, value in act.fields.items())


def on_its_way(group: Group, act: PlannedAction) -> bool:
    """True if an equal action is in the outbox: asked for, outcome unknown."""
    return any(
        entry.action.concurrency_key == act.concurrency_key and same(entry.action, act) for entry in group.outbox
    )


def _in_flight(group: Group, key: str) -> OutboxEntry | None:
    mine = (
        entry for entry in group.outbox if not isinstance(entry.action, Notify) and entry.action.concurrency_key == key
    )
    return next(mine, None)


def _with(group: Group, flying: OutboxEntry, *, wanted: bool, at: datetime) -> Group:
    """The group with this outbox entry's `wanted` changed; an entry that is wanted again is published again at `at`."""
    if flying.wanted is wanted:
        return group
    return replace(group, outbox=(*_without(group, flying), replace(flying, wanted=wanted, retry_at=at)))


def _dropped(group: Group, entry: OutboxEntry) -> Group:
    return replace(group, outbox=_without(group, entry))


def _without(group: Group, entry: OutboxEntry | None) -> tuple[OutboxEntry, ...]:
    return tuple(other for other in group.outbox if other is not entry)


def _notification(
    rule: Rule, group: Group, desired: DesiredState, notice: Notice, now: datetime
) -> tuple[Group, tuple[Action, ...]]:
    group = replace(group, generation=group.generation + 1)
    action = Notify(
        id=f"{group.rule}/{group.object}/{group.generation}", rule=group.rule, object=group.object,
        generation=group.generation, mode=mode_of(rule), because=desired.because, detail=cut(desired.detail),
        decided_at=now, to=rule.notify, message=cut(notice.message), resolves=notice.resolves,
    )  # fmt: skip
    return enqueue_notification(group, action, now), (action,)


def enqueue_notification(group: Group, action: Notify, now: datetime) -> Group:
    """Give the group that owes people this word."""
    if action.mode is not Mode.ENFORCE:
        return group
    return replace(group, outbox=(*group.outbox, OutboxEntry(action, now + RESEND)))


def _resent(group: Group, fresh: tuple[Action, ...], now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Publish again what has had no outcome for too long: the same action with the same id, so a repeat is no-op."""
    due = tuple(entry.action for entry in group.outbox if _is_due(entry, now))
    if not due:
        return group, fresh
    outbox = (
        replace(entry, retry_at=now + RESEND, ended=False) if _is_due(entry, now) else entry for entry in group.outbox
    )
    return replace(group, outbox=tuple(outbox)), (*fresh, *due)


def _is_due(entry: OutboxEntry, now: datetime) -> bool:
    return entry.wanted and now >= entry.retry_at

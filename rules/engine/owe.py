"""Fifth verb: what differs from what was last asked is owed, and stays owed until its outcome is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from bus.messages import Action, Mode, Notify, RouteRef, SetWeights
from rules.group import Group, Holding, Owed, updated
from rules.kinds import traffic
from rules.kinds.wish import Wish
from rules.language.model import Notification, Rule, TrafficFailover

RESEND = timedelta(seconds=15)
"""An action without an outcome is published again after this long: as long as an executor may take for one."""


def route_ref(rule: TrafficFailover, object_: str) -> RouteRef:
    """Give the route that a group is about, from its object (`east/shop/TrafficSplit/checkout`)."""
    cluster, namespace, kind, name = object_.split("#")[0].split("/")
    return RouteRef(cluster=cluster, kind=kind, namespace=namespace, name=name, rule=rule.route.rule)  # type: ignore[arg-type]


def owe(rule: Rule, group: Group, wish: Wish, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Give the group with what it owes now, and the actions to publish: new ones, and those that are due again."""
    fresh: tuple[Action, ...] = ()
    if isinstance(rule, TrafficFailover):
        group, fresh = _weights(rule, group, wish, now)
    elif isinstance(rule, Notification) and wish.told is not None:
        group, fresh = _news(rule, group, wish, now)
    return _again(group, fresh, now)


def _weights(rule: TrafficFailover, group: Group, wish: Wish, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    flying = next((owed for owed in group.owed if isinstance(owed.action, SetWeights)), None)
    if wish.weights is None:
        # What is on its way may still be carried out: it is kept in mind, so that the next wish goes beyond it.
        return updated(group, owed=_with(group, flying, wanted=False, at=now)), ()
    settled = not traffic.uneven(group, wish.weights)
    if flying is not None and _weights_of(flying) == dict(wish.weights):
        return updated(group, step=wish.step, owed=_with(group, flying, wanted=True, at=now)), ()
    if flying is None and settled:
        step_at = group.step_at if group.step == wish.step else None
        step_at = (step_at or now) if wish.step is not None else None
        return updated(group, step=wish.step, step_at=step_at), ()
    generation = group.generation + 1
    action = SetWeights(
        id=f"{group.rule}/{group.object}/{generation}", rule=group.rule, object=group.object, generation=generation,
        mode=rule.mode, because=wish.because, detail=wish.detail, decided_at=now,
        route=route_ref(rule, group.object), weights=dict(wish.weights),
        remember=dict(group.route.healthy) if group.route else {},
    )  # fmt: skip
    group = replace(group, generation=generation, step=wish.step, step_at=None, owed=_without(group, flying))
    if rule.mode is Mode.DRY_RUN:
        step_at = now if wish.step is not None else None
        return replace(group, asked=dict(wish.weights), step_at=step_at), (action,)
    return replace(group, asked=None, owed=(*group.owed, Owed(action, now + RESEND))), (action,)


def _weights_of(owed: Owed) -> Mapping[str, int] | None:
    return owed.action.weights if isinstance(owed.action, SetWeights) else None


def _with(group: Group, flying: Owed | None, *, wanted: bool, at: datetime) -> tuple[Owed, ...]:
    """What is owed, with this one wanted or not; one that is wanted again is published again at once."""
    if flying is None or flying.wanted is wanted:
        return group.owed
    return (*_without(group, flying), replace(flying, wanted=wanted, retry_at=at))


def _without(group: Group, owed: Owed | None) -> tuple[Owed, ...]:
    return tuple(other for other in group.owed if other is not owed)


def _news(rule: Notification, group: Group, wish: Wish, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    group = replace(group, generation=group.generation + 1, told=wish.told)
    action = Notify(
        id=f"{group.rule}/{group.object}/{group.generation}", rule=group.rule, object=group.object,
        generation=group.generation, mode=rule.mode, because=wish.because, detail=wish.detail, decided_at=now,
        to=rule.notify, message=wish.message,
    )  # fmt: skip
    return _owe_news(group, action, now), (action,)


def tell(rule: Rule, group: Group, why: Action | Holding, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Owe the people that the rule names a word about what it does, or why it does nothing."""
    if not rule.notify or isinstance(rule, Notification):
        return group, ()
    if isinstance(why, Holding):
        id_ = f"{group.rule}/{group.object}/{group.generation}/held/{int(now.timestamp())}"
        because, text = why.reason, f"{group.rule} holds on {group.object}: {why.reason}: {why.detail}"
    else:
        id_, because = f"{why.id}/notify", why.because
        weights = (
            ", ".join(f"{name}={weight}" for name, weight in why.weights.items()) if isinstance(why, SetWeights) else ""
        )
        does = "would set" if rule.mode is Mode.DRY_RUN else "sets"
        text = f"{group.rule} {does} {group.object} to {weights}: {because}: {why.detail}"
    action = Notify(
        id=id_, rule=group.rule, object=group.object, generation=max(group.generation, 1), mode=Mode.ENFORCE,
        because=because, decided_at=now, to=rule.notify, message=text.rstrip(": "),
    )  # fmt: skip
    return _owe_news(group, action, now), (action,)


def _owe_news(group: Group, action: Notify, now: datetime) -> Group:
    if action.mode is not Mode.ENFORCE:
        return group
    return replace(group, owed=(*group.owed, Owed(action, now + RESEND)))


def _again(group: Group, fresh: tuple[Action, ...], now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Publish again what has had no outcome for too long: the same action with the same id, so a repeat is no-op."""
    if not group.owed:
        return group, fresh
    due = [owed for owed in group.owed if owed.wanted and now >= owed.retry_at]
    owed = tuple(replace(owed, retry_at=now + RESEND) if owed in due else owed for owed in group.owed)
    return (replace(group, owed=owed) if due else group), (*fresh, *(owed.action for owed in due))

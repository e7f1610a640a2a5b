"""A word to the people whom a rule names, about what it does, or why it does nothing."""

from __future__ import annotations

from datetime import datetime

from bus.messages import (
    Action,
    CancelEviction,
    Evict,
    Mode,
    Notify,
    Place,
    Purge,
    SetTaints,
    SetWeights,
    ZoneStep,
)
from bus.messages.workloads import placed
from rules.core.desired import cut
from rules.core.group import Group, Holding
from rules.core.reasons import Because
from rules.engine.outbox import owe_news
from rules.rulefile.model import Notification, Rule

_OVER = (Because.PRIMARY_HEALTHY, Because.RECOVERED, Because.ZONE_RECOVERED)
"""Reasons that say that it is as it should be again."""


def tell(rule: Rule, group: Group, why: Action | Holding, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Owe the people that the rule names a word, once for each action and for each hold that begins."""
    if not rule.notify or isinstance(rule, Notification):
        return group, ()
    if isinstance(why, Holding):
        about = why.about or group.object
        id_ = f"{group.rule}/{about}/{group.generation}/held/{int(now.timestamp())}"
        because, text = why.reason, f"{group.rule} holds on {about}: {why.reason}: {why.detail}"
    else:
        id_, because = f"{why.id}/notify", why.because
        would = "would " if rule.mode is Mode.DRY_RUN else ""
        text = f"{group.rule}: {would}{in_words(why)}: {because}: {why.detail}"
    action = Notify(
        id=id_, rule=group.rule, object=group.object, generation=max(group.generation, 1), mode=Mode.ENFORCE,
        because=because, decided_at=now, to=rule.notify, message=cut(text.rstrip(": ")), resolves=because in _OVER,
    )  # fmt: skip
    return owe_news(group, action, now), (action,)


def in_words(action: Action) -> str:
    """Say what an action does, in one line for people."""
    match action:
        case SetWeights():
            weights = ", ".join(f"{name}={weight}" for name, weight in action.weights.items())
            return f"set {action.object} to {weights}"
        case Place():
            return f"place {action.object} on {placed(action.clusters)}"
        case Evict():
            return f"evict {action.object} from {action.from_} ({action.purge_mode})"
        case Purge():
            return f"purge {action.object} from {action.from_}"
        case CancelEviction():
            return f"keep {action.object} on {action.from_} after all"
        case SetTaints():
            keys = ", ".join(f"{taint.key}:{taint.effect}" for taint in action.taints) or "none"
            return f"set the taints of {action.object} to {keys}"
        case ZoneStep():
            return f"{'undo' if action.undo else 'do'} {action.step} of {action.phase} on {action.object}"
        case Notify():
            return action.message

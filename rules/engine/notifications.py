"""A word to the people whom a rule names, about what it does, or why it does nothing."""

from __future__ import annotations

from datetime import datetime

from bus.messages import Action, Mode, Notify
from rules.core.desired import cut
from rules.core.group import Group, Holding
from rules.core.reasons import Held
from rules.engine.known_kinds import kind_of
from rules.engine.outbox import enqueue_notification
from rules.rulefile.model import Rule


def notify(rule: Rule, group: Group, why: Action | Holding, now: datetime) -> tuple[Group, tuple[Action, ...]]:
    """Owe the people that the rule names a word, once for each action and for each hold that begins."""
    if not rule.notify or kind_of(rule).tells:
        return group, ()
    request = ""
    if isinstance(why, Holding):
        about = why.about or group.object
        id_ = f"{group.rule}/{about}/{group.generation}/held/{int(now.timestamp())}"
        because, text = why.reason, f"{group.rule} holds on {about}: {why.reason}: {why.detail}"
        if why.reason == Held.AWAITING_APPROVAL and group.grants is not None and group.grants.request is not None:
            request = group.grants.request.desired
    else:
        id_, because = f"{why.id}/notify", why.because
        would = "would " if rule.mode is Mode.DRY_RUN else ""
        text = f"{group.rule}: {would}{why.summary}: {because}: {why.detail}"
    action = Notify(
        id=id_, rule=group.rule, object=group.object, generation=max(group.generation, 1), mode=Mode.ENFORCE,
        because=because, decided_at=now, to=rule.notify, message=cut(text.rstrip(": ")),
        resolves=because in kind_of(rule).resolved, request=request,
    )  # fmt: skip
    return enqueue_notification(group, action, now), (action,)

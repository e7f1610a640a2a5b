"""`reactor approve`: a person's yes to what a rule in mode Approve asks for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import click

from bus.messages import Approve
from reactor.cli.asking import Asker, asking, finish, look, send
from reactor.cli.outcome import told
from reactor.errors import SettingsError
from reactor.visible import visible
from rules.group import Group
from rules.reasons import Held


@click.command()
@click.argument("rule")
@click.argument("object_", metavar="[OBJECT]", required=False)
@asking
def approve(asker: Asker, rule: str, object_: str | None) -> None:
    """Let RULE do what it asks for on OBJECT. The yes holds for exactly what is shown, and not for ever.

    Without OBJECT, the only one that waits is meant. `reactor status` lists what waits.

    Exit code: 0; 1 where nothing waits, several do, or nobody said yes; 3 where the bus cannot be reached.
    """
    with told():
        group = _waiting(look(asker.settings, asker.bus_url), rule, object_)
        held = group.held
        about = (held.about if held else None) or group.object
        asker.confirmed(visible(f"{rule} on {about} asks: {held.detail if held else ''}"))
        finish(
            send(asker, lambda at: Approve(rule=rule, object=about, request=_shown(group), **asker.words(at)),
                 lambda groups, at: _approved(groups, group, at))
        )  # fmt: skip


WAITING = (Held.AWAITING_APPROVAL, Held.APPROVAL_EXPIRED)
"""A yes to what was shown counts also when it comes late."""


def _shown(group: Group) -> str:
    """What names the request that was shown: if the rule wants something else by now, nothing is approved."""
    request = group.leave.request if group.leave is not None else None
    return request.wish if request is not None else ""


def _waiting(groups: Iterable[Group], rule: str, object_: str | None) -> Group:
    waiting = [
        group for group in groups
        if group.rule == rule and group.held is not None and group.held.reason in WAITING
    ]  # fmt: skip
    objects = {(group.held.about if group.held else None) or group.object: group for group in waiting}
    if object_ is None and len(objects) == 1:
        return next(iter(objects.values()))
    if object_ in objects:
        return objects[object_]
    if not objects:
        raise SettingsError(f"{rule} waits for no approval: `reactor status` lists what waits")
    hint = f"not of {object_}" if object_ is not None else "name one of them"
    raise SettingsError(f"{rule} waits for approval of {', '.join(objects)}: {hint}")


def _approved(groups: Iterable[Group], asked: Group, at: datetime) -> str | None:
    now = next((group for group in groups if (group.rule, group.object) == (asked.rule, asked.object)), None)
    request = now.leave.request if now is not None and now.leave is not None else None
    if request is not None and request.approved_at is not None and request.approved_at >= at:
        return f"approved by {request.by}"
    if now is not None and (now.held is None or now.held.reason != Held.AWAITING_APPROVAL):
        return "approved" if now.held is None else f"{now.held.reason}: {now.held.detail}"
    return None

"""`reactor approve` and `reactor reject`: a person's yes or no to what a rule in mode Approve asks for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import click

from bus.messages import Approve, Reject
from reactor.cli.shared.asking import Asker, asking, finish, look, send
from reactor.cli.shared.options import Duration
from reactor.cli.shared.outcome import told
from reactor.runtime.durations import duration
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible
from reactor.views.pending import WAITING, about, request_of, waits
from rules.core.group import Group


@click.command()
@click.argument("rule")
@click.argument("object_", metavar="[OBJECT]", required=False)
@asking
def approve(asker: Asker, rule: str, object_: str | None) -> None:
    """Approve the action of RULE on OBJECT that is pending.

    The approval is valid for exactly the action that is shown, and it expires.

    You can omit OBJECT if only one action is pending. `reactor status` lists pending actions.

    Exit code: 0; 1 if no action or several actions are pending, or it is not confirmed; 3 if the bus cannot be reached.
    """
    with told():
        group = _waiting(look(asker.settings, asker.bus_url), rule, object_)
        asker.confirmed(visible(f"{rule} on {about(group)} asks: {group.held.detail if group.held else ''}"))

        def make(at: datetime) -> Approve:
            return Approve(rule=rule, object=about(group), request=request_of(group), **asker.words(at))

        finish(asker, send(asker, make, lambda groups, at: approval_seen(groups, group, at)))


@click.command()
@click.argument("rule")
@click.argument("object_", metavar="[OBJECT]", required=False)
@click.option(
    "--for", "for_", type=Duration(), default="1h", show_default=True, metavar="TIME",
    help="How long the rule does not ask again: 10m, 2h.",
)  # fmt: skip
@asking
def reject(asker: Asker, rule: str, object_: str | None, for_: float) -> None:
    """Reject the pending action of RULE on OBJECT. The rule does not ask for it again before the time is over.

    The rejection is valid for exactly the action that is shown, even if the rule stops wanting it and wants it again.
    The rule asks for other actions as before. `reactor approve` cancels the rejection. An action that has begun is not
    stopped.

    You can omit OBJECT if only one action is pending. `reactor status` lists pending actions.

    Exit code: 0; 1 if no action or several actions are pending, or it is not confirmed; 3 if the bus cannot be reached.
    """
    with told():
        group = _waiting(look(asker.settings, asker.bus_url), rule, object_)
        asked = f"{rule} on {about(group)} asks: {group.held.detail if group.held else ''}"
        asker.confirmed(visible(f"{asked}; refuse it for {duration(for_)}"))

        def make(at: datetime) -> Reject:
            words = {**asker.words(at), "for_seconds": for_}
            return Reject(rule=rule, object=about(group), request=request_of(group), **words)

        finish(asker, send(asker, make, lambda groups, at: rejection_seen(groups, group, at)))


def _waiting(groups: Iterable[Group], rule: str, object_: str | None) -> Group:
    waiting = [
        group for group in groups
        if group.rule == rule and waits(group)
    ]  # fmt: skip
    objects = {about(group): group for group in waiting}
    if object_ is None and len(objects) == 1:
        return next(iter(objects.values()))
    if object_ in objects:
        return objects[object_]
    if not objects:
        raise SettingsError(f"{rule} waits for no approval: `reactor status` lists pending actions")
    hint = f"not of {object_}" if object_ is not None else "name one of them"
    raise SettingsError(f"{rule} waits for approval of {', '.join(objects)}: {hint}")


def approval_seen(groups: Iterable[Group], asked: Group, at: datetime) -> str | None:
    """Give what became of an approval given at `at`; None: nothing yet. `asked`: the group as it was then."""
    now = _again(groups, asked)
    request = now.grants.request if now is not None and now.grants is not None else None
    if request is not None and request.approved_at is not None and request.approved_at >= at:
        return f"approved by {request.by}"
    if now is not None and (now.held is None or now.held.reason not in WAITING):
        return "approved" if now.held is None else f"{now.held.reason}: {now.held.detail}"
    return None


def rejection_seen(groups: Iterable[Group], asked: Group, at: datetime) -> str | None:
    """Give what became of a rejection given at `at`; None: nothing yet. `asked`: the group as it was then."""
    now, plan = _again(groups, asked), request_of(asked)
    rejected = now.grants.rejected if now is not None and now.grants is not None else ()
    if (no := next((no for no in rejected if no.desired == plan and no.since >= at), None)) is not None:
        return f"rejected by {no.by} until {no.until.isoformat(timespec='seconds')}"
    if now is not None and (now.held is None or now.held.reason not in WAITING):
        return "the rule no longer asks for it" if now.held is None else f"{now.held.reason}: {now.held.detail}"
    return None


def _again(groups: Iterable[Group], asked: Group) -> Group | None:
    return next((group for group in groups if (group.rule, group.object) == (asked.rule, asked.object)), None)

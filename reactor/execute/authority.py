"""Check that the rules allow an action: a known rule, in a mode that acts, on an object that it owns.

The bus keeps others from publishing actions. This is the second look, by the rule files of the executor itself.
"""

from __future__ import annotations

from bus.messages import Action, Mode, Notify
from rules.catalog import kind_of
from rules.engine.outbox import mode_of
from rules.engine.retention import covers
from rules.engine.routing import Routing
from rules.rulefile.model import Rule


def action_refusal(routing: Routing, action: Action) -> str:
    """Reason why the rules that are known here do not allow this action; empty: they do."""
    rule = routing.rules.get(action.rule)
    if rule is None:
        return f"rule {action.rule} is not known here"
    if action.mode is not Mode.ENFORCE:
        return f"an action in mode {action.mode} is never carried out"
    if isinstance(action, Notify):
        return _notify(rule, action)
    if mode_of(rule) is not Mode.ENFORCE:
        return f"rule {rule.name} is in mode {rule.mode} here"
    if not isinstance(action, kind_of(rule).actions):
        return f"rule {rule.name} never asks for {type(action).__name__}"
    if (written := kind_of(rule).written(rule, action)) != action.object:
        return f"the action is said to be on {action.object}, and would write to {written}"
    return "" if _owns(rule, action.object) else f"rule {rule.name} does not match {action.object} here"


def _notify(rule: Rule, action: Notify) -> str:
    if rule.mode is Mode.OFF or (kind_of(rule).tells and mode_of(rule) is not Mode.ENFORCE):
        return f"rule {rule.name} is in mode {rule.mode} here"
    if unknown := sorted({*action.to} - {*rule.notify}):
        return f"rule {rule.name} does not notify {', '.join(unknown)} here"
    return ""


def _owns(rule: Rule, object_: str) -> bool:
    try:
        return covers(rule, kind_of(rule).owner(rule, object_))
    except ValueError:  # not a path of as many parts as its kind has
        return False

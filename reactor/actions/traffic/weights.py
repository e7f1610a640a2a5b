"""Patch of a route that makes its weights as asked: pure functions of the object and its kind.

Other rules, other backends and all other fields belong to other writers and are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from bus.messages import RouteRef, SetWeights
from reactor.actions.annotations import stamps
from reactor.actions.outcomes import Declined
from reactor.actions.patches import changes, patch
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.route_entries import FRACTIONS, RouteEntry, Unreadable, entries, hundredths
from rules.rulefile.route_kinds import RouteFormat


def backends_of(kind: RouteFormat, obj: JsonObject, route: RouteRef) -> list[RouteEntry]:
    """Give the backends of the rule that is to be moved. Raises Declined (RuleMissing, or Invalid)."""
    try:
        return entries(kind, obj, route.rule)
    except Unreadable as error:
        raise Declined(error.reason, f"{route.object}: {error}") from error


def difference(kind: RouteFormat, obj: JsonObject, action: SetWeights) -> list[JsonObject] | None:
    """Give the JSON Patch that makes the route as asked; None: it already is. Raises Declined.

    Another writer's backend with a weight does not make "all of ours zero" safe: we know nothing of its health. And
    because every service named must have an entry, one weight above zero in the action is one in the resulting rule.
    Quantity strings of TrafficSplit v1alpha1 ("500m") become integers where they have to change.
    """
    if not kind.all_zero and action.weights and not any(action.weights.values()):
        raise Declined("AllZero", f"{action.route.object} would be left with all weights zero")
    standing = backends_of(kind, obj, action.route)
    operations = changes(standing, action.weights)
    if not operations:
        return None
    _add_up(kind, standing, action)
    return patch(obj, operations, write=stamps(obj, action))


def _add_up(kind: RouteFormat, standing: Sequence[RouteEntry], action: SetWeights) -> None:
    """Raise Declined where the weights, with those of others, are not what they have to add up to."""
    if not kind.sum_to or not any(action.weights.values()):
        return
    others = [entry for entry in standing if entry.service not in action.weights]
    try:
        rest = sum(hundredths(kind, entry) for entry in others)
    except Unreadable as error:
        raise Declined(error.reason, f"{action.route.object}: {error}") from error
    if rest + FRACTIONS * sum(action.weights.values()) != FRACTIONS * kind.sum_to:
        theirs = ", ".join(f"{entry.service}={entry.weight}" for entry in others) or "no others"
        message = f"the weights {dict(action.weights)} and those of {theirs} do not add up to {kind.sum_to}"
        raise Declined("Invalid", f"{action.route.object}: {message}")

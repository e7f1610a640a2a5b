"""Gives a route its remembered healthy weights back: for disabling a rule, and for uninstalling."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from bus.messages import Outcome, RouteRef
from reactor.actions.annotations import EPOCH_ANNOTATION, healthy_weights, weights_text
from reactor.actions.conditional_write import ConditionalChange, conditional_write
from reactor.actions.events import CONTROLLER, News, tell
from reactor.actions.outcomes import Declined, done, failed
from reactor.actions.patches import changes, patch
from reactor.actions.traffic.route_weights import moves
from reactor.actions.traffic.weights import backends_of
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.clients.route_entries import RouteEntry, Unreadable, weights_of
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from rules.kinds.traffic.apportion import apportion
from rules.kinds.traffic.route_state import DECISION_ANNOTATION, HEALTHY_ANNOTATION
from rules.rulefile.route_kinds import RouteFormat

_ACTION_MAX = 253  # bus.messages.Name

_log = logging.getLogger(__name__)


async def restore(
    api: KubeApi, route: RouteRef, kind: RouteFormat, clock: Clock, *, instance: str = CONTROLLER
) -> Outcome:
    """Give a route its remembered healthy weights back and take our annotations off: for disabling and uninstalling.

    Done without a write where nothing is remembered. The outcome's action is `restore/<object>`.
    """
    name = f"restore/{route.object}"[:_ACTION_MAX]
    change = ConditionalChange(
        plan=lambda obj: restoration(kind, obj, route),
        as_asked=lambda obj: restoration(kind, obj, route) is None,
        written_by_us=lambda _: True,  # no other writer takes this annotation off
    )
    try:
        written = await conditional_write(api, route, kind, change)
    except ReactorError as error:
        _log.warning("weights not restored: %s", error, extra={"object": route.object})
        return failed(name, clock, error)
    if written is None:
        return done(name, clock, wrote=False)
    moved = moves(kind, written, route) or "nothing had to move"
    version = written.after["metadata"].get("resourceVersion", "")
    news = News(f"{name}/{version}", "Restore", f"{moved}: the rule lets go of this route", clock.now(), instance)
    await tell(api, written.after, news)
    return done(name, clock, wrote=True, detail=moved)


def restoration(kind: RouteFormat, obj: JsonObject, route: RouteRef) -> list[JsonObject] | None:
    """Give the JSON Patch that brings back what is remembered; None: nothing is. Raises Declined.

    Services that have left the route are skipped; what is remembered for another rule of the same route stays.
    """
    healthy = healthy_weights(obj)
    if not healthy:
        return None
    standing = backends_of(kind, obj, route)
    mine = {entry.service: healthy[entry.service] for entry in standing if entry.service in healthy}
    if not mine:
        return None
    if not kind.all_zero and not any(mine.values()):
        raise Declined("AllZero", f"{route.object}: the remembered weights are all zero")
    if kind.sum_to and any(mine.values()):
        mine = dict(zip(mine, apportion(kind.sum_to - _rest(kind, standing, mine), [*mine.values()]), strict=True))
    others = {service: weight for service, weight in healthy.items() if service not in mine}
    keep = {HEALTHY_ANNOTATION: weights_text(others)} if others else {}
    ours = () if others else (HEALTHY_ANNOTATION, DECISION_ANNOTATION, EPOCH_ANNOTATION)
    return patch(obj, changes(standing, mine), write=keep, remove=ours)


def _rest(kind: RouteFormat, standing: Sequence[RouteEntry], mine: Collection[str]) -> int:
    """Give what backends that nothing is remembered of have. Raises Declined."""
    try:
        weights = list(zip(standing, weights_of(kind, standing), strict=True))
    except Unreadable as error:
        raise Declined(error.reason, str(error)) from error
    return sum(weight for entry, weight in weights if entry.service not in mine)

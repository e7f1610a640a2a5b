"""Carries out SetWeights on any kind of route."""

from __future__ import annotations

import logging

from bus.messages import Mode, Outcome, RouteRef, SetWeights
from reactor.actions.annotations import stamp_of, stamp_on
from reactor.actions.background import BackgroundTasks
from reactor.actions.conditional_write import ConditionalChange, Written, conditional_write
from reactor.actions.events import CONTROLLER, REASONS, News, tell
from reactor.actions.outcomes import Declined, done, failed
from reactor.actions.traffic.weights import backends_of, difference
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from reactor.clients.route_entries import RouteEntry
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from rules.rulefile.route_kinds import RouteFormat, RouteKinds, kind_of

UNKNOWN = "a rule names this kind of route, the settings do not"
NO_KINDS: RouteKinds = {}
_log = logging.getLogger(__name__)


async def carry_out(
    api: KubeApi,
    action: SetWeights,
    clock: Clock,
    *,
    instance: str = CONTROLLER,
    background: BackgroundTasks | None = None,
    custom: RouteKinds = NO_KINDS,
) -> Outcome:
    """Make the route's weights as asked, at most one effective write for one decision however often it is called.

    Never raises for what the world does, the outcome says it. Done: the weights are as asked. Refused: Stale (a newer
    decision of the same group is on the object), AlreadyDone (this very decision does, and the weights were changed
    since), AllZero, DryRun. Failed: RouteNotFound, RuleMissing, BackendMissing, Forbidden, Invalid, Conflict,
    NotAsAsked, UnknownRouteKind or ApiUnavailable; nothing is known to be written. With `aside`, the Event follows on
    its own. `custom`: the route kinds of the settings.
    """
    about = {"rule": action.rule, "object": action.object, "action": action.id}
    try:
        kind = kind_of(action.route.kind, action.route.custom_kind, custom)
    except KeyError:
        return failed(action.id, clock, Declined("UnknownRouteKind", f"routeKinds.{action.route.called}: {UNKNOWN}"))
    change = ConditionalChange(
        plan=lambda obj: _plan(kind, obj, action),
        as_asked=lambda obj: difference(kind, obj, action) is None,
        written_by_us=lambda obj: stamp_on(obj) == stamp_of(action),
    )
    try:
        if action.mode is not Mode.ENFORCE:
            raise Declined("DryRun", f"mode {action.mode}: decided and recorded, not carried out")
        written = await conditional_write(api, action.route, kind, change)
    except ReactorError as error:
        outcome = failed(action.id, clock, error)
        level = logging.INFO if outcome.status == "Refused" else logging.WARNING
        _log.log(level, "weights not set: %s", error, extra={**about, "reason": outcome.reason})
        return outcome
    if written is None:
        return done(action.id, clock, wrote=False)
    moved = moves(kind, written, action.route)
    _log.info("weights set: %s", moved, extra={**about, "reason": action.because})
    reason = REASONS.get(action.because, action.because)
    note = f"{moved}: {action.because}{f': {action.detail}' if action.detail else ''} (decision {action.id})"
    news = tell(api, written.after, News(action.id, reason, note, clock.now(), instance))
    if background is None:
        await news
    else:
        background(news)  # in a mass failure, the next route's traffic is more urgent than this one's event
    return done(action.id, clock, wrote=True, detail=moved)


def _plan(kind: RouteFormat, obj: JsonObject, action: SetWeights) -> list[JsonObject] | None:
    """Give the difference, unless it is not for this action to write it. Raises Declined."""
    current, asked = stamp_on(obj), stamp_of(action)
    if current is not None and current.overrules(asked):
        raise Declined(
            "Stale",
            f"{action.route.object} follows generation {current.generation} of epoch {current.epoch}, "
            f"this is generation {asked.generation} of epoch {asked.epoch}",
        )
    operations = difference(kind, obj, action)
    if operations is not None and current is not None and current.is_same_decision(asked):
        # A late repeat would undo what a person has done since. The decider sees the drift, and decides again.
        raise Declined("AlreadyDone", f"{action.route.object} was set by this decision, and has been changed since")
    return operations


def moves(kind: RouteFormat, written: Written, route: RouteRef) -> str:
    """Give what has moved, for people: `checkout 1→0, checkout-west 0→1`."""
    before, after = (backends_of(kind, obj, route) for obj in (written.before, written.after))
    pairs = zip(before, after, strict=False)
    changed = (f"{old.service} {_shown(old)}→{_shown(new)}" for old, new in pairs if old.weight != new.weight)
    return ", ".join(changed)


def _shown(entry: RouteEntry) -> object:
    return entry.weight if entry.weight is not None else entry.default

"""Carries out SetWeights on any kind of route."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bus.messages import Mode, Outcome, RouteRef, SetWeights
from reactor.actions import gateway_route, traffic_split
from reactor.actions.annotations import stamp_of, stamp_on
from reactor.actions.aside import Aside
from reactor.actions.events import CONTROLLER, REASONS, News, tell
from reactor.actions.outcomes import Unfit, done, failed
from reactor.actions.patches import Entry
from reactor.actions.settle import Change, Written, settle
from reactor.clients.port import JsonObject, KubeApi
from reactor.clock import Clock
from reactor.errors import ReactorError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Carrier:
    """What is particular to a kind of route: pure functions of the object."""

    entries: Callable[[JsonObject, RouteRef], list[Entry]]
    difference: Callable[[JsonObject, SetWeights], list[JsonObject] | None]
    may_be_zero: bool
    """Whether all weights zero is an answer that the data plane can bear."""


_GATEWAY = Carrier(gateway_route.entries, gateway_route.difference, may_be_zero=False)
CARRIERS: Mapping[str, Carrier] = {
    "TrafficSplit": Carrier(traffic_split.entries, traffic_split.difference, may_be_zero=True),
    "HTTPRoute": _GATEWAY,
    "GRPCRoute": _GATEWAY,
}


async def carry_out(
    api: KubeApi, action: SetWeights, clock: Clock, *, instance: str = CONTROLLER, aside: Aside | None = None
) -> Outcome:
    """Make the route's weights as asked, at most one effective write for one decision however often it is called.

    Never raises for what the world does, the outcome says it. Done: the weights stand. Refused: Stale (a newer decision
    of the same group stands on the object), AlreadyDone (this very decision does, and the weights were changed
    since), AllZero, DryRun. Failed: RouteNotFound, RuleMissing, BackendMissing, Forbidden, Invalid, Conflict,
    NotAsAsked or ApiUnavailable; nothing is known to be written. With `aside`, the Event follows on its own.
    """
    about = {"rule": action.rule, "object": action.object, "action": action.id}
    difference = CARRIERS[action.route.kind].difference
    change = Change(
        plan=lambda obj: _plan(obj, action),
        as_asked=lambda obj: difference(obj, action) is None,
        written_by_us=lambda obj: stamp_on(obj) == stamp_of(action),
    )
    try:
        if action.mode is not Mode.ENFORCE:
            raise Unfit("DryRun", f"mode {action.mode}: decided and recorded, not carried out")
        written = await settle(api, action.route, change)
    except ReactorError as error:
        outcome = failed(action.id, clock, error)
        level = logging.INFO if outcome.status == "Refused" else logging.WARNING
        _log.log(level, "weights not set: %s", error, extra={**about, "reason": outcome.reason})
        return outcome
    if written is None:
        return done(action.id, clock, wrote=False)
    moved = moves(written, action.route)
    _log.info("weights set: %s", moved, extra={**about, "reason": action.because})
    reason = REASONS.get(action.because, action.because)
    note = f"{moved}: {action.because}{f': {action.detail}' if action.detail else ''} (decision {action.id})"
    news = tell(api, written.after, News(action.id, reason, note, clock.now(), instance))
    if aside is None:
        await news
    else:
        aside(news)  # in a mass failure, the next route's traffic is more urgent than this one's event
    return done(action.id, clock, wrote=True, detail=moved)


def _plan(obj: JsonObject, action: SetWeights) -> list[JsonObject] | None:
    """Give the difference, unless it is not for this action to write it. Raises Unfit."""
    stands, asked = stamp_on(obj), stamp_of(action)
    if stands is not None and stands.overrules(asked):
        raise Unfit(
            "Stale",
            f"{action.route.object} follows generation {stands.generation} of epoch {stands.epoch}, "
            f"this is generation {asked.generation} of epoch {asked.epoch}",
        )
    operations = CARRIERS[action.route.kind].difference(obj, action)
    if operations is not None and stands is not None and stands.is_same_decision(asked):
        # A late repeat would undo what a person has done since. The decider sees the drift, and decides anew.
        raise Unfit("AlreadyDone", f"{action.route.object} was set by this decision, and has been changed since")
    return operations


def moves(written: Written, route: RouteRef) -> str:
    """Give what has moved, for people: `checkout 1→0, checkout-west 0→1`."""
    entries = CARRIERS[route.kind].entries
    pairs = zip(entries(written.before, route), entries(written.after, route), strict=False)
    changed = (f"{old.service} {_shown(old)}→{_shown(new)}" for old, new in pairs if old.weight != new.weight)
    return ", ".join(changed)


def _shown(entry: Entry) -> object:
    return entry.weight if entry.weight is not None else entry.default

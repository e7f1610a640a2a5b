"""Carries out SetWeights on routes that are in no cluster.

Where the other side compares and sets, a write is conditional on what was read. Where it does not (HAProxy), the
intent of the executor is the fence: what was written is read back after a moment, and another writer that was quicker
is overwritten once, and told of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from bus.messages import Mode, Outcome, SetWeights, iso
from reactor.actions.conditional_write import SETTLE_SECONDS, attempts
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import Declined, NotAsAsked, done, failed
from reactor.clients.balancers.balancer_port import LoadBalancer, WeightChange, Weights
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError

READ_BACK_SECONDS = 0.3
"""Seconds between a write and reading it back where nothing else says that it took effect: within a second, with the
reading."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _MovedWeights:
    before: Weights
    after: Weights
    others: str = ""
    """Weights that another writer had set meanwhile; empty: there was none."""


async def carry_out(balancer: LoadBalancer, action: SetWeights, clock: Clock, context: ExecutionContext) -> Outcome:
    """Make the weights as asked, and nothing where they are.

    Never raises for what the world does, the outcome says it. Done: the weights were as asked when they were read back.
    Refused: AllZero, DryRun. Failed: RouteNotFound, BackendMissing, Forbidden, Invalid, Conflict, NotAsAsked,
    ApiUnavailable.
    """
    about = {"rule": action.rule, "object": action.object, "action": action.id}
    try:
        if action.mode is not Mode.ENFORCE:
            raise Declined("DryRun", f"mode {action.mode}: decided and recorded, not carried out")
        written = await _write_until_settled(balancer, action, clock, context)
    except ReactorError as error:
        outcome = failed(action.id, clock, error)
        level = logging.INFO if outcome.status == "Refused" else logging.WARNING
        _log.log(level, "weights not set: %s", error, extra={**about, "reason": outcome.reason})
        return outcome
    if written is None:
        return done(action.id, clock, wrote=False)
    moved = moves(written.before.by_name, action.weights)
    if written.others:
        _log.warning("another writer was overwritten: %s", written.others, extra=about)
        moved = f"{moved}; another writer had made it {written.others}, and was overwritten once"
    _log.info("weights set: %s", moved, extra={**about, "reason": action.because})
    return done(action.id, clock, wrote=True, detail=moved)


async def _write_until_settled(
    balancer: LoadBalancer, action: SetWeights, clock: Clock, context: ExecutionContext
) -> _MovedWeights | None:
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            return await _try_writing(balancer, action, clock, context)
    except TimeoutError as error:
        raise ApiUnavailable(f"{action.object}: not settled within {SETTLE_SECONDS:g} s") from error


async def _try_writing(
    balancer: LoadBalancer, action: SetWeights, clock: Clock, context: ExecutionContext
) -> _MovedWeights | None:
    unanswered: Weights | None = None
    async for attempt in attempts():
        with attempt:
            seen = await balancer.read()
            if is_as_asked(seen, action):
                # A write without an answer has taken effect: no other writer writes just this, just now.
                return _MovedWeights(unanswered, seen) if unanswered is not None else None
            try:
                after = await _write(balancer, seen, action, context)
            except ApiUnavailable:
                unanswered = seen
                raise
            if after is None:
                unanswered = seen  # until it is read back
                return await _read_back(balancer, seen, action, clock, context)
            if not is_as_asked(after, action):
                raise NotAsAsked(f"{action.object}: the write was accepted, and then it was {_text(after)}")
            return _MovedWeights(seen, after)
    raise AssertionError("stamina ends with an answer or an error")


async def _read_back(
    balancer: LoadBalancer, before: Weights, action: SetWeights, clock: Clock, context: ExecutionContext
) -> _MovedWeights:
    """Look again after a moment. Another writer who has written since is overwritten, once."""
    others = ""
    for once_more in (True, False):
        await clock.sleep(READ_BACK_SECONDS)
        after = await balancer.read()
        if is_as_asked(after, action):
            return _MovedWeights(before, after, others)
        if once_more:
            others = _text(after)
            await _write(balancer, after, action, context)
    raise NotAsAsked(f"{action.object}: another writer changes it too: {_text(after)} is set, though written twice")


async def _write(
    balancer: LoadBalancer, seen: Weights, action: SetWeights, context: ExecutionContext
) -> Weights | None:
    key = f"{action.id}\n{iso(action.decided_at)}\n{sorted(action.weights.items())}"
    change = WeightChange(action.weights, action.id, key)
    return await context.write(action.object, lambda: balancer.write(seen, change))


def is_as_asked(seen: Weights, action: SetWeights) -> bool:
    """True if the weights are as asked. Raises Declined: BackendMissing, AllZero."""
    if missing := sorted(set(action.weights) - set(seen.by_name)):
        have = ", ".join(seen.by_name) or "none"
        raise Declined("BackendMissing", f"{action.object} has no backend {', '.join(missing)}; it has: {have}")
    if not any({**seen.by_name, **action.weights}.values()):
        raise Declined("AllZero", f"{action.object} is never left with all weights zero")
    return all(seen.by_name[name] == weight for name, weight in action.weights.items())


def moves(before: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    """Give what has moved, for people: `checkout 1→0, checkout-west 0→1`."""
    return ", ".join(f"{name} {before[name]}→{weight}" for name, weight in wanted.items() if before.get(name) != weight)


def _text(weights: Weights) -> str:
    return ", ".join(f"{name}={weight}" for name, weight in weights.by_name.items())

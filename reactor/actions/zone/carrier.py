"""Carries out one ZoneStep: by its carrier, within a bounded time, and with an outcome whatever happens.

Done: the step is in effect (or undone), verified. Failed: the reason says whether asking again helps. `InProgress` is
the answer of a step that needs longer than one call: its detail has the numbers (`12 pods are left in eu-central-1a, 3
of them on their way out; 4 blocked by budget shop/web`), and the engine asks again with the same id until the step's
own timeout. Every call probes first, so it does not matter who was stopped where. `Maintained` is the answer of the
Verify of an isolation that is complete: the engine asks for the same again a minute later, so that it costs no
decision.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from pydantic import ValidationError

from bus.messages import Mode, Outcome, ZoneStep
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import Declined, OutOfTime, done, failed
from reactor.actions.zone import fence, force, gardener, network, shift_traffic
from reactor.actions.zone.evacuate import evacuate
from reactor.actions.zone.isolation_context import (
    CALL_SECONDS,
    WRITE_SECONDS,
    InProgress,
    IsolationContext,
    Maintained,
    StepResult,
    ZoneWorld,
    guarded,
)
from reactor.actions.zone.step_settings import StepSettings
from reactor.actions.zone.verify import verify
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, SettingsError

_log = logging.getLogger(__name__)

TakeStep = Callable[[KubeApi, IsolationContext], Awaitable[StepResult]]


async def _nothing(_: KubeApi, isolation: IsolationContext) -> StepResult:
    return StepResult(wrote=False, detail=f"{isolation.action.step} leaves nothing to undo")


STEPS: Mapping[tuple[str, bool], TakeStep] = {
    ("Fence", False): fence.fence, ("Fence", True): fence.unfence,
    ("ShiftTraffic", False): shift_traffic.shift, ("ShiftTraffic", True): shift_traffic.give_back,
    ("Evacuate", False): evacuate, ("Evacuate", True): force.take_back,
    ("CutNetwork", False): network.cut, ("CutNetwork", True): network.restore,
    ("Verify", False): verify, ("Verify", True): _nothing,
}  # fmt: skip
"""Carrier Kubernetes: by step and undo."""


async def carry_out(
    action: ZoneStep, world: ZoneWorld, clock: Clock, context: ExecutionContext | None = None
) -> Outcome:
    """Do or undo one step, as far as one call goes. Never raises for what the world does."""
    context = context or ExecutionContext()
    context.limit(clock, begin_within=CALL_SECONDS, take_at_most=WRITE_SECONDS)
    about = {"rule": action.rule, "object": action.object, "action": action.id}
    try:
        async with asyncio.timeout(CALL_SECONDS + WRITE_SECONDS):
            result = await _step(action, guarded(world, context), clock)
    except OutOfTime as error:
        return failed(action.id, clock, InProgress(f"{action.step} goes on with the next call; {error}"))
    except TimeoutError:
        return failed(action.id, clock, InProgress(f"{action.step} did not come to a point to report from in time"))
    except SettingsError as error:
        return failed(action.id, clock, Declined("SettingsError", str(error)))
    except ReactorError as error:
        outcome = failed(action.id, clock, error)
        level = logging.INFO if isinstance(error, InProgress | Maintained) else logging.WARNING
        _log.log(level, "%s: %s", action.step, error, extra={**about, "reason": outcome.reason})
        return outcome
    _log.info("%s%s: %s", action.step, " undone" if action.undo else "", result.detail, extra=about)
    return done(action.id, clock, wrote=result.wrote, detail=result.detail)


async def _step(action: ZoneStep, world: ZoneWorld, clock: Clock) -> StepResult:
    if action.mode is not Mode.ENFORCE:
        raise Declined("DryRun", f"mode {action.mode}: decided and recorded, not carried out")
    try:
        settings = StepSettings.model_validate(action.settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = "this release does not know this key" if first["type"] == "extra_forbidden" else first["msg"]
        raise Declined("Invalid", f"settings.{'.'.join(map(str, first['loc']))}: {why}") from error
    isolation = IsolationContext(action, settings, clock, world)
    key = (action.step, action.undo)
    if key not in STEPS:
        raise Declined("Invalid", f"there is no step {action.step}")
    if action.carrier == "Gardener":
        result = await gardener.STEPS[key](isolation)
    else:
        result = await STEPS[key](await world.clusters(action.cluster), isolation)
    if isolation.standing and key == ("Verify", False):
        raise Maintained(result.detail)
    return result

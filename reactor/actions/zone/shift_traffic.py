"""ShiftTraffic: the zone's nodes leave the cloud's load balancers, and our own traffic rules learn that it is bad.

Weights are moved by TrafficFailover rules and by nothing else, so this step only speaks to them: each target that the
rule lists for the zone (`zones[].targets`) is observed Unhealthy with the signal `zone-isolation`, beside whatever its
other signals say, and Healthy when the zone comes back. A target is a whole service, so only those that are served from
this one zone belong on the list; nothing is listed by itself.
"""

from __future__ import annotations

from datetime import timedelta

from bus.messages import Health, Observation
from reactor.actions.outcomes import Declined, OutOfTime, Waited
from reactor.actions.zone import fence
from reactor.actions.zone.holds import BALANCERS
from reactor.actions.zone.isolation_context import InProgress, IsolationContext, StepResult
from reactor.actions.zone.zone_marks import SIGNAL
from reactor.clients.kubernetes_port import ApiUnavailable, KubeApi
from reactor.runtime.errors import Retryable


async def shift(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Take the zone out of all traffic. Raises InProgress while requests in flight are waited for."""
    result = await fence.take(api, isolation, BALANCERS)
    said = await _say(isolation, Health.UNHEALTHY, f"zone {isolation.zone} is isolated")
    until = isolation.action.decided_at + timedelta(seconds=isolation.settings.drain_seconds)
    left = (until - isolation.clock.now()).total_seconds()
    if left > 0 and not isolation.standing:
        raise InProgress(f"{result.detail}{said}; requests in flight have {left:.0f} s more")
    return StepResult(result.wrote or bool(said), f"{result.detail}{said}")


async def give_back(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Give the zone its traffic back. Nothing is scheduled there yet, so the nodes need no batches."""
    result = await fence.give(api, isolation, BALANCERS)
    said = await _say(isolation, Health.HEALTHY, f"zone {isolation.zone} is no longer isolated")
    return StepResult(result.wrote or bool(said), f"{result.detail}{said}")


async def _say(isolation: IsolationContext, health: Health, detail: str) -> str:
    """Tell our traffic rules, and give the words for people. Said again with every call: what was lost is mended."""
    targets = isolation.settings.targets
    if not targets:
        return ""
    if isolation.world.say is None:
        raise Declined("NotConnected", "the rule lists targets, and this process publishes no observations")
    for target in targets:
        now = isolation.clock.now()
        seen = Observation(target=target, status=health, signal=SIGNAL, observed_at=now, detail=detail)
        try:
            await isolation.world.say(seen)
        except (OutOfTime, Waited):
            raise
        except Retryable as error:
            raise ApiUnavailable(f"{target} could not be said {health}: {error}") from error
    return f", {len(targets)} targets are {health} to our traffic rules"

"""Verify: the zone is isolated, and the others work. Also what keeps an isolation so while it lasts.

It makes the round of all the plan's steps, each of which does what is missing: a node that has joined since is fenced,
a pod that slipped onto it leaves, a new subnet is cut. Then it looks at the other zones.
"""

from __future__ import annotations

from reactor.actions.outcomes import Declined, NotAsAsked
from reactor.actions.zone import fence, network, shift_traffic, zone_nodes
from reactor.actions.zone.evacuate import evacuate
from reactor.actions.zone.isolation_context import IsolationContext, StepResult
from reactor.clients.instant_queries import QueryFailed, QueryRefused
from reactor.clients.kubernetes_port import ApiUnavailable, KubeApi

_NAMED_MAX = 5


async def verify(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Make the round. Raises what the steps raise, and NotAsAsked where the other zones or the query are not well."""
    steps = isolation.settings.steps
    wrote = False
    words: list[str] = []
    for step in steps:
        result = await _check_step(api, isolation, step)
        if result is not None:
            wrote = wrote or result.wrote
            words.append(result.detail)
    words.append(await _others(api, isolation))
    if isolation.settings.query:
        words.append(await _check_query(isolation))
    return StepResult(wrote, "; ".join(words))


async def _check_step(api: KubeApi, isolation: IsolationContext, step: str) -> StepResult | None:
    match step:
        case "Fence":
            return await fence.fence(api, isolation)
        case "ShiftTraffic":
            return await shift_traffic.shift(api, isolation)  # what the bus has lost is said again
        case "Evacuate":
            return await evacuate(api, isolation)
        case "CutNetwork":
            return await network.cut(api, isolation)
    return None


async def _others(api: KubeApi, isolation: IsolationContext) -> str:
    others = await zone_nodes.elsewhere(api, isolation)
    bad = sorted(zone_nodes.name_of(node) for node in others if not zone_nodes.is_ready(node))
    healthy = len(others) - len(bad)
    said = f"{healthy} of {len(others)} nodes of the other zones are Ready"
    share = isolation.settings.healthy_share
    if not others or healthy < share * len(others):
        raise NotAsAsked(f"{said}, fewer than {share:.0%}; not Ready: {', '.join(bad[:_NAMED_MAX]) or 'none'}")
    return said


async def _check_query(isolation: IsolationContext) -> str:
    name = isolation.settings.prometheus
    if isolation.world.query is None:
        raise Declined("NotConnected", f"the rule verifies by prometheus.{name}, and this process asks no Prometheus")
    try:
        samples = await isolation.world.query(name, isolation.settings.query)
    except QueryFailed as error:
        raise ApiUnavailable(str(error)) from error
    except QueryRefused as error:
        raise Declined("QueryRefused", str(error)) from error
    # No series is no proof; and NaN is not zero, but no proof either.
    if not samples or any(not sample.value or sample.value != sample.value for sample in samples):
        raise NotAsAsked(f"the query holds for {sum(bool(one.value) for one in samples)} of {len(samples)} series")
    return f"the query holds for {len(samples)} series"

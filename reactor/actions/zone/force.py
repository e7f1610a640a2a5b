"""The rungs above asking politely, each only where its condition holds.

delete            the pods of a node that has not been Ready for more than five minutes; with `force: AfterTimeout`, all
                  that are left when the step's time is over
out-of-service    with `force: AfterTimeout`, when that time is over, for a node that is not Ready and whose network is
                  proven to be cut: only then may its volumes be given to others. Without proof two would write to one
                  volume, so without AwsNetworkAcl this rung is never taken
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from reactor.actions.outcomes import Declined, NotAsAsked
from reactor.actions.zone import aws_acl, fence, zone_nodes
from reactor.actions.zone.evacuation_order import is_leaving
from reactor.actions.zone.holds import OUT
from reactor.actions.zone.isolation_context import IsolationContext, StepResult
from reactor.clients.kubernetes_port import JsonObject, KubeApi
from rules.kinds.zone.plan import DARK, drain_mode


def delete_from(isolation: IsolationContext, zone: Sequence[JsonObject]) -> frozenset[str]:
    """Give the nodes whose pods are deleted now instead of asked."""
    now = isolation.clock.now()
    allowed = isolation.settings.timeout_seconds if isolation.settings.force == "AfterTimeout" else inf
    elapsed = (now - isolation.action.decided_at).total_seconds()

    def mode(node: JsonObject) -> str:
        dark = zone_nodes.not_ready_for(node, now).total_seconds()
        return drain_mode(not_ready_seconds=dark, forced=False, elapsed_seconds=elapsed, timeout_seconds=allowed)

    return frozenset(zone_nodes.name_of(node) for node in zone if mode(node) == "delete")


async def give_away(
    api: KubeApi, isolation: IsolationContext, zone: Sequence[JsonObject], pods: Sequence[JsonObject]
) -> None:
    """Say of lost nodes whose pods hang that they are off, where the rule allows it and they are proven to be."""
    if not isolation.late or isolation.settings.force != "AfterTimeout":
        return
    now = isolation.clock.now()
    hanging = {(pod.get("spec") or {}).get("nodeName") for pod in pods if is_leaving(pod)}
    off = [node for node in zone if zone_nodes.name_of(node) in hanging and zone_nodes.not_ready_for(node, now) > DARK]
    if off and await is_cut_off(isolation):
        await zone_nodes.each(off, lambda node: zone_nodes.change(api, node, lambda obj: OUT.take(obj, isolation.mark)))


async def take_back(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Undo: the zone's nodes are in service again. Pods are never moved back."""
    return await fence.give(api, isolation, OUT)


async def is_cut_off(isolation: IsolationContext) -> bool:
    """True if it is proven that nothing in the zone can reach anything: every subnet is behind our deny ACL now.

    A NetworkPolicy is no proof: it depends on the very nodes that are lost.
    """
    if isolation.settings.network.provider != "AwsNetworkAcl":
        return False
    try:
        await aws_acl.verify(isolation)
    except (NotAsAsked, Declined):
        return False
    return True

"""CutNetwork: by whatever the rule says there is to cut with."""

from __future__ import annotations

from reactor.actions.zone import aws_acl, policies
from reactor.actions.zone.isolation_context import IsolationContext, StepResult
from reactor.clients.kubernetes_port import KubeApi

_LEFT = "the rule has no network provider: the network is left as it is"


async def cut(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Cut the zone's network. Raises what the provider raises."""
    match isolation.settings.network.provider:
        case "AwsNetworkAcl":
            return await aws_acl.cut(isolation)
        case "LabelledNetworkPolicy":
            return await policies.cut(api, isolation)
        case "None":
            return StepResult(wrote=False, detail=_LEFT)


async def restore(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Open it again: the first of all steps back, or nothing in the zone could answer."""
    match isolation.settings.network.provider:
        case "AwsNetworkAcl":
            return await aws_acl.restore(isolation)
        case "LabelledNetworkPolicy":
            return await policies.restore(api, isolation)
        case "None":
            return StepResult(wrote=False, detail=_LEFT)

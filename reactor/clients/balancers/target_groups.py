"""An Application Load Balancer's target groups: the weights in the forward action of one listener rule.

The API of load balancers takes no condition: who writes last wins. What else the rule does (authentication, stickiness)
is read just before the write, and written back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reactor.clients.aws import CALL_SECONDS, Aws
from reactor.clients.balancers.balancer_port import WeightChange, Weights
from reactor.clients.kubernetes_port import Invalid, NotFound
from reactor.settings.balancer_settings import TargetGroupsSettings as Settings

WEIGHT_MAX = 999


class TargetGroups:
    """One listener rule; implements LoadBalancer."""

    timeout_seconds = CALL_SECONDS

    def __init__(self, name: str, settings: Settings, aws: Aws) -> None:
        self.name = name
        self._settings = settings
        self._aws = aws

    @property
    def every_seconds(self) -> float:
        return self._settings.every_seconds

    async def read(self) -> Weights:
        groups = forwarded(self._where, await self._actions())
        return Weights({name_of(one["TargetGroupArn"]): one.get("Weight", 1) for one in groups})

    async def write(self, seen: Weights, change: WeightChange) -> None:  # noqa: ARG002 - there is nothing to compare with
        for name, weight in change.weights.items():
            if not 0 <= weight <= WEIGHT_MAX:
                raise Invalid(f"{self._where}: no target group takes the weight {weight} ({name!r}): 0 to 999 go")
        actions = changed(self._where, await self._actions(), change.weights)
        await self._aws.call("modify_rule", RuleArn=self._settings.rule_arn, Actions=actions)

    async def close(self) -> None:
        """boto3 keeps its connections, and closes them by itself."""

    @property
    def _where(self) -> str:
        return f"loadBalancers.{self.name}"

    async def _actions(self) -> list[dict[str, Any]]:
        found = await self._aws.call("describe_rules", RuleArns=[self._settings.rule_arn])
        if not found.get("Rules"):
            raise NotFound(f"{self._where}: there is no rule {self._settings.rule_arn}")
        actions: list[dict[str, Any]] = found["Rules"][0]["Actions"]
        return actions


def forwarded(where: str, actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the target groups of the forward action. Pure. Raises Invalid."""
    forward = next((one for one in actions if one["Type"] == "forward"), {})
    groups: list[dict[str, Any]] = forward.get("ForwardConfig", {}).get("TargetGroups", [])
    if len(groups) < 2:
        raise Invalid(f"{where}: the rule forwards to {len(groups)} target groups with weights, and needs two or more")
    return groups


def changed(where: str, actions: list[dict[str, Any]], weights: Mapping[str, int]) -> list[dict[str, Any]]:
    """Give the actions with these weights. Pure. Raises Invalid."""
    groups = [
        {**one, "Weight": weights.get(name_of(one["TargetGroupArn"]), one.get("Weight", 1))}
        for one in forwarded(where, actions)
    ]
    out = []
    for action in actions:
        if action["Type"] == "forward":
            # Beside several groups the API refuses the short form, which it gives for one.
            rest = {key: value for key, value in action.items() if key != "TargetGroupArn"}
            out.append({**rest, "ForwardConfig": {**action["ForwardConfig"], "TargetGroups": groups}})
        else:
            out.append(action)
    return out


def name_of(arn: str) -> str:
    """Give the name from `arn:aws:elasticloadbalancing:eu-central-1:123:targetgroup/blue/0123456789abcdef`."""
    return arn.rpartition(":")[2].split("/")[1]

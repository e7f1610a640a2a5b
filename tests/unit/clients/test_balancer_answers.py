"""Answers of load balancers, verbatim, and their meaning: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reactor.clients.balancers.route53 import Route53, batch_of
from reactor.clients.balancers.target_groups import changed, forwarded, name_of
from reactor.clients.kubernetes_port import Invalid
from reactor.settings.balancer_settings import Route53Settings as Settings

ARN = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup"
BLUE, GREEN = f"{ARN}/blue/0123456789abcdef", f"{ARN}/green/fedcba9876543210"
LOGIN = {"Type": "authenticate-cognito", "Order": 1, "AuthenticateCognitoConfig": {"UserPoolArn": "x"}}


def forward(**more: Any) -> dict[str, Any]:
    groups = [{"TargetGroupArn": BLUE, "Weight": 1}, {"TargetGroupArn": GREEN, "Weight": 0}]
    return {"Type": "forward", "Order": 2, "ForwardConfig": {"TargetGroups": groups, **more}}


def test_only_weights_change_in_a_rule_and_the_short_form_is_left_out() -> None:
    sticky = {"TargetGroupStickinessConfig": {"Enabled": True, "DurationSeconds": 60}}
    actions = [LOGIN, {**forward(**sticky), "TargetGroupArn": BLUE}]
    wanted = forward(**sticky)
    wanted["ForwardConfig"]["TargetGroups"] = [
        {"TargetGroupArn": BLUE, "Weight": 0}, {"TargetGroupArn": GREEN, "Weight": 1},
    ]  # fmt: skip
    assert changed("lb", actions, {"blue": 0, "green": 1}) == [LOGIN, wanted]
    assert changed("lb", actions, {"green": 5})[1]["ForwardConfig"]["TargetGroups"][0]["Weight"] == 1
    assert name_of(BLUE) == "blue"


@pytest.mark.parametrize("actions", [[], [LOGIN], [{"Type": "forward", "TargetGroupArn": BLUE}]])
def test_a_rule_without_two_groups_cannot_be_used(actions: list[dict[str, Any]]) -> None:
    with pytest.raises(Invalid, match="needs two or more"):
        forwarded("lb", actions)


ALIAS = {"DNSName": "x.elb.amazonaws.com.", "HostedZoneId": "Z2", "EvaluateTargetHealth": True}
RECORDS: dict[str, dict[str, Any]] = {
    "eu": {"Name": "\\052.example.com.", "Type": "A", "SetIdentifier": "eu", "Weight": 1, "AliasTarget": ALIAS},
    "us": {"Name": "\\052.example.com.", "Type": "A", "SetIdentifier": "us", "Weight": 0, "AliasTarget": ALIAS},
}


def test_a_batch_deletes_what_was_read_and_creates_it_with_its_new_weight_only() -> None:
    batch = batch_of("lb", RECORDS, {"eu": 0, "us": 0})
    assert batch == [
        {"Action": "DELETE", "ResourceRecordSet": RECORDS["eu"]},
        {"Action": "CREATE", "ResourceRecordSet": {**RECORDS["eu"], "Weight": 0}},
    ]


class Answers:
    """An account that has these records; implements Aws."""

    async def call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        assert (operation, parameters["HostedZoneId"]) == ("list_resource_record_sets", "Z1")
        others = [{"Name": "z.example.com.", "Type": "A", "SetIdentifier": "eu", "Weight": 9}]
        return {"ResourceRecordSets": [*RECORDS.values(), *others]}


async def test_names_are_compared_as_route_53_writes_them() -> None:
    settings = Settings.model_validate({"kind": "Route53", "hostedZone": "Z1", "record": "*.Example.com", "type": "A"})
    assert (await Route53("lb", settings, Answers()).read()).by_name == {"eu": 1, "us": 0}

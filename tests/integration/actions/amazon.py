"""Weighted records and target groups on moto, and what moto does not look at: whether a deleted record is so still."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from reactor.clients.aws import Boto, connect
from reactor.clients.kubernetes_port import Invalid

REGION = "us-east-1"
RECORD = "shop.example.com"


_DEFINITIONS: dict[str, Any] = {}
"""Definitions of services that botocore has read, by file."""


def keep_definitions(environment: pytest.MonkeyPatch) -> None:
    """Let botocore read the definition of each service once in a process: moto makes a new session for each test."""
    from botocore.loaders import JSONFileLoader

    read = JSONFileLoader.load_file

    def kept(loader: Any, file: str) -> Any:
        if file not in _DEFINITIONS:
            _DEFINITIONS[file] = read(loader, file)
        return _DEFINITIONS[file]

    environment.setattr(JSONFileLoader, "load_file", kept)


@contextmanager
def mocked() -> Iterator[None]:
    """Amazon by moto, and nothing of this machine's credentials."""
    moto = pytest.importorskip("moto", reason="moto is not installed")
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            environment.setenv(name, "testing")
        environment.delenv("AWS_PROFILE", raising=False)
        keep_definitions(environment)
        with moto.mock_aws():
            yield


def weighted(name: str, weight: int, address: str) -> dict[str, Any]:
    return {
        "Name": f"{RECORD}.", "Type": "A", "SetIdentifier": name, "Weight": weight, "TTL": 60,
        "ResourceRecords": [{"Value": address}],
    }  # fmt: skip


class Zone:
    """A hosted zone with a record of two weights; as Amazon does, it refuses to delete what is not so any more."""

    def __init__(self) -> None:
        self.boto: Boto = connect(REGION, "route53")
        self.raw = self.boto._client
        made = self.raw.create_hosted_zone(Name="example.com", CallerReference=str(threading.get_ident()))
        self.id: str = made["HostedZone"]["Id"].rpartition("/")[2]
        self.batches: list[list[dict[str, Any]]] = []
        self.put(weighted("here", 1, "192.0.2.1"), weighted("there", 0, "192.0.2.2"))

    def put(self, *records: Mapping[str, Any]) -> None:
        """Change records as a user of the console would."""
        changes = [{"Action": "UPSERT", "ResourceRecordSet": dict(one)} for one in records]
        self.raw.change_resource_record_sets(HostedZoneId=self.id, ChangeBatch={"Changes": changes})

    def records(self) -> list[dict[str, Any]]:
        found = self.raw.list_resource_record_sets(HostedZoneId=self.id)["ResourceRecordSets"]
        return sorted((one for one in found if one["Type"] == "A"), key=lambda one: one["SetIdentifier"])

    def forget(self) -> None:
        """Let moto forget its journal: it refuses to create again what was once created, deleted since or not."""
        from moto.route53.models import route53_backends

        for account in route53_backends.values():
            for backend in account.values():
                if self.id in backend.zones:
                    backend.zones[self.id].rr_changes.clear()
        self.put(*self.records())

    async def call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Implement Aws."""
        if operation == "change_resource_record_sets":
            changes = parameters["ChangeBatch"]["Changes"]
            standing = [json.dumps(one, sort_keys=True) for one in self.records()]
            for change in changes:
                record = change["ResourceRecordSet"]
                if change["Action"] == "DELETE" and json.dumps(record, sort_keys=True) not in standing:
                    text = "[Tried to delete resource record set, but the values provided do not match]"
                    raise Invalid(f"route53 {REGION}: {operation} was answered InvalidChangeBatch: {text}")
            self.batches.append(changes)
        return await self.boto.write(operation, **parameters)


class Balancer:
    """An Application Load Balancer whose rule forwards to the target groups here and there."""

    def __init__(self) -> None:
        self.boto: Boto = connect(REGION, "elbv2")
        self.raw = self.boto._client
        ec2: Any = connect(REGION)._client
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"{REGION}{zone}")
            for n, zone in enumerate("ab")
        ]
        made = self.raw.create_load_balancer(Name="shop", Subnets=[one["Subnet"]["SubnetId"] for one in subnets])
        arn = made["LoadBalancers"][0]["LoadBalancerArn"]
        self.groups = {name: self._group(name, vpc) for name in ("here", "there")}
        nothing = {"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}
        listener = self.raw.create_listener(
            LoadBalancerArn=arn, Protocol="HTTP", Port=80, DefaultActions=[nothing]
        )["Listeners"][0]["ListenerArn"]  # fmt: skip
        self.rule: str = self.raw.create_rule(
            ListenerArn=listener, Priority=1, Actions=[self.forward(here=1, there=0)],
            Conditions=[{"Field": "path-pattern", "Values": ["/*"]}],
        )["Rules"][0]["RuleArn"]  # fmt: skip
        self.writes = 0

    def _group(self, name: str, vpc: str) -> str:
        made = self.raw.create_target_group(Name=name, Protocol="HTTP", Port=80, VpcId=vpc, TargetType="ip")
        arn: str = made["TargetGroups"][0]["TargetGroupArn"]
        return arn

    def forward(self, **weights: int) -> dict[str, Any]:
        groups = [{"TargetGroupArn": self.groups[name], "Weight": weight} for name, weight in weights.items()]
        sticky = {"Enabled": True, "DurationSeconds": 600}
        return {
            "Type": "forward", "Order": 1,
            "ForwardConfig": {"TargetGroups": groups, "TargetGroupStickinessConfig": sticky},
        }  # fmt: skip

    def put(self, **weights: int) -> None:
        """Change the rule as a user of the console would."""
        self.raw.modify_rule(RuleArn=self.rule, Actions=[self.forward(**weights)])

    def actions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.raw.describe_rules(RuleArns=[self.rule])["Rules"][0]["Actions"]
        return found

    def weights(self) -> dict[str, int]:
        groups = self.actions()[0]["ForwardConfig"]["TargetGroups"]
        return {one["TargetGroupArn"].split("/")[1]: one["Weight"] for one in groups}

    async def call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Implement Aws."""
        self.writes += operation == "modify_rule"
        return await self.boto.write(operation, **parameters)

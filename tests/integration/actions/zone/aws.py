"""A VPC on moto: a zone that is to be isolated, one beside it, and a client that crashes on order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reactor.clients.aws import Boto
from tests.unit.actions.zone.builders import ZONE

REGION = "us-east-1"
BESIDE = "us-east-1b"


class Crash(BaseException):
    """The process ends here: nothing of ours catches it."""


@dataclass
class Crashing:
    """EC2 that crashes before or after the n-th of its writes (from 0); None: never."""

    api: Boto
    at: int | None = None
    after: bool = False
    writes: list[str] = field(default_factory=list)

    @property
    def region(self) -> str:
        return self.api.region

    async def read(self, operation: str, key: str, **parameters: Any) -> Sequence[Mapping[str, Any]]:
        return await self.api.read(operation, key, **parameters)

    async def write(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        number = len(self.writes)
        self.writes.append(operation)
        if number == self.at and not self.after:
            raise Crash(operation)
        answer = await self.api.write(operation, **parameters)
        if number == self.at:
            raise Crash(operation)
        return answer


class Vpc:
    """Three subnets in the zone behind two ACLs of their own, one subnet beside it; all of the cluster prod's."""

    def __init__(self, boto: Boto) -> None:
        self.boto = boto
        self.raw = self.boto._client
        self.id: str = self.raw.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [self._subnet(number, ZONE) for number in range(3)]
        self.beside = self._subnet(3, BESIDE)
        self.own = [self._acl() for _ in range(2)]
        for subnet, acl in zip([*self.subnets, self.beside], [*self.own, self.own[0], self.own[1]], strict=True):
            self.put(subnet, acl)

    def _subnet(self, number: int, zone: str) -> str:
        made = self.raw.create_subnet(VpcId=self.id, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone)
        subnet: str = made["Subnet"]["SubnetId"]
        self.raw.create_tags(Resources=[subnet], Tags=[{"Key": "kubernetes.io/cluster/prod", "Value": "shared"}])
        return subnet

    def _acl(self) -> str:
        acl: str = self.raw.create_network_acl(VpcId=self.id)["NetworkAcl"]["NetworkAclId"]
        self.raw.create_network_acl_entry(
            NetworkAclId=acl, RuleNumber=100, Protocol="-1", RuleAction="allow", Egress=False, CidrBlock="0.0.0.0/0"
        )
        return acl

    def acls(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.raw.describe_network_acls(Filters=[{"Name": "vpc-id", "Values": [self.id]}])[
            "NetworkAcls"
        ]
        return found

    def behind(self) -> dict[str, str]:
        """ACL of each subnet."""
        return {one["SubnetId"]: acl["NetworkAclId"] for acl in self.acls() for one in acl["Associations"]}

    def tags(self) -> dict[str, dict[str, str]]:
        found = self.raw.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [self.id]}])["Subnets"]
        return {one["SubnetId"]: {tag["Key"]: tag["Value"] for tag in one.get("Tags", [])} for one in found}

    def put(self, subnet: str, acl: str) -> None:
        """Let a subnet be behind an ACL, as a user of the console would."""
        associations = {
            one["SubnetId"]: one["NetworkAclAssociationId"] for a in self.acls() for one in a["Associations"]
        }
        self.raw.replace_network_acl_association(AssociationId=associations[subnet], NetworkAclId=acl)

    def picture(self) -> Any:
        """All that an isolation may change, in a form that two worlds can be compared by."""
        names = {acl: f"own-{number}" for number, acl in enumerate(self.own)}
        names |= {acl["NetworkAclId"]: "default" for acl in self.acls() if acl["IsDefault"]}
        order = [*self.subnets, self.beside]
        behind, tags = self.behind(), self.tags()
        placed = [names.get(behind[subnet], "deny") for subnet in order]
        noted = [tags[subnet].get("reactor/original-network-acl", "").rpartition("/")[2] for subnet in order]
        return placed, [names.get(acl, acl) for acl in noted], len(self.acls())

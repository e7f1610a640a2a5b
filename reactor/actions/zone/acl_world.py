"""The subnets and network ACLs of one VPC, as far as an isolation concerns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reactor.actions.zone.isolation_context import IsolationContext
from reactor.actions.zone.zone_marks import CLUSTER_TAG, ISOLATED, ORIGINAL_ACL
from reactor.clients.aws import Ec2


@dataclass(frozen=True, slots=True)
class Link:
    """A subnet and the ACL that it is behind."""

    subnet: str
    zone: str
    """The zone's code, in this account."""
    association: str
    """Id of the association of subnet and ACL; a new one with every swap."""
    acl: str
    saved: str
    """ACL that it had before the isolation, by our tag; empty: no tag."""


@dataclass(frozen=True, slots=True)
class AclWorld:
    """Subnets and network ACLs of a zone, as read from EC2."""

    subnets: tuple[Link, ...]
    """Subnets that the rule selects."""
    ours: tuple[Link, ...]
    """Subnets that we have touched: behind a deny ACL of ours, or with our tag, whatever the rule says by now."""
    deny: tuple[str, ...]
    """Our deny ACLs for this zone. More than one only where two processes made them in the same moment."""
    default: str
    """The VPC's default ACL."""
    acls: Mapping[str, Mapping[str, Any]]

    def allows(self, acl: str) -> bool:
        """True if an ACL has an entry that lets something pass."""
        return any(entry.get("RuleAction") == "allow" for entry in self.acls[acl].get("Entries") or [])

    def is_anothers(self, acl: str) -> bool:
        """True if an ACL is the deny ACL of another isolation."""
        return acl not in self.deny and any(tag["Key"] == ISOLATED for tag in self.acls[acl].get("Tags") or [])


async def look(ec2: Ec2, isolation: IsolationContext) -> AclWorld:
    """Read the VPC. Raises what EC2 raises."""
    network = isolation.settings.network
    vpc = {"Name": "vpc-id", "Values": [network.vpc_id]}
    zone = {"Name": "availability-zone-id", "Values": [isolation.action.zone_id]}
    subnets = await ec2.read("describe_subnets", "Subnets", Filters=[vpc, zone])
    acls = await ec2.read("describe_network_acls", "NetworkAcls", Filters=[vpc])
    associations = {one["SubnetId"]: one for acl in acls for one in acl.get("Associations") or []}
    links = {
        subnet["SubnetId"]: Link(
            subnet["SubnetId"], subnet["AvailabilityZone"], associations[subnet["SubnetId"]]["NetworkAclAssociationId"],
            associations[subnet["SubnetId"]]["NetworkAclId"], _saved(isolation, subnet),
        )
        for subnet in sorted(subnets, key=lambda one: str(one["SubnetId"]))
        if subnet["SubnetId"] in associations  # a subnet of this very moment is seen with the next call
    }  # fmt: skip
    meant = {subnet["SubnetId"] for subnet in subnets if _has(subnet, network.subnet_tags)}
    mine = {(tag["Key"], tag["Value"]) for tag in tags(isolation)}
    deny = tuple(
        sorted(
            str(acl["NetworkAclId"])
            for acl in acls
            if mine <= {(tag["Key"], tag["Value"]) for tag in acl.get("Tags") or []}
        )
    )
    return AclWorld(
        subnets=tuple(link for link in links.values() if link.subnet in meant),
        ours=tuple(link for link in links.values() if link.saved or link.acl in deny),
        deny=deny,
        default=next((str(acl["NetworkAclId"]) for acl in acls if acl.get("IsDefault")), ""),
        acls={str(acl["NetworkAclId"]): acl for acl in acls},
    )


def tags(isolation: IsolationContext) -> Sequence[Mapping[str, str]]:
    """Give the tags of the deny ACL, by which it is found again."""
    return [{"Key": ISOLATED, "Value": isolation.mark}, {"Key": CLUSTER_TAG, "Value": isolation.action.cluster}]


def note(isolation: IsolationContext, acl: str) -> str:
    """Give the value of a subnet's tag: whose isolation saved which ACL, for the VPC may be shared by clusters."""
    return f"{isolation.action.cluster}/{acl}"


def _saved(isolation: IsolationContext, subnet: Mapping[str, Any]) -> str:
    value = next((str(tag["Value"]) for tag in subnet.get("Tags") or [] if tag["Key"] == ORIGINAL_ACL), "")
    cluster, _, acl = value.rpartition("/")
    return acl if cluster == isolation.action.cluster else ""


def _has(subnet: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    has = {tag["Key"]: tag["Value"] for tag in subnet.get("Tags") or []}
    return all(key in has and value in ("", has[key]) for key, value in wanted.items())

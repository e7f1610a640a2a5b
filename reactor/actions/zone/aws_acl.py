"""AwsNetworkAcl: a zone's subnets are put behind a network ACL that denies all, and given their own back.

A network ACL is stateless, so open connections are cut too. The deny ACL has no entries of ours: what AWS puts into a
new one denies everything both ways. Each subnet's original is saved in a tag of that subnet before the swap; a swap
names the association that was read, and every swap makes a new one, so a swap on old news is refused by EC2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from reactor.actions.outcomes import Declined, NotAsAsked
from reactor.actions.zone.acl_world import AclWorld, Link, look, note, tags
from reactor.actions.zone.isolation_context import IsolationContext, StepResult
from reactor.actions.zone.zone_marks import ORIGINAL_ACL
from reactor.clients.aws import Ec2
from reactor.clients.kubernetes_port import Conflict, NotFound

TAG_VALUE_MAX = 256  # EC2; moto takes longer ones, so we check it ourselves
TOKEN_CHARACTERS = 64  # EC2's limit for a ClientToken


async def cut(isolation: IsolationContext) -> StepResult:
    """Put every subnet of the zone behind the deny ACL. Raises Declined, NotAsAsked and what EC2 raises."""
    ec2, world = await _to_cut(isolation)
    if others := sorted({link.acl for link in world.subnets if world.is_anothers(link.acl)}):
        # Its deny ACL must never be taken for an original: two isolations of one subnet cannot both be given back.
        raise Declined("AlreadyIsolated", f"{', '.join(others)} of another cluster's isolation is on these subnets")
    open_ = [link for link in world.subnets if link.acl not in world.deny]
    wrote = bool(open_)
    deny = world.deny[0] if world.deny or not open_ else await _create(ec2, isolation)
    for link in open_:
        await _save(ec2, isolation, link)
        await ec2.write("replace_network_acl_association", AssociationId=link.association, NetworkAclId=deny)
    return StepResult(wrote, (await verify(isolation)).detail)


async def verify(isolation: IsolationContext) -> StepResult:
    """Say that the zone's subnets are cut. Raises NotAsAsked where one is not, or something may pass, and Declined."""
    _, world = await _to_cut(isolation)
    if open_ := [link.subnet for link in world.subnets if link.acl not in world.deny]:
        raise NotAsAsked(f"not behind the deny ACL: {', '.join(open_)}")
    if leaky := [acl for acl in world.deny if world.allows(acl)]:
        raise NotAsAsked(f"{', '.join(leaky)} has entries that allow traffic, which we did not write")
    acls = ", ".join(world.deny)
    return StepResult(
        wrote=False, detail=f"{len(world.subnets)} subnets of {isolation.zone} are behind {acls or 'no ACL'}"
    )


async def restore(isolation: IsolationContext) -> StepResult:
    """Give every subnet its own ACL back, then delete ours. Raises what EC2 raises; repeating it is safe."""
    ec2, world = await _look(isolation)
    wrote = False
    words: list[str] = []
    for link in world.ours:
        if link.acl in world.deny:
            target = link.saved if link.saved in world.acls else world.default
            if not target:
                raise Declined("OriginalLost", f"{link.subnet}: its ACL is gone, and the VPC has no default ACL")
            if target != link.saved:
                words.append(f"{link.subnet}: its ACL {link.saved or '(not saved)'} is gone, it has the VPC's default")
            await ec2.write("replace_network_acl_association", AssociationId=link.association, NetworkAclId=target)
            wrote = True
        elif link.saved != link.acl:
            words.append(f"{link.subnet}: another writer gave it {link.acl} meanwhile, which stays")
        if link.saved:
            # With its value: a tag that says something else by now is not the one that we read.
            tag = {"Key": ORIGINAL_ACL, "Value": note(isolation, link.saved)}
            await ec2.write("delete_tags", Resources=[link.subnet], Tags=[tag])
            wrote = True
    for acl in world.deny:
        await _delete(ec2, acl)
        wrote = True
    return StepResult(wrote, "; ".join(words) or f"{len(world.ours)} subnets of {isolation.zone} given back")


async def _to_cut(isolation: IsolationContext) -> tuple[Ec2, AclWorld]:
    """Look at what is to be cut. Raises Declined where it is nothing, or not the zone that the rule means."""
    ec2, world = await _look(isolation)
    if not world.subnets:
        raise Declined("NoSubnets", f"no subnet of {_place(isolation)}: nothing would be cut; check network.subnetTags")
    if mixed := sorted({link.zone for link in world.subnets} - {isolation.zone}):
        raise Declined(
            "ZoneMismatch", f"the rule says that {isolation.action.zone_id} is {isolation.zone}; "
            f"in this account it is {', '.join(mixed)}: correct the rule's zones",
        )  # fmt: skip
    return ec2, world


async def _look(isolation: IsolationContext) -> tuple[Ec2, AclWorld]:
    network = isolation.settings.network
    if missing := [key for key, value in (("region", network.region), ("vpcId", network.vpc_id)) if not value]:
        raise Declined("SettingMissing", f"AwsNetworkAcl needs network.{' and network.'.join(missing)}")
    if not isolation.action.zone_id:
        raise Declined(
            "ZoneIdMissing", f"AwsNetworkAcl needs the zone's id: give {isolation.zone} one in the rule's zones"
        )
    ec2 = await isolation.world.ec2(network.region)
    return ec2, await look(ec2, isolation)


async def _create(ec2: Ec2, isolation: IsolationContext) -> str:
    """Make the deny ACL, tagged from its first moment: one that could not be found again would stay without end.

    A repeat whose predecessor's answer was lost finds the same one by the token, even before a search finds its tags.
    """
    token = hashlib.sha256(isolation.action.id.encode()).hexdigest()[:TOKEN_CHARACTERS]
    specification = {"ResourceType": "network-acl", "Tags": _checked(tags(isolation))}
    answer = await ec2.write(
        "create_network_acl", VpcId=isolation.settings.network.vpc_id, ClientToken=token,
        TagSpecifications=[specification],
    )  # fmt: skip
    return str(answer["NetworkAcl"]["NetworkAclId"])


async def _save(ec2: Ec2, isolation: IsolationContext, link: Link) -> None:
    """Write down which ACL the subnet has. An older note is not true any more: it was changed since."""
    if link.saved != link.acl:
        tag = {"Key": ORIGINAL_ACL, "Value": note(isolation, link.acl)}
        await ec2.write("create_tags", Resources=[link.subnet], Tags=_checked([tag]))


def _checked(wanted: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    for tag in wanted:
        if len(tag["Value"]) > TAG_VALUE_MAX:
            raise Declined(
                "Invalid", f"tag {tag['Key']}: EC2 takes {TAG_VALUE_MAX} characters, not {len(tag['Value'])}"
            )
    return [*wanted]


async def _delete(ec2: Ec2, acl: str) -> None:
    """Delete an ACL that nothing is associated with. Raises Conflict where something is."""
    found: Sequence[Mapping[str, Any]]
    try:
        found = await ec2.read("describe_network_acls", "NetworkAcls", NetworkAclIds=[acl])
    except NotFound:
        return
    if still := [one["SubnetId"] for one in found[0].get("Associations") or []]:
        raise Conflict(f"{acl} still has {', '.join(still)}, so it is not deleted")
    await ec2.write("delete_network_acl", NetworkAclId=acl)


def _place(isolation: IsolationContext) -> str:
    network = isolation.settings.network
    only = f" with tags {dict(network.subnet_tags)}" if network.subnet_tags else ""
    return f"{isolation.action.zone_id} in {network.vpc_id}{only}"

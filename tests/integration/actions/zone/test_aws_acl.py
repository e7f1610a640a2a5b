"""Network ACLs on moto: a crash anywhere loses no original, and nothing but the zone is cut."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactor.actions.outcomes import Declined, NotAsAsked
from reactor.actions.zone import aws_acl
from reactor.actions.zone.isolation_context import IsolationContext, StepResult, ZoneWorld
from reactor.actions.zone.step_settings import StepSettings
from reactor.clients.aws import Ec2
from reactor.runtime.clock import Clock
from tests.integration.actions.zone.aws import Crash, Crashing, Vpc
from tests.unit.actions.zone.builders import zone_step

CUT = (["deny", "deny", "deny", "own-1"], ["own-0", "own-1", "own-0", ""], 4)
OPEN = (["own-0", "own-1", "own-0", "own-1"], ["", "", "", ""], 3)
WRITES = 7
"""Of either way: create or delete one ACL, and two for each of three subnets."""


async def _nowhere(name: str) -> Any:
    raise AssertionError(name)


def isolation(vpc: Vpc, ec2: Ec2 | None = None, *, undo: bool = False, **network: Any) -> IsolationContext:
    async def connected(region: str) -> Ec2:
        assert region == "us-east-1"
        return ec2 or vpc.boto

    more = {name: network.pop(name) for name in ("zone", "zone_id", "cluster") if name in network}
    said = {"network": {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id, **network}}
    step = zone_step("CutNetwork", undo=undo, settings=said, **more)
    return IsolationContext(step, StepSettings.model_validate(said), Clock(), ZoneWorld(_nowhere, connected))


async def crashing(
    vpc: Vpc, run: Callable[[IsolationContext], Awaitable[StepResult]], *, undo: bool, at: int, after: bool
) -> None:
    with pytest.raises(Crash):
        await run(isolation(vpc, Crashing(vpc.boto, at, after), undo=undo))


async def test_the_zones_subnets_are_cut_and_given_back(vpc: Vpc) -> None:
    assert vpc.picture() == OPEN
    done = await aws_acl.cut(isolation(vpc))
    assert (done.wrote, vpc.picture()) == (True, CUT)
    assert "3 subnets of us-east-1a are behind acl-" in done.detail
    assert (await aws_acl.cut(isolation(vpc))).wrote is False
    assert (await aws_acl.restore(isolation(vpc, undo=True))).wrote is True
    assert vpc.picture() == OPEN
    assert (await aws_acl.restore(isolation(vpc, undo=True))).wrote is False


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(WRITES))
async def test_a_crash_in_the_failover_changes_neither_end(vpc: Vpc, at: int, after: bool) -> None:
    await crashing(vpc, aws_acl.cut, undo=False, at=at, after=after)
    await aws_acl.cut(isolation(vpc))
    placed, noted, acls = vpc.picture()
    # moto ignores the ClientToken, and finds a new ACL at once by its tags: so there is never a second one.
    assert (placed, noted, acls) == CUT
    await aws_acl.restore(isolation(vpc, undo=True))
    assert vpc.picture() == OPEN


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(WRITES))
async def test_a_crash_in_the_failback_changes_neither_end(vpc: Vpc, at: int, after: bool) -> None:
    await aws_acl.cut(isolation(vpc))
    await crashing(vpc, aws_acl.restore, undo=True, at=at, after=after)
    await aws_acl.restore(isolation(vpc, undo=True))
    assert vpc.picture() == OPEN


@pytest.mark.parametrize("at", range(WRITES))
async def test_an_abort_in_the_middle_gives_everything_back(vpc: Vpc, at: int) -> None:
    await crashing(vpc, aws_acl.cut, undo=False, at=at, after=True)
    await aws_acl.restore(isolation(vpc, undo=True))
    assert vpc.picture() == OPEN


@pytest.mark.parametrize("at", range(WRITES))
async def test_a_failback_that_crashed_can_become_a_failover_again(vpc: Vpc, at: int) -> None:
    await aws_acl.cut(isolation(vpc))
    await crashing(vpc, aws_acl.restore, undo=True, at=at, after=True)
    await aws_acl.cut(isolation(vpc))
    assert vpc.picture() == CUT


async def test_these_are_all_the_writes_there_are(vpc: Vpc) -> None:
    there, back = Crashing(vpc.boto), Crashing(vpc.boto)
    await aws_acl.cut(isolation(vpc, there))
    await aws_acl.restore(isolation(vpc, back, undo=True))
    assert (len(there.writes), len(back.writes)) == (WRITES, WRITES)
    assert there.writes[:3] == ["create_network_acl", "create_tags", "replace_network_acl_association"]
    assert back.writes[-1] == "delete_network_acl"


async def test_what_another_writer_changed_meanwhile_stays(vpc: Vpc) -> None:
    await aws_acl.cut(isolation(vpc))
    vpc.put(vpc.subnets[0], vpc.own[1])
    with pytest.raises(NotAsAsked, match=vpc.subnets[0]):
        await aws_acl.verify(isolation(vpc))
    done = await aws_acl.restore(isolation(vpc, undo=True))
    assert "which stays" in done.detail
    assert vpc.picture() == (["own-1", "own-1", "own-0", "own-1"], ["", "", "", ""], 3)


async def test_a_change_before_the_repeat_is_the_new_original(vpc: Vpc) -> None:
    await aws_acl.cut(isolation(vpc))
    vpc.put(vpc.subnets[0], vpc.own[1])
    await aws_acl.cut(isolation(vpc))
    assert vpc.picture()[:2] == (["deny", "deny", "deny", "own-1"], ["own-1", "own-1", "own-0", ""])


async def test_an_original_that_is_gone_gives_the_default_and_says_so(vpc: Vpc) -> None:
    await aws_acl.cut(isolation(vpc))
    vpc.put(vpc.beside, next(acl["NetworkAclId"] for acl in vpc.acls() if acl["IsDefault"]))
    vpc.raw.delete_network_acl(NetworkAclId=vpc.own[1])
    done = await aws_acl.restore(isolation(vpc, undo=True))
    assert f"{vpc.subnets[1]}: its ACL {vpc.own[1]} is gone, it has the VPC's default" in done.detail
    assert vpc.picture() == (["own-0", "default", "own-0", "default"], ["", "", "", ""], 2)


async def test_a_deny_acl_that_another_writer_opened_is_no_isolation(vpc: Vpc) -> None:
    await aws_acl.cut(isolation(vpc))
    deny = vpc.behind()[vpc.subnets[0]]
    vpc.raw.create_network_acl_entry(
        NetworkAclId=deny, RuleNumber=1, Protocol="-1", RuleAction="allow", Egress=True, CidrBlock="10.0.0.0/8"
    )
    with pytest.raises(NotAsAsked, match="entries that allow"):
        await aws_acl.verify(isolation(vpc))


async def test_only_subnets_with_the_rules_tags_are_cut(vpc: Vpc) -> None:
    tag = {"Key": "tier", "Value": "nodes"}
    vpc.raw.create_tags(Resources=[vpc.subnets[1]], Tags=[tag])
    await aws_acl.cut(isolation(vpc, subnetTags={"tier": "nodes", "kubernetes.io/cluster/prod": ""}))
    assert vpc.picture()[0] == ["own-0", "deny", "own-0", "own-1"]


async def test_two_clusters_of_one_vpc_never_take_each_others_acl_for_an_original(vpc: Vpc) -> None:
    await aws_acl.cut(isolation(vpc))
    with pytest.raises(Declined, match="another cluster") as refused:
        await aws_acl.cut(isolation(vpc, cluster="stage"))
    assert refused.value.reason == "AlreadyIsolated"
    await aws_acl.restore(isolation(vpc, cluster="stage", undo=True))
    assert vpc.picture() == CUT


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"vpcId": ""}, "SettingMissing"),
        ({"zone_id": ""}, "ZoneIdMissing"),
        ({"zone_id": "use1-az1"}, "ZoneMismatch"),
        ({"zone_id": "euc1-az1"}, "NoSubnets"),
        ({"subnetTags": {"tier": "moon"}}, "NoSubnets"),
        ({"cluster": "x" * 250}, "Invalid"),
    ],
)
async def test_what_does_not_fit_touches_nothing(vpc: Vpc, wrong: dict[str, Any], reason: str) -> None:
    ec2 = Crashing(vpc.boto)
    with pytest.raises(Declined) as refused:
        await aws_acl.cut(isolation(vpc, ec2, **wrong))
    assert refused.value.reason == reason
    assert vpc.picture()[:2] == OPEN[:2]

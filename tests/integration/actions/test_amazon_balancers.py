"""SetWeights on Route 53's weighted records and on an Application Load Balancer's target groups, on moto."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bus.messages import LoadBalancerKind
from reactor.actions.execution import ExecutionContext
from reactor.actions.traffic.balancer_weights import carry_out
from reactor.clients.balancers.balancer_port import LoadBalancer
from reactor.clients.balancers.route53 import Route53
from reactor.clients.balancers.target_groups import TargetGroups
from reactor.runtime.clock import Clock
from reactor.settings.balancer_settings import Route53Settings as Route53Settings
from reactor.settings.balancer_settings import TargetGroupsSettings as TargetGroupsSettings
from tests.integration.actions.amazon import RECORD, Balancer, Zone, mocked, weighted
from tests.integration.actions.balancing import Crash, Meddled, once, set_weights

HOME, AWAY = {"here": 1, "there": 0}, {"here": 0, "there": 1}
GONE = "arn:aws:elasticloadbalancing:us-east-1:123456789012:listener-rule/app/shop/1/2/3"


@pytest.fixture
def zone() -> Iterator[Zone]:
    with mocked():
        yield Zone()


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    with mocked():
        yield Balancer()


def route53(zone: Zone, record: str = RECORD) -> Route53:
    settings = {"kind": "Route53", "hostedZone": zone.id, "record": record, "type": "A"}
    return Route53("edge", Route53Settings.model_validate(settings), zone)


def target_groups(balancer: Balancer, rule: str = "") -> TargetGroups:
    settings = {"kind": "TargetGroups", "ruleArn": rule or balancer.rule}
    return TargetGroups("edge", TargetGroupsSettings.model_validate(settings), balancer)


async def acted(
    own: LoadBalancer, weights: dict[str, int], kind: LoadBalancerKind
) -> tuple[str, str | None, bool, str]:
    found = await carry_out(own, set_weights(weights, kind), Clock(), ExecutionContext())
    return found.status, found.reason, found.wrote, found.detail


# --- Route 53 ------------------------------------------------------------------------------------------------------


async def test_records_move_in_one_batch_and_keep_all_else(zone: Zone) -> None:
    assert await acted(route53(zone), AWAY, "Route53") == ("Done", None, True, "here 1→0, there 0→1")
    assert zone.records() == [weighted("here", 0, "192.0.2.1"), weighted("there", 1, "192.0.2.2")]
    (batch,) = zone.batches
    assert [(one["Action"], one["ResourceRecordSet"]["Weight"]) for one in batch] == [
        ("DELETE", 1), ("CREATE", 0), ("DELETE", 0), ("CREATE", 1),
    ]  # fmt: skip
    assert await acted(route53(zone), AWAY, "Route53") == ("Done", None, False, "")


async def test_a_record_that_another_writer_has_changed_since_is_not_overwritten_unread(zone: Zone) -> None:
    async def other_writer() -> None:
        zone.put(weighted("here", 1, "192.0.2.99"))

    meddled = Meddled(route53(zone), before_write=once(other_writer))
    outcome = await acted(meddled, AWAY, "Route53")
    assert outcome[:3] == ("Done", None, True)
    assert len(meddled.writes) == 2
    assert len(zone.batches) == 1
    assert zone.records() == [weighted("here", 0, "192.0.2.99"), weighted("there", 1, "192.0.2.2")]


@pytest.mark.parametrize(("record", "reason"), [("other.example.com", "RouteNotFound")])
async def test_a_name_without_records_is_said_to_have_none(zone: Zone, record: str, reason: str) -> None:
    status, found, _, detail = await acted(route53(zone, record), AWAY, "Route53")
    assert (status, found) == ("Failed", reason)
    assert "has no records" in detail


async def test_records_of_another_kind_are_not_touched(zone: Zone) -> None:
    latency = {key: value for key, value in weighted("here", 1, "192.0.2.9").items() if key != "Weight"}
    zone.put({**latency, "Name": "slow.example.com.", "Region": "eu-central-1"})
    status, reason, _, detail = await acted(route53(zone, "slow.example.com"), AWAY, "Route53")
    assert (status, reason) == ("Failed", "Invalid")
    assert "is not a weighted one" in detail


async def test_a_hosted_zone_that_is_not_there(zone: Zone) -> None:
    zone.id = "ZNOWHERE"
    status, reason, _, _ = await acted(route53(zone), AWAY, "Route53")
    assert (status, reason) == ("Failed", "RouteNotFound")


# --- target groups -------------------------------------------------------------------------------------------------


async def test_target_groups_move_and_the_rest_of_the_rule_stays(balancer: Balancer) -> None:
    before = balancer.actions()
    assert await acted(target_groups(balancer), AWAY, "TargetGroups") == ("Done", None, True, "here 1→0, there 0→1")
    assert balancer.weights() == AWAY
    after = balancer.actions()
    for groups in (before, after):
        del groups[0]["ForwardConfig"]["TargetGroups"]
    assert after == before
    assert await acted(target_groups(balancer), AWAY, "TargetGroups") == ("Done", None, False, "")
    assert balancer.writes == 1


async def test_another_writer_is_overwritten_once_and_told_of(balancer: Balancer) -> None:
    async def other_writer() -> None:
        balancer.put(here=7, there=3)

    meddled = Meddled(target_groups(balancer), after_write=once(other_writer))
    status, _, _, detail = await acted(meddled, AWAY, "TargetGroups")
    assert status == "Done"
    assert "another writer had made it here=7, there=3, and was overwritten once" in detail
    assert (len(meddled.writes), balancer.weights()) == (2, AWAY)

    stubborn = Meddled(target_groups(balancer), after_write=other_writer)
    assert (await acted(stubborn, HOME, "TargetGroups"))[:2] == ("Failed", "NotAsAsked")
    assert len(stubborn.writes) == 2


async def test_a_rule_that_is_not_there_or_forwards_to_one(balancer: Balancer) -> None:
    assert (await acted(target_groups(balancer, GONE), AWAY, "TargetGroups"))[:2] == ("Failed", "RouteNotFound")
    one = {"Type": "forward", "TargetGroupArn": balancer.groups["here"], "Order": 1}
    balancer.raw.modify_rule(RuleArn=balancer.rule, Actions=[one])
    status, reason, _, detail = await acted(target_groups(balancer), AWAY, "TargetGroups")
    assert (status, reason) == ("Failed", "Invalid")
    assert "needs two or more" in detail


# --- both ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Route53", "TargetGroups"])
@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_at_the_write_leaves_it_to_the_next_to_end_what_was_begun(
    kind: LoadBalancerKind, *, after: bool
) -> None:
    with mocked():
        own = route53(Zone()) if kind == "Route53" else target_groups(Balancer())
        crashing = Meddled(own, None if after else 0, 0 if after else None)
        with pytest.raises(Crash):
            await acted(crashing, AWAY, kind)
        next_one = Meddled(own)
        status, _, wrote, _ = await acted(next_one, AWAY, kind)
        assert (status, wrote, len(next_one.writes)) == ("Done", not after, int(not after))
        assert (await own.read()).by_name == AWAY


@pytest.mark.parametrize(("kind", "most"), [("Route53", 255), ("TargetGroups", 999)])
async def test_weights_that_it_does_not_take_are_not_sent(kind: LoadBalancerKind, most: int) -> None:
    with mocked():
        own = route53(Zone()) if kind == "Route53" else target_groups(Balancer())
        assert (await acted(own, {"here": 0, "there": most}, kind))[:2] == ("Done", None)
        status, reason, wrote, detail = await acted(own, {"here": 0, "there": most + 1}, kind)
        assert (status, reason, wrote) == ("Failed", "Invalid", False)
        assert f"0 to {most}" in detail
        assert (await own.read()).by_name == {"here": 0, "there": most}

"""Carriers read all that the rule's kind writes about a step."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from reactor.actions.zone import carrier as carry
from reactor.actions.zone import gardener
from reactor.actions.zone.step_settings import StepSettings
from rules.kinds.zone.model import StepName, ZoneIsolation
from rules.kinds.zone.plan import settings_for

RULE: dict[str, Any] = {
    "name": "prod-zones", "kind": "ZoneIsolation", "carrier": "Gardener",
    "shoot": {"cluster": "garden", "namespace": "garden-x", "name": "prod"},
    "seed": {"cluster": "seed", "namespace": "shoot--x--prod"},
    "zones": [
        {"name": "eu-central-1a", "id": "euc1-az1", "targets": ["service/prod/shop/checkout-a"]},
        {"name": "eu-central-1b", "id": "euc1-az2"},
    ],
    "network": {
        "provider": "AwsNetworkAcl", "region": "eu-central-1", "vpcId": "vpc-0123456789abcdef0",
        "subnetTags": {"kubernetes.io/role/internal-elb": ""},
    },
    "drainSeconds": 7, "maxParallelEvictions": 3, "force": "AfterTimeout", "stepTimeoutSeconds": {"Evacuate": 77},
    "failback": {"batches": {"first": 2, "percent": 50, "bakeSeconds": 9}},
    "healthyShare": 0.6, "verify": {"prometheus": "main", "query": "up == 1"},
}  # fmt: skip


def said(step: StepName) -> StepSettings:
    rule = TypeAdapter(ZoneIsolation).validate_json(json.dumps(RULE))
    told = settings_for(rule, "eu-central-1a", step, mode="degraded", steps=[*StepName])
    return StepSettings.model_validate(json.loads(json.dumps(told)))


def test_each_step_is_told_what_it_needs() -> None:
    assert said(StepName.FENCE).batches.model_dump() == {"first": 2, "percent": 50, "bake_seconds": 9}
    shift = said(StepName.SHIFT_TRAFFIC)
    assert (shift.targets, shift.drain_seconds) == (("service/prod/shop/checkout-a",), 7)
    evacuate = said(StepName.EVACUATE)
    assert (evacuate.max_parallel, evacuate.force, evacuate.timeout_seconds) == (3, "AfterTimeout", 77)
    verify = said(StepName.VERIFY)
    assert verify.healthy_share == 0.6
    assert (verify.prometheus, verify.query, verify.steps) == ("main", "up == 1", tuple(StepName))


@pytest.mark.parametrize("step", [StepName.EVACUATE, StepName.CUT_NETWORK, StepName.VERIFY])
def test_all_receivers_are_told_of_the_network(step: StepName) -> None:
    network = said(step).network
    assert (network.provider, network.region, network.vpc_id) == (
        "AwsNetworkAcl",
        "eu-central-1",
        "vpc-0123456789abcdef0",
    )
    assert network.subnet_tags == {"kubernetes.io/role/internal-elb": ""}


@pytest.mark.parametrize("step", [*StepName])
def test_gardeners_places_go_along_with_every_step(step: StepName) -> None:
    settings = said(step)
    assert settings.shoot is not None
    assert settings.seed is not None
    assert (settings.shoot.cluster, settings.shoot.namespace, settings.shoot.name) == ("garden", "garden-x", "prod")
    assert (settings.seed.cluster, settings.seed.namespace) == ("seed", "shoot--x--prod")


def test_both_carriers_know_every_step_both_ways() -> None:
    ways = {(str(step), undo) for step in StepName for undo in (False, True)}
    assert set(carry.STEPS) == set(gardener.STEPS) == ways

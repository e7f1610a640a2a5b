"""Inputs of a rule test and messages of the bus have the same keys, but for those that no person writes."""

from __future__ import annotations

from collections.abc import Set

import pytest

from bus.messages import Cluster, MarkedNodes, Message, Route, Workload, ZoneInventory, Zones
from rules.rehearsal.rule_tests.given_workloads import ClusterGiven, WorkloadGiven
from rules.rehearsal.rule_tests.given_zones import MarkedGiven, ZoneGiven, ZonesGiven
from rules.rehearsal.rule_tests.model import RouteGiven
from rules.rulefile.fields import Model

OF_THE_WIRE = {"observed_at"}


@pytest.mark.parametrize(
    ("given", "message", "left_out"),
    [
        (RouteGiven, Route, {"problem"}),  # what an inventory could not read
        (ClusterGiven, Cluster, set()),
        (WorkloadGiven, Workload, {"states", "policy", "evicting"}),  # what Karmada says of it
        (ZonesGiven, Zones, set()),
        (ZoneGiven, ZoneInventory, set()),
        (MarkedGiven, MarkedNodes, set()),
    ],
)
def test_a_rule_test_has_each_key_of_a_message_but_those_that_are_named(
    given: type[Model], message: type[Message], left_out: Set[str]
) -> None:
    assert message.model_fields.keys() - given.model_fields.keys() - OF_THE_WIRE == left_out
    assert given.model_fields.keys() - message.model_fields.keys() == set()

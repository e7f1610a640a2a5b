"""A change of dates alone is no news: a group that has heard nothing else is stored later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bus.messages import Backend, Cluster, Fact, Health, Route, Workload, WorkloadCopy, ZoneInventory, Zones
from rules import loader
from rules.core.group import Group, Holding, NoState
from rules.core.kind import whole_state
from rules.core.member import Member, Signal, Window
from rules.core.values import replace
from rules.engine.groups import GroupStore
from rules.engine.news import is_news
from rules.engine.routing import Routing

AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = AT + timedelta(seconds=30)


def _group(**changes: object) -> Group:
    member = Member(Health.HEALTHY, AT, True, AT, signals={"ready": Signal(Health.HEALTHY, AT, LATER)})
    return Group("rule", "object", NoState(), members={"a": replace(member, **changes)})


def test_a_word_that_is_said_again_is_no_news() -> None:
    again = _group(signals={"ready": Signal(Health.HEALTHY, LATER, LATER + timedelta(seconds=90), detail="2 ready")})
    assert not is_news(_group(), replace(again, position=7, next_deadline=LATER), whole_state)


@pytest.mark.parametrize(
    "group",
    [
        _group(status=Health.UNHEALTHY),
        _group(settled=False),
        _group(window=Window(healthy=False, since=AT)),
        _group(signals={"ready": Signal(Health.UNKNOWN, AT)}),
        _group(signals={}),
        replace(_group(), held=Holding("Paused", "", AT)),
        replace(_group(), generation=2),
        replace(_group(), members={}),
    ],
)
def test_whatever_else_changes_is_news(group: Group) -> None:
    assert is_news(_group(), group, whole_state)
    assert is_news(None, group, whole_state)


RULES = """
apiVersion: reactor/v1
rules:
- name: route
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  backends: [{service: checkout}, {service: checkout-west, target: service/west/shop/checkout}]
- name: workload
  kind: WorkloadFailover
  mode: Enforce
  carrier: Kubernetes
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: checkout}]
  placement: {clusterAffinity: {clusterNames: [m1, m2]}}
- name: zone
  kind: ZoneIsolation
  mode: Enforce
  cluster: east
  zones: [{name: a}, {name: b}]
  steps: [Fence, Verify]
"""
LISTED: tuple[Fact, ...] = (
    Route(
        cluster="east", kind="TrafficSplit", namespace="shop", name="checkout",
        backends=(Backend(service="checkout", weight=1), Backend(service="checkout-west", weight=0)), observed_at=AT,
    ),
    Workload(
        namespace="shop", kind="Deployment", name="checkout", replicas=2, clusters={"m1": 2}, observed_at=AT
    ),
    WorkloadCopy(namespace="shop", kind="Deployment", name="checkout", cluster="m1", replicas=2, observed_at=AT),
    Cluster(name="m1", observed_at=AT),
    Zones(cluster="east", zones={"a": ZoneInventory(nodes=3, healthy_nodes=3)}, observed_at=AT),
)  # fmt: skip


@pytest.mark.parametrize("fact", LISTED, ids=lambda fact: type(fact).__name__)
def test_inventory_that_says_the_same_again_is_no_news(fact: Fact) -> None:
    store = GroupStore(Routing(loader.load_rules([("rules.yaml", RULES)]).rules))
    assert any(decision.news for decision in store.apply([fact], AT, [1]))
    again = store.apply([fact.model_copy(update={"observed_at": LATER})], LATER, [2])
    assert again
    assert not any(decision.news for decision in again)

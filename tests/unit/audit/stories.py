"""Histories of each kind in which it acts rightly: sources look at all that an act rests on when its window is over."""

from __future__ import annotations

from rules.loader import RuleSet
from rules.rehearsal.simulation import at as moment
from tests.unit.rules.builders import Event, failover, healthy, route, rule_set, unhealthy
from tests.unit.rules.workload.builders import cluster, copy, placement, workload, workload_rule
from tests.unit.rules.zone.builders import ZONES, listed
from tests.unit.rules.zone.builders import seen as zone_seen

A, B = "service/east/shop/a", "service/east/shop/b"
M1, M2, M3 = (f"cluster/m{number}" for number in (1, 2, 3))
ON_M2, ON_M3 = (f"workload/m{number}/default/Deployment/nginx" for number in (2, 3))
ZONE = "zone/prod/a"
TAINT = {"key": "reactor/brownout", "effect": "NoExecute"}

ROUTE = rule_set(failover(tolerationSeconds=10, recoverySeconds=20))
ROUTE_STORY = [
    route({"a": 1, "b": 0}),
    *(healthy(name, at=0, since=moment(0), source="probe") for name in "ab"),
    unhealthy("a", at=5, since=moment(5), source="probe"), unhealthy("a", at=16, since=moment(5), source="probe"),
    healthy("b", at=16, since=moment(0), source="probe"),
    healthy("a", at=100, since=moment(100), source="probe"), healthy("a", at=121, since=moment(100), source="probe"),
]  # fmt: skip


def workload_rules(**keys: object) -> RuleSet:
    """Two copies on three clusters, whose failures are tolerated for 100 s; the old copy has 50 s of grace."""
    failovers = {
        "cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 50},
        "application": {"decisionConditions": {"tolerationSeconds": 100}},
    }
    return rule_set(workload_rule(placement=placement("m1", "m2", "m3", tolerate=100), failover=failovers) | keys)


WORKLOAD = workload_rules()


def look(name: str, status: str, at: float, since: float) -> Event:
    return cluster(name, status, at=at, signal="probe", source="probe", since=moment(since))


def copy_look(name: str, status: str, at: float, since: float) -> Event:
    return copy(name, status, at=at, signal="watch", source="watch", since=moment(since))


LISTED = [workload({"m1": 2, "m2": 2}, replicas=2), *(look(name, "Healthy", 0, 0) for name in ("m1", "m2", "m3"))]
WORKLOAD_STORY = [
    *LISTED, copy_look("m1", "Healthy", 0, 0), look("m2", "Unhealthy", 10, 10), look("m2", "Unhealthy", 111, 10),
    look("m3", "Healthy", 111, 0), copy_look("m3", "Healthy", 115, 115), copy_look("m1", "Healthy", 116, 0),
]  # fmt: skip

TAINTS = rule_set({
    "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*", "signals": ["probe"],
    "tolerationSeconds": 100, "recoverySeconds": 50, "taints": [TAINT],
})  # fmt: skip
TAINT_STORY = [
    look("m2", "Healthy", 0, 0), look("m2", "Unhealthy", 10, 10), look("m2", "Unhealthy", 111, 10),
    look("m2", "Healthy", 200, 200), look("m2", "Healthy", 251, 200),
]  # fmt: skip


def zone_look(zone: str, status: str, at: float, since: float) -> list[Event]:
    return [
        event
        for name in ("inside", "outside")
        for event in zone_seen(zone, status, at=at, signals=(name,), source=name, since=moment(since))
    ]


ZONE_RULE = {
    "name": "zones", "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "prod",
    "zones": [{"name": name, "id": f"id-{name}"} for name in ZONES], "tolerationSeconds": 10, "recoverySeconds": 20,
}  # fmt: skip
ZONES_RULES = rule_set(ZONE_RULE)
ZONE_LISTED = [*listed(), *(event for zone in ZONES for event in zone_look(zone, "Healthy", 0, 0))]
ZONE_STORY = [
    *ZONE_LISTED, *zone_look("a", "Unhealthy", 100, 100), *zone_look("a", "Unhealthy", 111, 100),
    *zone_look("a", "Healthy", 300, 300), *zone_look("a", "Healthy", 321, 300),
]  # fmt: skip

"""Rules of other projects, with the numbers that their code and tests give: what of them our guards do is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bus.messages import AcquireReply, AcquireRequest, Health, Mode, Observation
from rules.catalog import new_group
from rules.core.group import Group
from rules.engine.decide import decide
from rules.kinds.quorum.model import QuorumRule
from rules.kinds.quorum.state import QuorumState
from rules.limits.limiter import LimiterRule
from rules.limits.rates import PeerHealth, disrupted, rate, widespread
from rules.limits.state import LimiterState
from rules.rehearsal.simulation import at, second
from rules.rulefile.guards import Guards
from rules.rulefile.sources import Quorum
from tests.unit.rules.builders import healthy, notification, paused, rule_set, step, unhealthy
from tests.unit.rules.guards.world import World, down, home, up, webs

Case = Mapping[str, Any]
CASES: list[Case] = json.loads((Path(__file__).parents[3] / "data" / "guards.json").read_text("utf-8"))["cases"]

NOT_OURS = {
    "capi.mhc.unhealthy_range": "a range of bad machines has no reason of its own: maxUnhealthy is its upper end",
    "nhc.storm": "a rule holds while too many are bad; there is no second cooldown after that",
    "nhc.escalation": "a rule has one action; what follows from its failure is another rule's business",
    "envoy.eject": "a proxy's own ejection, per host and request; routes move by rules",
    "envoy.ejection_time": "as above",
    "envoy.panic": "as above; what to do with nobody ready is onAllDown",
    "mcm.overshoot_freeze": "counts the machines of a deployment, which no rule creates",
    "mcm.api_freeze": "a target that nobody can see is Unknown, and Unknown never acts",
    "mcm.drain_mode": "how nodes are drained is the carrier's of ZoneIsolation",
    "k8s.eviction": "what the API server answers is the carrier's business",
    "kured.alert_gate": "alerts that block are health of peers: a source and maxUnhealthy",
    "arc.expires_in": "ZoneIsolation's", "arc.precedence": "ZoneIsolation's", "arc.practice_start": "ZoneIsolation's",
    "arc.practice_outcome": "ZoneIsolation's", "arc.asg_capacity": "ZoneIsolation's", "dwd.meltdown": "ZoneIsolation's",
}  # fmt: skip
"""Rules of the table that no guard of ours is, with the reason."""


def cases(*rules: str) -> pytest.MarkDecorator:
    chosen = [case for case in CASES if case["rule"] in rules]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in chosen])


def guards(**keys: Any) -> Guards:
    return Guards.model_validate({key: value for key, value in keys.items() if value is not None}, strict=False)


def rounded(value: object, rounding: str) -> str | None:
    """A percentage names its rounding, a count has none."""
    return rounding if isinstance(value, str) else None


# --- how many are bad ----------------------------------------------------------------------------------------------


@cases("capi.mhc.max_unhealthy")
def test_max_unhealthy_is_cluster_apis_gate_when_rounded_down(case: Case) -> None:
    given = case["inputs"]
    limit = given["max_unhealthy"]
    gate = widespread(
        guards(maxUnhealthy=limit, rounding=rounded(limit, "Down")), PeerHealth(given["total"], given["unhealthy"])
    )
    assert (gate is None) is case["expect"]["allowed"]


@cases("nhc.gate")
def test_min_healthy_and_max_unhealthy_are_the_node_healthchecks_gates_when_rounded_up(case: Case) -> None:
    given = case["inputs"]
    least, most = given.get("min_healthy"), given.get("max_unhealthy")
    # A node that is bad but still inside its window is not healthy: peers count by their status.
    peers = PeerHealth(given["total"], given["total"] - given["healthy"])
    gate = widespread(guards(minHealthy=least, maxUnhealthy=most, rounding=rounded(least or most, "Up")), peers)
    assert (gate is None) is case["expect"]["allowed"]


@cases("capi.kcp.etcd_quorum_after_removal")
def test_a_quorum_source_at_half_rounded_up_says_whether_a_majority_is_left(case: Case) -> None:
    rest, bad = case["inputs"]["voting_members"] - 1, case["inputs"]["other_unhealthy_members"]
    source = Quorum(
        name="etcd", kind="Quorum", members="node/*/*", target="custom/etcd", unhealthy_at="50%", rounding="Up"
    )
    members = [
        Observation(target=f"node/prod/{number}", status=status, observed_at=at(0))
        for number, status in enumerate([Health.UNHEALTHY] * bad + [Health.HEALTHY] * (rest - bad))
    ]
    said = decide(
        QuorumRule(name="@quorum.etcd", source=source), Group("@quorum.etcd", "*", QuorumState()), members, at(0)
    ).emits
    healthy = [fact for fact in said if isinstance(fact, Observation) and fact.status is Health.HEALTHY]
    assert bool(healthy) is case["expect"]["allowed"]


# --- how fast ------------------------------------------------------------------------------------------------------


def zone(case: Case) -> tuple[Guards, PeerHealth]:
    given = case["inputs"]
    disruption = {
        "unhealthyAt": f"{given['unhealthy_zone_threshold'] * 100:g}%",
        "secondaryRatePerSecond": given["secondary_node_eviction_rate"],
        "largeSize": given["large_cluster_size_threshold"],
    }
    limits = guards(ratePerSecond=given["node_eviction_rate"], disruption=disruption)
    return limits, PeerHealth(given["ready"] + given["not_ready"], given["not_ready"])


@cases("k8s.zone")
def test_a_disruption_is_what_the_node_lifecycle_controller_sees(case: Case) -> None:
    limits, peers = zone(case)
    assert disrupted(limits, peers) == case["expect"]["state"]
    if case["expect"]["state"] == "FullDisruption" and case["inputs"]["other_zone_has_ready_node"]:
        # Kubernetes has many zones, and goes on at full speed where one is wholly dead. A guard's peers are all there
        # is: that none of them is good is what Kubernetes stops for.
        assert rate(limits, peers) == 0
    else:
        assert rate(limits, peers) == case["expect"]["nodes_per_second"]


def grants(limits: Guards, claims: int) -> list[float]:
    """The seconds in which so many claims, made at second 0, are granted one after the other."""
    rule = LimiterRule(name="@all", guards=limits, guarded=("w",))
    names, first = [f"{number:03}" for number in range(claims)], dict[str, float]()
    group, now = Group("@all", "*", LimiterState()), at(0)
    while len(first) < claims:
        # Groups say their claims again from time to time, else they are taken for dead.
        said = [AcquireRequest(guard="all", rule="w", object=name, generation=1, observed_at=now) for name in names]
        decision = decide(rule, group, said, now)
        for fact in decision.emits:
            if isinstance(fact, AcquireReply) and fact.granted:
                first.setdefault(fact.object, second(now))
        group = decision.group
        assert group.next_deadline is not None
        now = min(group.next_deadline, now + timedelta(seconds=100))
    return sorted(first.values())


@cases("k8s.taint_times")
def test_a_rate_lets_one_go_at_a_time(case: Case) -> None:
    given = case["inputs"]
    granted = grants(guards(ratePerSecond=given["nodes_per_second"]), given["nodes"])
    assert (granted[0], granted[-1]) == (case["expect"]["first_taint_s"], case["expect"]["last_taint_s"])


@cases("draino.schedule")
def test_a_low_rate_spaces_what_is_done(case: Case) -> None:
    given = case["inputs"]
    granted = grants(guards(ratePerSecond=1 / given["drain_buffer_s"]), given["nodes"])
    assert granted == case["expect"]["drain_starts_s"]


# --- how many at once ----------------------------------------------------------------------------------------------


def in_flight(most: int | None, before: int, more: int) -> int:
    """Number of `more` acquire requests that are granted while `before` others are in flight."""
    rule = LimiterRule(name="@all", guards=guards(maxConcurrent=most, ratePerSecond=None), guarded=("w",))
    group = Group("@all", "*", LimiterState())
    for moment, names in enumerate([[f"a{n}" for n in range(before)], [f"b{n}" for n in range(more)]]):
        claims = [
            AcquireRequest(guard="all", rule="w", object=name, generation=1, observed_at=at(moment)) for name in names
        ]
        group = decide(rule, group, claims, at(moment)).group
    granted = group.state.queue
    return sum(one.granted for one in granted if one.object.startswith("b"))


@cases("capi.machineset.max_in_flight")
def test_max_concurrent_leaves_as_many_as_are_not_in_flight(case: Case) -> None:
    given = case["inputs"]
    assert in_flight(given["max_in_flight"], given["in_flight"], given["unhealthy"]) == case["expect"]["start"]


@cases("mcm.mark_failed")
def test_one_replacement_at_a_time(case: Case) -> None:
    # The machine controller counts one that terminates twice; for one at a time, its default, that is the same.
    given = case["inputs"]
    busy = min(given["terminating"] + given["failed"] + given["pending"], given["max_replacements"])
    assert (in_flight(given["max_replacements"], busy, 1) == 1) is case["expect"]["allowed"]


@cases("nhc.control_plane")
def test_one_node_of_the_control_plane_at_a_time(case: Case) -> None:
    given = case["inputs"]
    assert not given["same_node"]
    assert (in_flight(1, given["control_plane_remediations_in_flight"], 1) == 1) is case["expect"]["allowed"]


# --- not now -------------------------------------------------------------------------------------------------------


@cases("nhc.pause")
def test_a_pause_stops_what_is_new_and_lets_go_on_what_is_in_flight(case: Case) -> None:
    bad = case["inputs"]["unhealthy"]
    first = list(range(case["inputs"]["in_flight"]))
    world = World(webs(bad), answers=lambda _action, now: [(now + 30, "Done")])
    world.play(*home(bad), *down(*first, at=10), paused(at=20), *down(*range(len(first), bad), at=25), until=60)
    assert (len(world.times) > len(first)) is case["expect"]["new_allowed"]
    moved = world.group("w0").state.route
    assert (moved is not None and dict(moved.backends) == {"a0": 0, "b0": 1}) is case["expect"]["in_flight_continues"]
    world.play(*up(*first, at=70), until=100)
    assert (len(world.times) > len(first)) is case["expect"]["cleanup_of_recovered_nodes"]


@cases("nhc.healthy_delay")
def test_healthy_again_counts_after_its_delay(case: Case) -> None:
    given = case["inputs"]
    rule = rule_set(notification(recoverySeconds=given["healthy_delay_s"])).rules[0]
    assert rule.mode is Mode.ENFORCE
    target = "service/east/shop/a"
    group = step(rule, new_group(rule, target), 0, unhealthy("a", at=0)).group
    group = step(rule, group, given["healthy_since_s"], healthy("a", at=given["healthy_since_s"])).group
    settled = step(rule, group, given["now_s"]).group.members[target].settled
    assert settled is case["expect"]["treated_healthy"]


OURS: Sequence[Callable[..., None]] = [
    value for name, value in list(globals().items()) if name.startswith("test_") and callable(value)
]


def test_every_rule_of_the_table_is_ours_or_has_a_reason_why_not() -> None:
    tested = {
        case.values[0]["rule"] for test in OURS for mark in getattr(test, "pytestmark", ()) for case in mark.args[1]
    }
    assert tested | set(NOT_OURS) == {case["rule"] for case in CASES}
    assert not tested & set(NOT_OURS)

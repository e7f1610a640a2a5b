"""Admission of an isolation: every public case, the order of the guards, and the limits that no person can force."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.core.reasons import Held
from rules.kinds.zone.admission import FORCEABLE, AdmissionResponse, admit, checks
from rules.kinds.zone.question import AdmissionLimits, AdmissionRequest, Nodes, expired_share

DATA = Path(__file__).parents[3] / "data"
CASES = json.loads((DATA / "zone_admission.json").read_text("utf-8"))["cases"]
GUARDS = json.loads((DATA / "guards.json").read_text("utf-8"))["cases"]


def request_of(given: dict[str, Any]) -> AdmissionRequest:
    return AdmissionRequest(
        zone=given["target"],
        zones={name: Nodes(zone["nodes"], zone["healthy_nodes"]) for name, zone in given["zones"].items()},
        isolated=tuple(given["isolated"]), in_progress=given["in_progress"],
        maintenance="an upgrade" if given["maintenance"] else "",
        since_last_ended=timedelta(seconds=given["last_done_age_s"]), paused=", ".join(given["paused"]),
        api_reachable=given["api_reachable"], expired_elsewhere=given["leases_expired_fraction_other_zones"],
        seconds_bad=given["seconds_since_signal_began"], sources_bad=tuple(given["signals"]),
        demand_nodes=given["demand_nodes"], quorum_members=given["quorum_members"],
        single_zone_services=tuple(given["services_single_zone"]),
    )  # fmt: skip


def told(answer: AdmissionResponse) -> dict[str, Any]:
    out: dict[str, Any] = {"admit": answer.admit}
    if answer.detail.endswith("is isolated already"):
        out["noop"] = True
    if answer.reason is not None:
        out["reason"] = answer.reason.value
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_request_gets_its_answer(case: dict[str, Any]) -> None:
    assert told(admit(request_of(case["inputs"]), AdmissionLimits())) == case["expect"]


FINE = request_of(CASES[0]["inputs"])
NO_ZONES: dict[str, Nodes] = {}
FAILING: dict[Held, dict[str, Any]] = {
    Held.PAUSED: {"paused": "paused by ann: upgrade"},
    Held.CONTROL_PLANE_UNREACHABLE: {"api_reachable": False},
    Held.ZONES_UNKNOWN: {"zones": NO_ZONES},
    Held.ZONE_NOT_FOUND: {"zone": "d"},
    Held.SINGLE_ZONE: {"zones": {"a": Nodes(5, 5), "b": Nodes(0, 0)}},
    Held.MAX_ISOLATED_ZONES: {"isolated": ("b",)},
    Held.ANOTHER_IN_PROGRESS: {"in_progress": "b"},
    Held.COOLDOWN: {"since_last_ended": timedelta(seconds=1799)},
    Held.WIDESPREAD_FAILURE: {"expired_elsewhere": 0.6},
    Held.TOLERATION_NOT_ELAPSED: {"seconds_bad": 299.0},
    Held.ONE_SOURCE_ONLY: {"sources_bad": ("prometheus",)},
    Held.SINGLE_ZONE_SERVICES: {"single_zone_services": ("shop/db",)},
    Held.QUORUM_AT_RISK: {"quorum_members": {"a": 2, "b": 1, "c": 1}},
    Held.REMAINING_ZONES_UNHEALTHY: {
        "zones": {"a": Nodes(5, 0), "b": Nodes(5, 5), "c": Nodes(5, 2)},
        "demand_nodes": 0,
    },
    Held.INSUFFICIENT_CAPACITY: {"demand_nodes": 11},
}
"""Change of a request that makes each guard refuse, in the order of the guards."""


@pytest.mark.parametrize("reason", FAILING)
def test_a_guard_alone_refuses_with_its_reason(reason: Held) -> None:
    answer = admit(replace(FINE, **FAILING[reason]), AdmissionLimits())
    assert (answer.admit, answer.reason) == (False, reason)
    assert answer.detail


def test_the_guards_are_in_the_order_of_the_contract() -> None:
    assert [check.reason for check in checks(FINE, AdmissionLimits())] == list(FAILING)


def test_of_several_that_fail_the_first_gives_the_reason() -> None:
    reasons = [
        reason for reason in FAILING if reason not in (Held.ZONES_UNKNOWN, Held.ZONE_NOT_FOUND, Held.SINGLE_ZONE)
    ]
    for index, first in enumerate(reasons):
        changes: dict[str, Any] = {}
        for reason in reversed(reasons[index:]):
            changes |= FAILING[reason]
        assert admit(replace(FINE, **changes), AdmissionLimits()).reason is first


@pytest.mark.parametrize("reason", FAILING)
def test_a_person_skips_the_toleration_and_the_second_source_only(reason: Held) -> None:
    answer = admit(replace(FINE, by_hand=True, **FAILING[reason]), AdmissionLimits())
    assert answer.admit is (reason in (Held.TOLERATION_NOT_ELAPSED, Held.ONE_SOURCE_ONLY))


@pytest.mark.parametrize("reason", FAILING)
def test_force_never_skips_what_would_leave_nothing_in_service_nor_a_blind_view(reason: Held) -> None:
    answer = admit(replace(FINE, by_hand=True, force=True, **FAILING[reason]), AdmissionLimits())
    assert answer.admit is (reason in {*FORCEABLE, Held.TOLERATION_NOT_ELAPSED, Held.ONE_SOURCE_ONLY})


def test_a_refusal_names_zones_services_and_numbers() -> None:
    services = admit(replace(FINE, single_zone_services=("shop/db", "shop/mq")), AdmissionLimits())
    assert services.detail == "all copies in one zone: shop/db, shop/mq"
    few = admit(replace(FINE, demand_nodes=11), AdmissionLimits())
    assert few.detail == "10 healthy nodes would be left in b, c; 11 needed"
    wide = admit(replace(FINE, expired_elsewhere=0.6), AdmissionLimits())
    assert wide.detail == "60% of leases elsewhere have expired"


@given(
    zones=st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1),
    members=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)), demand=st.integers(0, 20),
)  # fmt: skip
def test_what_is_admitted_leaves_a_zone_a_majority_and_enough_nodes(
    zones: dict[str, tuple[int, int]], members: dict[str, int], demand: int
) -> None:
    request = replace(
        FINE, zones={name: Nodes(max(pair), min(pair)) for name, pair in zones.items()}, quorum_members=members,
        demand_nodes=demand,
    )  # fmt: skip
    if not admit(request, AdmissionLimits()).admit:
        return
    others = [zone for name, zone in request.zones.items() if name != "a"]
    assert any(zone.nodes for zone in others)
    total, left = sum(members.values()), sum(count for name, count in members.items() if name != "a")
    assert left >= total // 2 + 1 or not total
    assert sum(zone.healthy for zone in others) >= demand
    assert 4 * sum(zone.healthy for zone in others) >= 3 * sum(zone.nodes for zone in others)


@pytest.mark.parametrize("case", [c for c in GUARDS if c["rule"] == "dwd.meltdown"], ids=lambda case: case["id"])
def test_leases_that_expire_everywhere_stop_the_automation(
    case: dict[str, Any],
) -> None:
    given = case["inputs"]
    request = replace(
        FINE, api_reachable=given["api_reachable"], expired_elsewhere=expired_share(given["leases"], given["expired"])
    )
    answer = admit(request, AdmissionLimits(expired_lease_fraction=given["fraction"]))
    stopped = answer.reason is Held.WIDESPREAD_FAILURE
    assert stopped == (case["expect"]["action"] == "scale_down")

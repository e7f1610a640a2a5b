"""A tier that is partly healthy keeps what it bears, and the rest spills to the next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Backend, FailbackTraffic, Health, Hold, Observation, ReleaseTraffic, Route, SetWeights
from rules.core.errors import InvalidFiles
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.traffic.tier_loads import loads
from rules.loader import load_rules
from rules.rehearsal.simulation import Emitted, play
from rules.rehearsal.simulation import at as at_

CASES = json.loads((Path(__file__).parents[2] / "data" / "traffic_overflow.json").read_text("utf-8"))["cases"]
RULE = """
apiVersion: reactor/v1
rules:
- name: web
  kind: TrafficFailover
  mode: Enforce
  route: {kind: TrafficSplit, cluster: east, namespace: shop, name: web}
  primary: a
  backends: [{service: a}, {service: b}, {service: c, tier: 2}]
  overflow: {overprovisioningFactor: 140}
  tolerationSeconds: 5
"""
Event = tuple[float, Any]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case["healthy_percent"])))
def test_tiers_share_the_load_as_envoys_priority_levels_do(case: dict[str, Any]) -> None:
    found = loads(case["healthy_percent"], round(100 * case["overprovisioning"]))
    assert found is not None
    assert sum(found) == 100
    for one, expected in zip(found, case["expect_percent"], strict=True):
        assert abs(one - expected) <= case["tolerance"], (found, case["expect_percent"])


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6), st.integers(100, 300))
def test_no_tier_gets_anything_before_those_before_it_bear_all_they_can(health: Sequence[float], factor: int) -> None:
    bears = [min(100, int(factor * percent // 100)) for percent in health]
    found = loads(health, factor)
    if found is None:
        assert not any(bears)
        return
    assert sum(found) == 100
    assert all(not load for load, most in zip(found, bears, strict=True) if not most)
    if sum(bears) >= 100:
        for number, load in enumerate(found):
            assert load == min(bears[number], 100 - sum(found[:number]))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6), st.integers(100, 300), st.integers(0, 100))
def test_the_first_tier_gets_no_more_than_it_may(health: Sequence[float], factor: int, most: int) -> None:
    freely, found = loads(health, factor), loads(health, factor, most)
    others_bear = any(int(factor * percent // 100) for percent in health[1:])
    if freely is None or (freely[0] > most and not others_bear):
        assert found is None
    else:
        assert found is not None
        assert sum(found) == 100
        assert found[0] == min(most, freely[0])


def seen(service: str, at: float, percent: float | None = None, status: str = "Healthy") -> list[Event]:
    fact = Observation(
        target=f"service/east/shop/{service}", status=Health(status), signal="readiness", observed_at=at_(at),
        healthy_percent=percent,
    )  # fmt: skip
    return [(at, fact)]


def route_now(at: float = 0, **weights: int) -> list[Event]:
    backends = tuple(Backend(service=name, weight=weight) for name, weight in weights.items())
    return [(at, Route(cluster="east", kind="TrafficSplit", namespace="shop", name="web", backends=backends,
                       observed_at=at_(at)))]  # fmt: skip


WELL = [*route_now(a=1, b=0, c=0), *seen("a", 0, 100), *seen("b", 0), *seen("c", 0)]


def said(*events: list[Event], text: str = RULE, until: float = 300) -> list[Emitted]:
    history = sorted((event for some in events for event in some), key=lambda event: event[0])
    return list(play(load_rules([("web.yaml", text)]).rules, history, until=until))


def writes(found: Sequence[Emitted]) -> list[tuple[float, tuple[int, ...], str]]:
    return [
        (one.at, tuple(one.what.weights.values()), one.what.because)
        for one in found
        if isinstance(one.what, SetWeights)
    ]


def test_what_the_primary_does_not_bear_spills_and_comes_back() -> None:
    found = said(
        WELL,
        seen("a", 20, 50),
        seen("a", 50, 0, "Unhealthy"),
        seen("b", 60, 60),
        seen("a", 80, 100),
        seen("b", 90, 100),
    )
    assert writes(found) == [
        (25, (70, 30, 0), "PrimaryUnhealthy"),
        (55, (0, 100, 0), "PrimaryUnhealthy"),
        (65, (0, 84, 16), "SecondariesChanged"),
        (85, (100, 0, 0), "PrimaryHealthy"),
    ]


def test_a_change_that_is_over_within_the_toleration_writes_nothing() -> None:
    assert writes(said(WELL, seen("a", 20, 50), seen("a", 24, 100), seen("a", 30, 40), seen("a", 34.9, 100))) == []


def test_a_change_of_less_than_five_points_writes_nothing() -> None:
    """1.4 × 68 = 95."""
    assert writes(said(WELL, seen("a", 20, 69))) == []
    assert writes(said(WELL, seen("a", 20, 67))) == [(25, (93, 7, 0), "PrimaryUnhealthy")]
    assert writes(said(WELL, seen("a", 20, 50), seen("a", 60, 52), seen("a", 70, 48))) == [
        (25, (70, 30, 0), "PrimaryUnhealthy")
    ]


def test_without_a_percent_the_status_says_all_or_nothing() -> None:
    found = said(WELL, seen("a", 20, None, "Unhealthy"), seen("a", 60))
    assert writes(found) == [(25, (0, 100, 0), "PrimaryUnhealthy"), (65, (100, 0, 0), "PrimaryHealthy")]


def test_more_for_the_primary_waits_for_its_recovery() -> None:
    text = RULE + "  recoverySeconds: 30\n"
    found = said(WELL, seen("a", 20, 50), seen("a", 60, 100), seen("a", 80, 50), seen("a", 81, 100), text=text)
    assert writes(found) == [(25, (70, 30, 0), "PrimaryUnhealthy"), (111, (100, 0, 0), "PrimaryHealthy")]


def test_where_none_bears_anything_on_all_down_says_what_is_written() -> None:
    down = [*seen("a", 20, 0, "Unhealthy"), *seen("b", 20, None, "Unhealthy"), *seen("c", 20, None, "Unhealthy")]
    assert writes(said(WELL, down)) == []
    spread = writes(said(WELL, down, text=RULE + "  onAllDown: Spread\n"))
    assert spread == [(25, (1, 1, 1), "AllDown")]


def test_another_writers_weights_are_put_right_though_the_tiers_are_partly_healthy() -> None:
    found = said(WELL, seen("a", 20, 50), route_now(40, a=70, b=30, c=0), route_now(60, a=10, b=90, c=0))
    assert writes(found) == [(25, (70, 30, 0), "PrimaryUnhealthy"), (60, (70, 30, 0), "Drift")]


def gone_silent(service: str, at: float, signal: str = "readiness") -> list[Event]:
    target = f"service/east/shop/{service}"
    return [(at, Observation(target=target, status=Health.UNKNOWN, signal=signal, observed_at=at_(at)))]


def test_a_primary_that_is_not_seen_any_more_gets_nothing_back() -> None:
    left = (25, (70, 30, 0), "PrimaryUnhealthy")
    assert writes(said(WELL, seen("a", 20, 50), gone_silent("a", 60))) == [left]
    stale = [(20.0, seen("a", 20, 50)[0][1].model_copy(update={"stale_seconds": 40}))]
    assert writes(said(WELL, stale)) == [left]


def test_one_signal_that_is_well_does_not_speak_for_another_that_was_bad_and_is_silent() -> None:
    probe = Observation(
        target="service/east/shop/a", status=Health.UNHEALTHY, signal="probe", observed_at=at_(20)
    )  # fmt: skip
    found = said(WELL, [(20, probe)], gone_silent("a", 60, signal="probe"), seen("a", 70, 100))
    assert writes(found) == [(25, (0, 100, 0), "PrimaryUnhealthy")]


def test_what_is_not_seen_now_does_not_begin_to_serve() -> None:
    assert writes(said(WELL, gone_silent("b", 10), seen("a", 20, 50))) == [(25, (70, 0, 30), "PrimaryUnhealthy")]


def test_what_one_signal_does_not_see_now_does_not_begin_to_serve_by_what_another_says() -> None:
    """The other one says that a fifth is healthy: enough to be better than nothing, for what serves already."""
    probe = Observation(
        target="service/east/shop/b", status=Health.UNHEALTHY, signal="probe", observed_at=at_(22), healthy_percent=20
    )  # fmt: skip
    away = (25, (0, 0, 100), "PrimaryUnhealthy")
    assert writes(said(WELL, gone_silent("b", 10), seen("a", 20, 0, "Unhealthy"), [(22, probe)])) == [away]


def test_members_of_a_tier_count_by_their_weight() -> None:
    text = RULE.replace("{service: b}, {service: c, tier: 2}", "{service: b, weight: 3}, {service: c, weight: 1}")
    bad = [*seen("a", 20, 0, "Unhealthy"), *seen("c", 20, 0)]
    assert writes(said(WELL, bad, text=text)) == [(25, (0, 100, 0), "PrimaryUnhealthy")]
    both = text.replace("overflow:", "distribution: Proportional\n  overflow:")
    assert writes(said(WELL, seen("a", 20, 0, "Unhealthy"), text=both)) == [(25, (0, 75, 25), "PrimaryUnhealthy")]


def test_a_restart_forgets_nothing_of_a_change_that_lasts() -> None:
    rules = load_rules([("web.yaml", RULE)]).rules
    first = GroupStore(Routing(rules))
    for at, fact in [*WELL, *seen("a", 20, 50)]:
        first.apply([fact], at_(at))
    second = GroupStore(Routing(rules), [load_group(dump_group(group)) for group in first.groups.values()])
    decisions = [*second.fire_due(at_(24.9)), *second.fire_due(at_(25))]
    assert [dict(action.weights) for one in decisions for action in one.actions] == [{"a": 70, "b": 30, "c": 0}]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("  steps: [{percent: 10, pauseSeconds: 60}]\n", "not together with steps"),
        ("  failback: {mode: Trial}\n", "not together with failback.mode Trial"),
    ],
)
def test_nothing_else_may_say_what_the_primary_gets(more: str, says: str) -> None:
    with pytest.raises(InvalidFiles, match=f"overflow: {says}"):
        load_rules([("web.yaml", RULE + more)])


MANUAL = RULE + "  failback: {mode: Manual}\n"


def by_hand(at: float, name: str, **keys: Any) -> list[Event]:
    fact = {"failbackTraffic": FailbackTraffic, "releaseTraffic": ReleaseTraffic}[name]
    return [(at, fact(rule="web", by="ann", reason="looked at it", observed_at=at_(at), **keys))]


def test_by_hand_alone_the_primary_gets_back_what_it_gave_away_not_even_a_part_of_it() -> None:
    found = said(WELL, seen("a", 20, 50), seen("a", 50, 65), seen("a", 80, 100), seen("b", 120, 50), text=MANUAL)
    assert writes(found) == [(25, (70, 30, 0), "PrimaryUnhealthy")]
    lower = said(WELL, seen("a", 20, 50), seen("a", 80, 100), seen("a", 120, 20), text=MANUAL)
    assert writes(lower)[1:] == [(125, (28, 72, 0), "PrimaryUnhealthy")], "away it still goes"


def test_what_the_others_do_not_bear_goes_on_to_the_next_and_not_back_to_the_primary() -> None:
    found = said(WELL, seen("a", 20, 30), seen("a", 80, 100), seen("b", 120, 10), seen("c", 160, 10), text=MANUAL)
    assert writes(found) == [
        (25, (42, 58, 0), "PrimaryUnhealthy"),
        (125, (42, 14, 44), "SecondariesChanged"),
        (165, (42, 29, 29), "SecondariesChanged"),
    ]


def test_where_no_other_bears_anything_that_is_said_and_the_primary_still_waits_for_a_person() -> None:
    dead = [*seen("b", 120, 0, "Unhealthy"), *seen("c", 120, 0, "Unhealthy")]
    found = said(WELL, seen("a", 20, 50), seen("a", 80, 100), dead, text=MANUAL)
    assert writes(found) == [(25, (70, 30, 0), "PrimaryUnhealthy")]
    assert [one.what.held for one in found if isinstance(one.what, Hold)] == ["NoHealthySecondary"]


def test_while_the_primary_has_nothing_the_others_go_on_sharing_by_what_they_bear() -> None:
    dead = [*seen("b", 200, 0, "Unhealthy"), *seen("c", 200, 0, "Unhealthy")]
    found = said(WELL, seen("a", 20, 0, "Unhealthy"), seen("b", 60, 50), seen("a", 100, 100), dead, text=MANUAL)
    assert writes(found) == [(25, (0, 100, 0), "PrimaryUnhealthy"), (65, (0, 70, 30), "SecondariesChanged")]
    assert [one.what.held for one in found if isinstance(one.what, Hold)] == ["NoHealthySecondary"]


def spoken(service: str, at: float, stale: float, percent: float = 100, status: str = "Healthy") -> list[Event]:
    [(_, fact)] = seen(service, at, percent, status)
    return [(at, fact.model_copy(update={"signal": "ratio", "stale_seconds": stale}))]


OWN = RULE + "  recoverySeconds: 10\n  failback: {signals: [readiness]}\n"


def test_a_primary_that_comes_back_by_signals_of_its_own_gets_what_it_bears_and_no_more() -> None:
    found = said(WELL, seen("a", 20, 0, "Unhealthy"), seen("b", 60, 50), seen("a", 100, 50), text=OWN)
    assert writes(found) == [
        (25, (0, 100, 0), "PrimaryUnhealthy"),
        (65, (0, 70, 30), "SecondariesChanged"),
        (110, (70, 30, 0), "PrimaryHealthy"),
    ]


def test_a_primary_whose_signals_of_the_way_back_are_bad_again_begins_again() -> None:
    again = [*seen("a", 100, 50), *seen("a", 105, 0, "Unhealthy"), *seen("a", 130, 100)]
    found = said(WELL, seen("a", 20, 0, "Unhealthy"), again, text=OWN)
    assert writes(found) == [(25, (0, 100, 0), "PrimaryUnhealthy"), (140, (100, 0, 0), "PrimaryHealthy")]


def test_a_signal_that_is_silent_without_traffic_does_not_keep_the_primary_away() -> None:
    text = RULE.replace("  tolerationSeconds", "  signals: [ratio]\n  tolerationSeconds")
    text += "  recoverySeconds: 10\n  failback: {signals: [readiness]}\n"
    ratio = [*spoken("a", 0, 30), *spoken("a", 20, 30, 0, "Unhealthy"), *spoken("b", 0, 1000), *spoken("c", 0, 1000)]
    found = said(WELL, ratio, seen("a", 30, 0, "Unhealthy"), seen("a", 100, 50), text=text)
    assert writes(found) == [(25, (0, 100, 0), "PrimaryUnhealthy"), (110, (70, 30, 0), "PrimaryHealthy")]


def test_after_a_persons_failback_the_tiers_share_again() -> None:
    found = said(
        WELL, seen("a", 20, 50), seen("a", 80, 100), by_hand(100, "failbackTraffic"), by_hand(150, "releaseTraffic"),
        seen("a", 200, 50), text=MANUAL,
    )  # fmt: skip
    assert writes(found) == [
        (25, (70, 30, 0), "PrimaryUnhealthy"), (100, (1, 0, 0), "ByHand"), (205, (70, 30, 0), "PrimaryUnhealthy")
    ]  # fmt: skip

"""Traffic in people's hands: moved away, brought back, released; nothing changes by itself meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import FailbackTraffic, FailoverTraffic, ReleaseTraffic, SetWeights
from rules.rehearsal.history import load_history, written
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, failover, healthy, holds, moves, paused, route, said, unhealthy, unknown

HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}
WELL = (route(HOME), healthy("a", at=0), healthy("b", at=0))
COMMON = {"rule": "web", "by": "ann", "reason": "CHG-1"}


def rules(**keys: Any) -> dict[str, Any]:
    return failover(**({"backends": [{"service": "a"}, {"service": "b"}], "recoverySeconds": 60} | keys))


def away(*, at: float, **more: Any) -> Event:
    return at, FailoverTraffic(**{**COMMON, **more}, observed_at=at_(at))


def back(*, at: float, **more: Any) -> Event:
    return at, FailbackTraffic(**{**COMMON, **more}, observed_at=at_(at))


def released(*, at: float, **more: Any) -> Event:
    return at, ReleaseTraffic(**{**COMMON, **more}, observed_at=at_(at))


def causes(rules_: Any, *events: Event, until: float = 1000) -> list[tuple[float, str]]:
    things = said(rules_, *events, until=until)
    return [(one.at, one.what.because) for one in things if isinstance(one.what, SetWeights)]


def test_a_drain_ends_in_time_and_the_rule_decides_again() -> None:
    events = (*WELL, away(at=10, for_seconds=100))
    assert moves(rules(), *events) == [(10, AWAY), (110, HOME)]
    assert causes(rules(), *events) == [(10, "ByHand"), (110, "PrimaryHealthy")]
    assert holds(rules(), *events) == [(10, "Overridden")]


def test_without_an_end_it_applies_until_it_is_released() -> None:
    assert moves(rules(), *WELL, away(at=10), until=90_000) == [(10, AWAY)]
    assert moves(rules(), *WELL, away(at=10), released(at=500)) == [(10, AWAY), (500, HOME)]


def test_it_passes_windows_cooldown_rates_and_approvals() -> None:
    window = {"cron": "0 0 * * *", "durationSeconds": 80_000, "timezone": "UTC"}
    limits = {"cooldownSeconds": 900, "ratePerSecond": 0.001, "blockedWindows": [window], "approval": {}}
    held = rules(guards=limits, mode="Approve")
    assert moves(held, *WELL, away(at=10), back(at=20), away(at=30)) == [(10, AWAY), (20, HOME), (30, AWAY)]


def test_in_a_pause_it_is_refused_with_who_paused() -> None:
    events = (*WELL, paused("web", at=5), away(at=10))
    assert moves(rules(), *events) == []
    things = [one.what for one in said(rules(), *events) if not isinstance(one.what, SetWeights)]
    assert [getattr(thing, "held", "") for thing in things] == ["ChangeRefused"]
    assert "paused by ann" in getattr(things[0], "detail", "")


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (away(at=20, to=("z",)), "z is none of the backends a, b"),
        (away(at=20, to=("b",)), "traffic goes to what is not Healthy only with force"),
        (away(at=20), "no secondary is ready"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_a_reason(event: Event, why: str) -> None:
    events = (route(HOME), healthy("a", at=0), unhealthy("b", at=10), event)
    assert moves(rules(), *events) == []
    (hold,) = [one.what for one in said(rules(), *events) if not isinstance(one.what, SetWeights)]
    assert why in getattr(hold, "detail", "")


def test_force_moves_to_what_is_not_healthy_and_that_is_not_left_for_it() -> None:
    events = (route(HOME), healthy("a", at=0), unhealthy("b", at=10), away(at=20, to=("b",), force=True))
    assert moves(rules(), *events, until=900) == [(20, AWAY)]


def test_it_leaves_a_backend_that_is_settled_as_bad_while_another_is_healthy() -> None:
    assert moves(rules(), *WELL, away(at=10), unhealthy("b", at=50)) == [(10, AWAY), (50, HOME)]
    assert moves(rules(), *WELL, away(at=10), unhealthy("b", at=50), healthy("b", at=60), until=900) == [
        (10, AWAY), (50, HOME),
    ]  # fmt: skip
    both = (*WELL, away(at=10), unhealthy("a", at=40), unhealthy("b", at=50))
    assert moves(rules(), *both, until=900) == [(10, AWAY)]


def test_it_is_not_left_for_a_dip_that_is_tolerated() -> None:
    events = (*WELL, away(at=10), unhealthy("b", at=50), healthy("b", at=55))
    assert moves(rules(tolerationSeconds=10), *events, until=900) == [(10, AWAY)]


def test_a_failback_by_hand_clears_the_count_and_brings_back_what_is_unknown_only_by_force() -> None:
    left = (*WELL, unhealthy("a", at=10), unknown("a", at=20))
    tried = rules(failback={"mode": "Trial"})
    assert moves(tried, *left, back(at=30), until=70) == [(10, AWAY)]
    assert moves(tried, *left, back(at=30, force=True, for_seconds=100), healthy("a", at=40), until=1000) == [
        (10, AWAY), (30, HOME),
    ]  # fmt: skip
    flaps = [unhealthy("a", at=10), healthy("a", at=20), unhealthy("a", at=90), healthy("a", at=100)]
    again = [unhealthy("a", at=300), healthy("a", at=310)]
    by_hand = [back(at=160, for_seconds=10), *again]
    assert [at for at, weights in moves(rules(), *WELL, *flaps, *by_hand) if weights == HOME] == [80, 160, 370]


def test_the_newest_word_counts_and_the_same_word_twice_is_one() -> None:
    twice = (*WELL, away(at=10), (12.0, away(at=10)[1]), back(at=20), (25.0, away(at=10)[1]))
    assert moves(rules(), *twice, until=900) == [(10, AWAY), (20, HOME)]


def test_weights_that_another_writer_sets_meanwhile_are_put_right() -> None:
    events = (*WELL, away(at=10), route({"a": 1, "b": 1}, at=50))
    assert causes(rules(), *events) == [(10, "ByHand"), (50, "Drift")]
    assert moves(rules(), *events)[-1] == (50, AWAY)


def test_one_object_of_many_and_each_of_them() -> None:
    every = failover(route={"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "selector": "x"})
    listed = [route({f"{n}-a": 1, f"{n}-b": 0}, name=n, labels={"x": "y"}) for n in ("one", "two")]
    well = [healthy(f"{n}-{s}", at=0) for n in ("one", "two") for s in "ab"]
    assert len(moves(every, *listed, *well, away(at=10))) == 2
    one = away(at=10, object="east/shop/TrafficSplit/two")
    assert moves(every, *listed, *well, one) == [(10, {"two-a": 0, "two-b": 1})]


def test_it_is_a_rule_of_its_own_that_is_meant() -> None:
    assert moves(rules(), *WELL, away(at=10, rule="other")) == []
    assert moves(rules(), *WELL, away(at=10, object="east/shop/TrafficSplit/other")) == []


def test_histories_have_the_words() -> None:
    command = '"rule": "web", "to": ["b"], "forSeconds": 3600, "by": "ann", "reason": "CHG-1"'
    line = f'{{"at": 9, "command": {{"failoverTraffic": {{{command}}}}}}}'
    ((second, fact),) = load_history([line], "h.jsonl").events
    assert fact == away(at=9, to=("b",), for_seconds=3600)[1]
    assert load_history([written(second, fact)], "h.jsonl").events == [(second, fact)]


@given(st.lists(st.sampled_from(["away", "back", "release", "a", "b", "A", "B"]), max_size=12))
def test_whatever_people_do_a_route_is_never_without_weight(words: list[str]) -> None:
    events = list(WELL)
    for number, word in enumerate(words):
        when = 10.0 * (number + 1)
        made = {"away": away, "back": back, "release": released}
        if word in made:
            events.append(made[word](at=when))
        else:
            events.append((healthy if word.isupper() else unhealthy)(word.lower(), at=when))
    assert all(any(weights.values()) for _, weights in moves(rules(), *events))

"""Silences of a history: what is not heard proves nothing, and no window that ends inside runs out before their end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from bus.messages import Observation
from rules.core.errors import InvalidHistory
from rules.engine.routing import Routing
from rules.loader import load_rules
from rules.rehearsal import history
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.simulator import simulate

EAST, WEST = "service/east/shop/web", "service/west/shop/web"
OBJECT = "east/shop/TrafficSplit/web"
AWAY, HOME = {"web": 0, "web-west": 1}, {"web": 1, "web-west": 0}
Line = dict[str, Any]
TRAFFIC: Line = {
    "name": "web", "kind": "TrafficFailover", "mode": "Enforce", "tolerationSeconds": 10, "recoverySeconds": 60,
    "route": {"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "web"},
    "backends": [{"service": "web"}, {"service": "web-west", "target": WEST}],
}  # fmt: skip


def observed(at: float, target: str, status: str, signal: str = "readiness", **more: Any) -> Line:
    return {"at": at, "observe": {"target": target, "status": status, "signal": signal, **more}}


def silent(at: float, seconds: float, signal: str = "readiness", **more: Any) -> Line:
    return {"at": at, "silence": {"signal": signal, "seconds": seconds, **more}}


def read(*events: Line) -> list[tuple[float, Any]]:
    return history.load_history([json.dumps(event) for event in events], "h.jsonl").events


def printed(rule: Line, *events: Line, until: float | None = 300) -> list[Line]:
    """The lines of `reactor simulate`."""
    rules = Routing.of(load_rules([("rules.yaml", json.dumps({"apiVersion": "reactor/v1", "rules": [rule]}))]))
    past = history.load_history([json.dumps(event) for event in events], "h.jsonl")
    return [json.loads(line) for line in simulate(rules, past.events, until=past.until if until is None else until)]


def acts(lines: Sequence[Line]) -> list[tuple[float, Any]]:
    return [(line["at"], line.get("weights") or line["action"]) for line in lines if "action" in line]


def holds(lines: Sequence[Line]) -> list[tuple[float, str]]:
    return [(line["at"], line["held"]) for line in lines if "held" in line]


STANDS = (observed(0, EAST, "Healthy"), observed(0, WEST, "Healthy"))
BAD = observed(5, EAST, "Unhealthy")


# --- a failure, and a source that looks all the time ---------------------------------------------------------------


def test_what_recovered_inside_moves_nothing() -> None:
    assert printed(TRAFFIC, *STANDS, BAD, silent(6, 24), observed(9, EAST, "Healthy"), until=29) == [
        {"at": 17.0, "rule": "web", "held": "SourceSilent", "object": OBJECT,
         "detail": f"readiness: not seen at 1970-01-01T00:00:15+00:00 or later: {EAST}"}
    ]  # fmt: skip
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), observed(9, EAST, "Healthy"))) == []


def test_what_recovered_inside_after_its_window_moves_nothing() -> None:
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), observed(20, EAST, "Healthy"))) == []


def test_what_recovered_inside_after_it_was_seen_bad_for_its_whole_window_is_held_by_the_present() -> None:
    lines = printed(
        TRAFFIC, *STANDS, BAD, silent(6, 24), observed(16, EAST, "Unhealthy"), observed(20, EAST, "Healthy")
    )
    assert acts(lines) == []
    assert holds(lines) == [(17, "SourceSilent"), (30, "HealthyNow")]


def test_what_was_bad_without_a_break_acts_at_the_end_of_the_silence() -> None:
    lines = printed(TRAFFIC, *STANDS, BAD, silent(6, 24))
    assert [(line["at"], line.get("held") or line["because"]) for line in lines] == [
        (17, "SourceSilent"), (30, "PrimaryUnhealthy")
    ]  # fmt: skip
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), observed(12, EAST, "Unhealthy"))) == [(30, AWAY)]


def test_a_window_that_is_not_over_at_the_end_of_the_silence_runs_on() -> None:
    lines = printed(TRAFFIC, *STANDS, BAD, silent(6, 4))
    assert [(line["at"], line["action"]) for line in lines] == [(15, "SetWeights")]


def test_a_failure_that_begins_inside_is_dated_as_it_was_seen() -> None:
    assert acts(printed(TRAFFIC, *STANDS, silent(6, 24), observed(12, EAST, "Unhealthy"))) == [(30, AWAY)]
    assert acts(printed(TRAFFIC, *STANDS, silent(6, 24), observed(26, EAST, "Unhealthy"))) == [(36, AWAY)]


def test_what_recovered_and_failed_again_inside_has_its_whole_window_from_the_second_failure() -> None:
    inside = [observed(9, EAST, "Healthy"), observed(25, EAST, "Unhealthy")]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), *inside)) == [(35, AWAY)]
    inside = [observed(9, EAST, "Healthy"), observed(12, EAST, "Unhealthy")]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), *inside)) == [(30, AWAY)]


def test_flaps_inside_that_are_each_shorter_than_the_window_move_nothing() -> None:
    flaps = [observed(second, EAST, "Healthy" if second % 10 else "Unhealthy") for second in range(5, 60, 5)]
    assert acts(printed(TRAFFIC, *STANDS, silent(3, 40), *flaps)) == []


def test_a_window_that_ends_where_the_silence_begins_waits_too_and_one_just_before_does_not() -> None:
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(15, 10))) == [(25, AWAY)]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(15.001, 10))) == [(15, AWAY)]


def test_an_observation_at_the_begin_is_heard_at_the_end_and_one_at_the_end_at_once() -> None:
    at_begin = read(observed(6, EAST, "Healthy"), silent(6, 24))
    assert [(heard, fact.observed_at) for heard, fact in at_begin] == [(30, at_(6)), (30, at_(30))]
    healthy = [observed(30, EAST, "Healthy")]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), *healthy)) == []
    worse = [observed(9, EAST, "Healthy"), observed(30, EAST, "Unhealthy")]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), *worse)) == [(40, AWAY)]


def test_one_step_at_the_end_so_that_half_of_what_was_seen_moves_nothing() -> None:
    """Both go down and come back, the secondary's observation comes first."""
    down = [observed(7, WEST, "Unhealthy"), observed(8, EAST, "Unhealthy")]
    back = [observed(20, WEST, "Healthy"), observed(20, EAST, "Healthy")]
    assert acts(printed(TRAFFIC | {"recoverySeconds": 0}, *STANDS, silent(6, 24), *down, *back)) == []


# --- a restart -----------------------------------------------------------------------------------------------------


def test_a_source_that_did_not_look_restarts_the_window_with_its_first_look() -> None:
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24, looking=False))) == [(40, AWAY)]
    inside = [observed(12, EAST, "Unhealthy"), observed(20, EAST, "Unhealthy")]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24, looking=False), *inside)) == [(40, AWAY)]
    at_end = observed(30, EAST, "Unhealthy")
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24, looking=False), at_end)) == [(40, AWAY)]


def test_the_first_look_says_how_each_target_is_by_the_history() -> None:
    inside = [observed(12, EAST, "Healthy"), observed(20, WEST, "Unhealthy", detail="HTTP 503")]
    told = read(*STANDS, BAD, silent(6, 24, looking=False), *inside)
    assert [(heard, fact.target, fact.status, fact.detail, fact.since) for heard, fact in told if heard == 30] == [
        (30, EAST, "Healthy", "", at_(30)), (30, WEST, "Unhealthy", "HTTP 503", at_(30)),
    ]  # fmt: skip


def test_what_recovered_before_the_first_look_moves_nothing() -> None:
    lines = printed(TRAFFIC, *STANDS, BAD, silent(6, 24, looking=False), observed(12, EAST, "Healthy"))
    assert acts(lines) == []


def test_a_restart_of_no_time_breaks_the_window_too() -> None:
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(8, 0, looking=False))) == [(18, AWAY)]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(8, 0))) == [(15, AWAY)]


def test_another_signal_that_was_bad_throughout_bridges_a_restart() -> None:
    other = [observed(0, EAST, "Healthy", "alert"), observed(5, EAST, "Unhealthy", "alert")]
    assert acts(printed(TRAFFIC, *STANDS, BAD, *other, silent(6, 8, looking=False))) == [(15, AWAY)]


# --- who is silent -------------------------------------------------------------------------------------------------


def test_a_signal_that_is_heard_proves_the_window_while_another_is_silent() -> None:
    other = [observed(0, EAST, "Healthy", "alert"), observed(5, EAST, "Unhealthy", "alert")]
    other += [observed(0, WEST, "Healthy", "alert")]
    lines = printed(TRAFFIC, *STANDS, BAD, *other, silent(6, 60, "alert"))
    assert acts(lines) == [(15, AWAY)]


def test_what_is_to_get_traffic_needs_a_word_too() -> None:
    secondary = observed(0, WEST, "Healthy", "other")
    primary = [observed(0, EAST, "Healthy"), BAD]
    lines = printed(TRAFFIC, secondary, *primary, silent(6, 24, "other"))
    assert holds(lines) == [(17, "SourceSilent")]
    assert acts(lines) == [(30, AWAY)]
    down = observed(12, WEST, "Unhealthy", "other")
    assert acts(printed(TRAFFIC, secondary, *primary, silent(6, 24, "other"), down)) == []


def test_a_silence_of_all_signals_is_one_of_each() -> None:
    secondary = observed(0, WEST, "Healthy", "other")
    primary = [observed(0, EAST, "Healthy"), BAD]
    assert acts(printed(TRAFFIC, secondary, *primary, silent(6, 24, "*"))) == [(30, AWAY)]


def test_overlapping_silences_are_one() -> None:
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 10), silent(12, 18))) == [(30, AWAY)]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(12, 18, "*"), silent(6, 10))) == [(30, AWAY)]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), silent(10, 5))) == [(30, AWAY)]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 6), silent(12, 18))) == [(30, AWAY)]  # they touch


def test_a_restart_inside_a_longer_silence_breaks_the_window_where_it_ends() -> None:
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), silent(10, 15, looking=False))) == [(35, AWAY)]
    told = read(*STANDS, BAD, silent(6, 24), silent(10, 15, looking=False))
    east = [(heard, fact.observed_at, fact.since) for heard, fact in told if fact.target == EAST and heard > 6]
    assert east == [(30, at_(25), at_(25)), (30, at_(30), at_(25))]


def test_a_word_proves_again_after_the_silence_until_the_next_one() -> None:
    twice = [silent(6, 4), silent(14, 6)]
    assert acts(printed(TRAFFIC, *STANDS, BAD, *twice)) == [(20, AWAY)]
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 4), silent(40, 6))) == [(15, AWAY)]


def test_what_was_stale_before_the_silence_ends_is_not_said_again() -> None:
    short = observed(5, EAST, "Unhealthy", staleSeconds=20)
    assert [heard for heard, fact in read(short, silent(6, 24))] == [5]
    assert [heard for heard, fact in read(short, observed(20, EAST, "Unhealthy", staleSeconds=20), silent(6, 24))] == [
        5, 30, 30,
    ]  # fmt: skip
    kept = [observed(second, EAST, "Unhealthy", staleSeconds=20) for second in (5, 20, 35)]
    west = observed(0, WEST, "Healthy")
    first = observed(0, EAST, "Healthy", staleSeconds=20)
    assert acts(printed(TRAFFIC, first, west, *kept, silent(6, 30))) == [(36, AWAY)]


def test_a_silence_beyond_the_last_event_is_played_to_its_end() -> None:
    assert acts(printed(TRAFFIC, *STANDS, BAD, silent(6, 24), until=None)) == [(30, AWAY)]
    past = history.load_history([json.dumps(one) for one in [*STANDS, silent(6, 24, "of nobody")]], "h.jsonl")
    assert past.until == 30
    assert past.events == read(*STANDS)


# --- what goes on --------------------------------------------------------------------------------------------------


def test_commands_go_on_in_a_silence() -> None:
    pause = {"at": 20, "command": {"pause": {"rule": "*", "by": "ann", "reason": "upgrade"}}}
    resume = {"at": 50, "command": {"resume": {"rule": "*", "by": "ann"}}}
    lines = printed(TRAFFIC, *STANDS, BAD, silent(6, 24), pause, resume)
    assert holds(lines) == [(17, "SourceSilent"), (30, "Paused")]
    assert acts(lines) == [(50, AWAY)]


def test_weights_that_another_writer_set_are_put_right_in_a_silence() -> None:
    backends = [{"service": "web", "weight": 1}, {"service": "web-west", "weight": 0}]
    route = {"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "web", "backends": backends}
    listed = {"at": 0, "inventory": {"route": route}}
    drift = {"at": 50, "inventory": {"route": route}}
    assert acts(printed(TRAFFIC, listed, *STANDS, BAD, silent(40, 30), drift)) == [(15, AWAY), (50, AWAY)]


# --- the way back --------------------------------------------------------------------------------------------------


def test_a_recovery_runs_out_on_a_look_from_after_its_end_too() -> None:
    away = (*STANDS, BAD)
    good = observed(40, EAST, "Healthy")
    assert acts(printed(TRAFFIC, *away, good)) == [(15, AWAY), (100, HOME)]
    assert acts(printed(TRAFFIC, *away, good, silent(90, 30))) == [(15, AWAY), (120, HOME)]
    assert acts(printed(TRAFFIC, *away, good, silent(90, 30), observed(95, EAST, "Unhealthy"))) == [(15, AWAY)]
    again = [observed(95, EAST, "Unhealthy"), observed(96, EAST, "Healthy")]
    assert acts(printed(TRAFFIC, *away, good, silent(90, 30), *again)) == [(15, AWAY), (156, HOME)]
    assert acts(printed(TRAFFIC, *away, good, silent(90, 30, looking=False))) == [(15, AWAY), (180, HOME)]


def test_a_notification_waits_for_its_evidence_as_an_act_does() -> None:
    rule = {"name": "n", "kind": "Notification", "mode": "Enforce", "match": "custom/**", "message": "{status}",
            "tolerationSeconds": 10}  # fmt: skip
    story = [observed(0, "custom/psp", "Healthy"), observed(5, "custom/psp", "Unhealthy"), silent(6, 24)]
    assert acts(printed(rule, *story)) == [(30, "Notify")]
    assert acts(printed(rule, *story, observed(9, "custom/psp", "Healthy"))) == []
    restart = silent(6, 24, looking=False)
    assert acts(printed(rule, *story[:2], restart)) == [(40, "Notify")]


# --- other kinds ---------------------------------------------------------------------------------------------------

TAINT: Line = {
    "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/east", "tolerationSeconds": 10,
    "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
}  # fmt: skip
WORKLOAD: Line = {
    "name": "w", "kind": "WorkloadFailover", "mode": "Enforce", "failover": {"cluster": {}},
    "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
}  # fmt: skip
COPIES: list[Line] = [
    {"at": 0, "inventory": {"cluster": {"name": "m1"}}}, {"at": 0, "inventory": {"cluster": {"name": "m2"}}},
    {"at": 0, "inventory": {"workload": {"namespace": "d", "kind": "Deployment", "name": "n", "clusters": {"m1": 1}}}},
]  # fmt: skip
ZONES: Line = {
    "name": "zones", "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "prod", "tolerationSeconds": 10,
    "zones": [{"name": name} for name in "abc"],
}  # fmt: skip
NODES = {name: {"nodes": 5, "healthyNodes": 5} for name in "abc"}


def two_signals(at: float, target: str, status: str) -> list[Line]:
    return [observed(at, target, status, signal) for signal in ("nodes", "slo")]


KINDS: dict[str, tuple[Line, list[Line], str, float]] = {
    "ClusterTaint": (TAINT, [observed(0, "cluster/east", "Healthy")], "cluster/east", 10),
    "WorkloadFailover": (
        WORKLOAD, [*COPIES, observed(0, "cluster/m1", "Healthy"), observed(0, "cluster/m2", "Healthy")], "cluster/m1",
        300,
    ),
    "ZoneIsolation": (
        ZONES,
        [{"at": 0, "inventory": {"zones": {"cluster": "prod", "zones": NODES, "demandNodes": 8}}},
         *(one for zone in "abc" for one in two_signals(0, f"zone/prod/{zone}", "Healthy"))],
        "zone/prod/a", 10,
    ),
}  # fmt: skip


def of_kind(kind: str, at: float, status: str) -> list[Line]:
    target = KINDS[kind][2]
    return two_signals(at, target, status) if kind == "ZoneIsolation" else [observed(at, target, status)]


def first_act(kind: str, *events: Line) -> float | None:
    rule, before, _, _ = KINDS[kind]
    return next((at for at, _ in acts(printed(rule, *before, *events, until=2000))), None)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_waits_for_the_end_of_a_silence(kind: str) -> None:
    length = KINDS[kind][3]
    bad, end = of_kind(kind, 5, "Unhealthy"), 6 + 2 * length
    silence = silent(6, 2 * length, "*")
    assert first_act(kind, *bad) == 5 + length
    assert first_act(kind, *bad, silence) == end
    assert first_act(kind, *bad, silence, *of_kind(kind, 9, "Healthy")) is None
    assert first_act(kind, *bad, silence, *of_kind(kind, end - 1, "Healthy")) is None
    again = [*of_kind(kind, 9, "Healthy"), *of_kind(kind, end - 2, "Unhealthy")]
    assert first_act(kind, *bad, silence, *again) == end - 2 + length
    assert first_act(kind, *bad, silent(6, 2 * length, "*", looking=False)) == end + length


# --- what is written -----------------------------------------------------------------------------------------------


def test_without_silences_the_events_are_unchanged() -> None:
    plain = [*STANDS, BAD, observed(9, EAST, "Healthy", "other")]
    assert read(*plain, silent(3, 9, "of nobody")) == read(*plain)


def test_a_history_with_silences_is_written_as_it_is_heard_and_read_as_the_same() -> None:
    story = [*STANDS, BAD, silent(6, 24), silent(40.25, 3, looking=False), observed(9, WEST, "Unhealthy")]
    told = read(*story)
    again = history.load_history([history.written(heard, fact) for heard, fact in told], "again.jsonl").events
    assert again == told
    assert any(isinstance(fact, Observation) and fact.valid_seconds is not None for _, fact in told)


WRONG: list[tuple[Any, str]] = [
    (5, "silence must be an object"),
    ({"seconds": 5}, "silence.signal: required, and not there"),
    ({"signal": "readiness"}, "silence.seconds: required, and not there"),
    ({"signal": "", "seconds": 5}, "silence.signal: must not be empty"),
    ({"signal": "readiness", "seconds": -1}, "silence.seconds: must be 0 or more, got -1"),
    ({"signal": "readiness", "seconds": "5"}, "silence.seconds: must be a number"),
    ({"signal": "readiness", "seconds": 1e99}, "silence.seconds: must be "),
    ({"signal": "readiness", "seconds": 316_224_000}, "silence.seconds: it must end by second 316224000"),
    ({"signal": "readiness", "seconds": 5, "loking": False}, "silence.loking: unknown key; did you mean looking?"),
    ({"signal": "readiness", "seconds": 5, "looking": "no"}, "silence.looking: must be true or false"),
    ({"signal": "readiness", "seconds": True}, "silence.seconds: must be a number"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_a_wrong_silence_is_told_with_its_line(body: Any, message: str) -> None:
    with pytest.raises(InvalidHistory) as caught:
        history.load_history([json.dumps(STANDS[0]), json.dumps({"at": 1, "silence": body})], "h.jsonl")
    assert str(caught.value).startswith(f"h.jsonl:2: {message}")

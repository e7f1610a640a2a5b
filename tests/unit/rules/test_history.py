"""Histories: what is read, what is refused, and that what comes out is the contract's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bus.messages import Observation
from rules.core.errors import InvalidHistory
from rules.rehearsal import history
from rules.rehearsal.simulator import simulate
from tests.unit.rules.builders import backends, failover, notification, rule_set

SEEN = {"target": "service/east/shop/a", "status": "Healthy"}


def lines(*events: dict[str, Any]) -> list[str]:
    return [json.dumps(event) for event in events]


def wrong(*text: str) -> str:
    with pytest.raises(InvalidHistory) as caught:
        history.load_history(text, "h.jsonl")
    return str(caught.value)


def test_events_are_sorted_by_time_and_of_one_instant_as_they_are_written() -> None:
    read = history.load_history(
        lines({"at": 5, "observe": SEEN}, {"at": 0, "observe": SEEN | {"signal": "x"}},
              {"at": 5, "observe": SEEN | {"signal": "y"}}), "h",
    ).events  # fmt: skip
    assert [(at, getattr(fact, "signal", "")) for at, fact in read] == [(0, "x"), (5, "health"), (5, "y")]


def test_every_kind_of_event_of_the_contract_is_read() -> None:
    route = {
        "cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "web", "annotations": {}, "labels": {},
        "backends": [{"service": "a", "weight": 1}],
    }  # fmt: skip
    events = lines(
        {"at": 0, "observe": SEEN | {"signal": "readiness", "staleSeconds": 90, "labels": {"a": "b"}, "detail": "x"}},
        {"at": 0, "inventory": {"route": route}},
        {"at": 9, "command": {"pause": {"rule": "*", "by": "ann", "reason": "upgrade"}}},
        {"at": 9.5, "command": {"resume": {"rule": "*", "by": "ann"}}},
        {"at": 12, "outcome": {"action": "web/x/1", "status": "Done"}},
    )
    assert [type(fact).__name__ for _, fact in history.load_history(events, "h").events] == [
        "Observation", "Route", "Pause", "Resume", "Outcome",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"), ("[]", "an event is an object"), ("5", "an event is an object"),
        ('{"observe": {}}', "at must be a number"), ('{"at": -1, "observe": {}}', "at must be"),
        ('{"at": true, "observe": {}}', "at must be"), ('{"at": NaN, "observe": {}}', "at must be"),
        ('{"at": 1e99, "observe": {}}', "at must be"), ('{"at": 1}', "exactly one of"),
        ('{"at": 1, "observe": {}, "outcome": {}}', "exactly one of"), ('{"at": 1, "obzerve": {}}', "exactly one of"),
        ('{"at": 1, "observe": []}', "observe must be an object"),
        ('{"at": 1, "observe": {"target": "service/a", "status": "Healthy"}}', "observe.target"),
        ('{"at": 1, "observe": {"target": "custom/a", "status": "Down"}}', "observe.status"),
        ('{"at": 1, "observe": {"target": "custom/a", "status": "Healthy", "x": 1}}', "observe.x"),
        ('{"at": 1, "observe": {"target": "custom/a", "status": "Healthy", "sgnal": "x"}}', "did you mean signal?"),
        ('{"at": 1, "at": 2, "observe": {}}', "the key at is given twice"),
        ('{"at": 1, "outcome": {"action": "x"}}', "outcome.status: required, and not there"),
        ('{"at": 1, "inventory": {"node": {}}}', "this version reads route, "),
        ('{"at": 1, "inventory": {"zones": {"cluster": "prod", "zones": {"a": 5}}}}', "inventory.zones.zones.a"),
        ('{"at": 1, "inventory": {"route": {}}}', "inventory."),
        ('{"at": 1, "command": {"drain": {}}}', "this version reads pause, resume, "),
        ('{"at": 1, "command": {"isolateZone": {"rule": "zones", "zone": "a", "by": "ann"}}}', "command.isolateZone.r"),
        ('{"at": 1, "command": {"pause": 5}}', "command.pause must be an object"),
        ('{"at": 1, "outcome": {"action": "x", "status": "Maybe"}}', "outcome.status"), ("[" * 100_000, "not JSON"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_told_with_its_number(line: str, says: str) -> None:
    text = wrong(json.dumps({"at": 0, "observe": SEEN}), "", line)
    assert text.startswith("h.jsonl:3: ")
    assert says in text


def test_every_wrong_line_is_told_up_to_a_hundred() -> None:
    assert len(wrong(*["{"] * 5).splitlines()) == 5
    assert wrong(*["{"] * 500).splitlines()[-1] == "h.jsonl: and perhaps more"


def test_a_text_may_hold_any_line_separator_but_the_newline() -> None:
    event = json.dumps({"at": 0, "observe": SEEN | {"detail": "a\u2028b\x85c"}}, ensure_ascii=False)
    [(_, fact)] = history.load_history(history.lines_of(event + "\r\n"), "h").events
    assert isinstance(fact, Observation)
    assert fact.detail == "a\u2028b\x85c"


def printed(rules: Any, *events: dict[str, Any], until: float = 100, outcomes: bool = True) -> list[str]:
    return list(
        simulate(
            rule_set(*rules).rules, history.load_history(lines(*events), "h").events, until=until, outcomes=outcomes
        )
    )


def test_a_byte_order_mark_says_nothing() -> None:
    event = json.dumps({"at": 0, "observe": SEEN})
    assert len(history.load_history(history.lines_of("\ufeff" + event), "h").events) == 1


STORY = (
    {"at": 0, "observe": SEEN}, {"at": 0, "observe": SEEN | {"target": "service/east/shop/b"}},
    {"at": 5, "observe": SEEN | {"status": "Unhealthy"}},
)  # fmt: skip
WEB = failover(tolerationSeconds=10, backends=backends("a", "b"))


def test_an_action_prints_the_keys_of_the_contract_in_their_order() -> None:
    [line] = printed([WEB], *STORY)
    assert line == (
        '{"at": 15.0, "rule": "web", "action": "SetWeights", "object": "east/shop/TrafficSplit/web", '
        '"weights": {"a": 0, "b": 1}, "because": "PrimaryUnhealthy", "id": "web/east/shop/TrafficSplit/web/1"}'
    )


def test_a_hold_prints_the_keys_of_the_contract_in_their_order() -> None:
    story = (STORY[0], {"at": 1, "observe": {"target": "service/east/shop/b", "status": "Unhealthy"}}, STORY[2])
    [line] = printed([WEB], *story)
    assert line == (
        '{"at": 15.0, "rule": "web", "held": "NoHealthySecondary", "object": "east/shop/TrafficSplit/web", '
        '"detail": "b: Unhealthy"}'
    )


def test_a_notification_prints_its_message() -> None:
    [line] = printed([notification(message="{target}: {status}")], STORY[2])
    assert list(json.loads(line)) == ["at", "rule", "action", "object", "message", "because", "id"]


def test_a_dry_run_prints_the_very_lines_that_it_would_act_by() -> None:
    assert printed([WEB | {"mode": "DryRun"}], *STORY) == printed([WEB | {"mode": "Enforce"}], *STORY)


def test_a_route_without_inventory_is_in_its_healthy_state() -> None:
    assert printed([WEB], {"at": 0, "observe": SEEN}) == []


def test_a_window_that_ends_in_the_last_second_is_played_and_a_later_one_is_not() -> None:
    assert len(printed([WEB], *STORY, until=15)) == 1
    assert printed([WEB], *STORY, until=14.9) == []


def test_without_outcomes_an_action_is_said_once_and_stays_owed() -> None:
    assert len(printed([WEB], *STORY, until=500, outcomes=False)) == 1


def test_an_outcome_of_the_history_finds_its_action_by_its_id() -> None:
    failed = {
        "at": 20,
        "outcome": {"action": "web/east/shop/TrafficSplit/web/1", "status": "Failed", "reason": "Timeout"},
    }
    out = [json.loads(line) for line in printed([WEB], *STORY, failed, outcomes=False)]
    assert out[1]["held"] == "ActionFailed"

"""Messages of `reactor check` about rules that cannot come back, and trials that never pass."""

from __future__ import annotations

from typing import Any

import pytest

from rules.loader import load_rules
from tests.unit.rules.builders import failover, rule_file

RATIO = "sum by (s) (rate(bad[1m])) / sum by (s) (rate(all[1m]))"


def query(**keys: Any) -> dict[str, Any]:
    given = {
        "name": "errors", "kind": "PrometheusQuery", "prometheus": "main", "target": "service/east/shop/a",
        "query": RATIO, "unhealthyWhen": {"above": 0.1},
    }  # fmt: skip
    return given | keys


def probe(service: str, **keys: Any) -> dict[str, Any]:
    target = f"service/east/shop/{service}"
    return {
        "name": f"probe-{service}",
        "kind": "HttpProbe",
        "target": target,
        "url": "http://x",
        "signal": "probe",
    } | keys


def warned(*sources: dict[str, Any], **rule: Any) -> list[str]:
    given = failover(recoverySeconds=60, backends=[{"service": "a"}, {"service": "b"}], **rule)
    problems = load_rules([("r.yaml", rule_file(given, sources=[*sources, probe("b")]))]).warnings
    return [f"{problem.path}: {problem.message}" for problem in problems]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (query(), "0/0: Unknown"),
        (query(unhealthyWhen="Present", query=f"{RATIO} > 0.1"), "0/0: Unknown"),
        (query(unhealthyWhen="Present", query="rate(bad[1m]) > 3"), "Present reads that as Healthy"),
        (
            {
                "name": "alerts", "kind": "AlertmanagerWebhook", "target": "service/east/shop/a",
                "confirm": {"prometheus": "main", "query": "rate(good[1m]) > 0"},
            },
            "its confirm query needs requests",
        ),
    ],
)  # fmt: skip
def test_a_rule_that_leaves_by_what_needs_traffic_is_told_the_line_that_heals_it(
    source: dict[str, Any], why: str
) -> None:
    (said,) = warned(source, signals=[source["name"], "probe"])
    assert why in said
    assert "failback: {mode: Trial, trial: {percent: 5, seconds: " in said
    assert warned(source, failback={"mode": "Trial", "trial": {"seconds": 180}}) == []
    assert warned(source, signals=["probe"]) == []
    assert warned(source, failback={"mode": "Manual"}) == []
    assert warned(source, probe("a"), failback={"signals": ["probe"]}) == []


def test_with_a_probe_it_is_told_of_that_way_too() -> None:
    (said,) = warned(query(), probe("a"))
    assert "or `failback: {signals: [probe]}`" in said


def test_what_needs_no_traffic_is_left_in_peace() -> None:
    assert warned(query(query="up")) == []
    assert warned(query(target="service/east/shop/elsewhere")) == []


def test_a_trial_shorter_than_the_range_and_two_readings_never_passes() -> None:
    (said,) = warned(query(), failback={"mode": "Trial"})
    assert "rules[0].failback" in said
    assert "`trial: {seconds: 90}`" in said
    assert warned(query(), failback={"mode": "Trial", "trial": {"seconds": 90}}) == []
    assert warned(query(everySeconds=5, query=RATIO.replace("1m", "30s")), failback={"mode": "Trial"}) == []


def test_a_trial_in_which_an_alerts_source_says_too_seldom_that_it_is_confirmed_never_passes() -> None:
    alerts = {
        "name": "alerts", "kind": "AlertmanagerWebhook", "target": "service/east/shop/a",
        "confirm": {"prometheus": "main", "query": "rate(good[1m]) > 0"},
    }  # fmt: skip
    (said,) = warned(alerts, failback={"mode": "Trial"})
    assert "`trial: {seconds: 120}`" in said
    assert "every 30 s" in said
    assert warned(alerts, failback={"mode": "Trial", "trial": {"seconds": 120}}) == []
    assert warned({**alerts, "refreshSeconds": 5}, failback={"mode": "Trial", "trial": {"seconds": 70}}) == []


def test_a_secondary_that_only_such_a_signal_observes_never_gets_traffic() -> None:
    both = query(target="service/east/shop/{s}")
    given = failover(backends=[{"service": "a"}, {"service": "b"}], failback={"mode": "Manual"})
    (said,) = [problem.message for problem in load_rules([("r.yaml", rule_file(given, sources=[both]))]).warnings]
    assert "add a probe of service/east/shop/b, or `treatUnknownAs: Healthy` here" in said
    given["backends"] = [{"service": "a"}, {"service": "b", "treatUnknownAs": "Healthy"}]
    assert load_rules([("r.yaml", rule_file(given, sources=[both]))]).warnings == ()

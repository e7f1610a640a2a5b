"""A backtest says where its answer depends on traffic that the rule itself would have moved."""

from __future__ import annotations

import pytest

from reactor.workbench.backtest.backtest_run import Backtested
from reactor.workbench.backtest.backtest_text import lines
from reactor.workbench.backtest.page import page
from rules.loader import load_rules
from rules.rehearsal.backtest.backtest_report import as_json, false_within
from rules.rehearsal.backtest.backtester import backtest
from tests.unit.backtest.test_story import H, U, seen

RATIO = "rate(bad[1m]) / rate(all[1m])"
TRIAL = "failback: {mode: Trial, trial: {seconds: 100}}"


def told(query: str, more: str = "", *, fails: bool = True, signals: str = "") -> Backtested:
    rules = load_rules([("shop.yaml", f"""
apiVersion: reactor/v1
sources:
  - {{name: errors, kind: PrometheusQuery, prometheus: main, query: "{query}", target: "service/east/shop/{{s}}",
     signal: health, unhealthyWhen: {{above: 0.1}}}}
rules:
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}}
    backends: [{{service: checkout}}, {{service: fallback, treatUnknownAs: Healthy}}]
    recoverySeconds: 60
    {more}
    {signals}
""")])  # fmt: skip
    events = [seen(0, "checkout", H), seen(0, "fallback", H)]
    if fails:
        events += [seen(100, "checkout", U), seen(300, "checkout", H), seen(900, "checkout", H)]
    played = backtest(rules, events, first=0, until=1000)
    return Backtested(played, false_within(rules.rules), ())


def test_it_names_the_times_the_signals_and_why() -> None:
    done = told(RATIO)
    [rule] = as_json(done.played, done.within)["rules"]
    [one] = rule["dependsOnTraffic"]
    assert (one["object"], one["from"], one["to"]) == (
        "east/shop/TrafficSplit/checkout", "1970-01-01T00:01:40Z", "1970-01-01T00:06:00Z",
    )  # fmt: skip
    assert one["signals"] == {"health": "its query divides rates, which without requests is 0/0: Unknown"}
    [said] = [line for line in lines(done) if "depends on traffic" in line]
    assert "1 time: it is assumed that what was read with all the traffic would have been known without it" in said
    assert "depends on traffic that it would have moved itself, 1 time" in page(done)


def test_it_says_by_what_assumption_a_trial_is_played() -> None:
    assert not [line for line in lines(told(RATIO)) if "trial" in line]
    assert [line for line in lines(told(RATIO, TRIAL)) if "assumed: a trial is played as if" in line]


@pytest.mark.parametrize("done", [told("up"), told(RATIO, fails=False), told(RATIO, signals="signals: [other]")])
def test_what_does_not_depend_on_it_says_nothing(done: Backtested) -> None:
    assert as_json(done.played, done.within)["rules"][0]["dependsOnTraffic"] == []
    assert not [line for line in lines(done) if "depends on traffic" in line]

"""Counts of a backtest: notifications are no failovers, approvals are played, and waiting has its price."""

from __future__ import annotations

from reactor.workbench.backtest.backtest_run import Backtested
from reactor.workbench.backtest.backtest_text import lines
from rules.loader import RuleSet, load_rules
from rules.rehearsal.backtest.backtest_report import as_json, false_within, numbers
from rules.rehearsal.backtest.backtester import Sweep, backtest, sweep
from tests.unit.backtest.test_story import H, U, seen

EVENTS = [
    seen(0, "checkout", H), seen(0, "fallback", H), seen(100, "checkout", U), seen(200, "checkout", H),
    seen(400, "checkout", U), seen(405, "checkout", H),
]  # fmt: skip


def rules(*, mode: str = "Enforce", more: str = "", guards: str = "") -> RuleSet:
    return load_rules([("shop.yaml", f"""
apiVersion: reactor/v1
rules:
  - name: checkout
    kind: TrafficFailover
    mode: {mode}
    route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}}
    backends: [{{service: checkout}}, {{service: fallback}}]
    tolerationSeconds: 10
    recoverySeconds: 20
    {more}
  - {{name: people, kind: Notification, mode: Enforce, match: service/**, tolerationSeconds: 2}}
{guards}
""")])  # fmt: skip


def done(of: RuleSet) -> Backtested:
    return Backtested(backtest(of, EVENTS, first=0, until=1000), false_within(of.rules), ())


def test_what_people_are_told_is_no_failover() -> None:
    told = done(rules())
    traffic, people = (numbers([story], told.within) for story in told.played.stories.values())
    assert (traffic.failovers, traffic.returns, traffic.notifications) == (1, 1, 0)
    assert (people.failovers, people.false_failovers, people.returns, people.away_seconds) == (0, 0, 0, 0)
    assert people.notifications == 4
    both = numbers(told.played.stories.values(), told.within)
    assert (both.failovers, both.notifications, both.away_seconds) == (1, 4, 110)
    assert "  4 notifications" in list(lines(told))


def test_a_rule_that_asks_people_is_played_as_if_each_yes_had_come_at_once() -> None:
    plain = done(rules()).played.stories["checkout"]
    guard = "guards: [{rules: ['*'], approval: {expireSeconds: 60}}]"
    for asking in (rules(mode="Approve"), rules(more="guards: {approval: {}}"), rules(guards=guard)):
        told = done(asking)
        story = told.played.stories["checkout"]
        assert [(act.at, act.move) for act in story.acts] == [(act.at, act.move) for act in plain.acts]
        assert numbers([story], told.within).approvals == 1
    told = done(rules(mode="Approve"))
    rule = as_json(told.played, told.within)["rules"][0]
    assert (rule["mode"], rule["failovers"], rule["approvals"]) == ("Approve", 1, 1)
    said = "  an approval would have been requested 1 time: it is played as if each was given at once"
    assert said in list(lines(told))
    assert as_json(done(rules()).played, told.within)["rules"][0]["approvals"] == 0


def test_a_sweep_shows_what_a_longer_toleration_costs() -> None:
    rows = sweep(rules(), lambda: EVENTS, Sweep("tolerationSeconds", (0, 10, 50)), first=0, until=1000)
    found = [numbers([played.stories["checkout"]], {"checkout": 30}) for _, played in rows]
    assert [one.failovers for one in found] == [2, 1, 1]
    assert [one.false_failovers for one in found] == [1, 0, 0]
    assert [one.bad_served_seconds for one in found] == [0, 15, 55]

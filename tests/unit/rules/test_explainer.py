"""An act is followed back to what was seen; an alert is told which rules it would reach, and why not the others."""

from __future__ import annotations

from bus.messages import Observation, Outcome
from rules.loader import load_rules
from rules.rehearsal.basis import line
from rules.rehearsal.causal_chain import chain
from rules.rehearsal.reach import lines as told
from rules.rehearsal.reach import reach
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import failover, healthy, notification, outcome, route, rule_file, rule_set, unhealthy
from tests.unit.rules.test_replay import kept

ID = "web/east/shop/TrafficSplit/web/1"
STORY = [
    route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0), unhealthy("a", at=5, detail="0 of 2 are ready"),
    unhealthy("a", at=8), healthy("b", at=16),
]  # fmt: skip


def test_the_chain_of_an_act_has_every_link_with_its_time() -> None:
    records = kept(rule_set(failover(tolerationSeconds=10)), [*STORY])
    seen = [fact for _, fact in STORY if isinstance(fact, Observation)]
    _, done = outcome(ID, "Done", at=15.2)
    assert isinstance(done, Outcome)
    found = chain(ID, records, seen, [done])
    assert found is not None
    assert found.observations == (
        "1970-01-01T00:00:00.000Z service/east/shop/a health Healthy",
        "1970-01-01T00:00:00.000Z service/east/shop/b health Healthy",
        "1970-01-01T00:00:05.000Z service/east/shop/a health Unhealthy: 0 of 2 are ready",
    )
    assert "service/east/shop/a: Unhealthy since 1970-01-01T00:00:05.000Z" in found.windows[0]
    assert "toleration began 1970-01-01T00:00:05.000Z" in found.windows[0]
    assert found.decision[0].startswith("1970-01-01T00:00:15.000Z PrimaryUnhealthy: the primary has been bad")
    assert "weights a=0 b=1" in found.write[0]
    assert found.outcomes == ("1970-01-01T00:00:15.200Z Done",)


def test_an_act_shows_each_window_and_the_looks_from_its_end_or_later() -> None:
    rules = rule_set(failover(tolerationSeconds=10))
    probe = {"signal": "probe", "source": "east-probe"}
    story = [
        route({"a": 1, "b": 0}), healthy("a", at=0, since=at(0), **probe), healthy("b", at=0, since=at(0), **probe),
        unhealthy("a", at=5, since=at(5), **probe), unhealthy("a", at=30, since=at(5), detail="HTTP 503", **probe),
        healthy("b", at=30.5, since=at(0), **probe),
    ]  # fmt: skip
    found = chain(ID, kept(rules, story), [], [])
    assert found is not None
    assert found.action["decidedAt"] == "1970-01-01T00:00:30.500000Z"
    assert found.action["provenAt"] == "1970-01-01T00:00:30Z"
    left, replacing = (line(one) for one in found.evidence)
    assert left == (
        "service/east/shop/a: Unhealthy, toleration 1970-01-01T00:00:05.000Z to 1970-01-01T00:00:15.000Z; "
        "probe by east-probe saw it at 1970-01-01T00:00:30.000Z, so since 1970-01-01T00:00:05.000Z (HTTP 503)"
    )
    assert replacing == (
        "service/east/shop/b: Healthy, no window; "
        "probe by east-probe saw it at 1970-01-01T00:00:30.500Z, so since 1970-01-01T00:00:00.000Z"
    )
    [held] = found.guards
    assert held == (
        "1970-01-01T00:00:17.000Z held SourceSilent: "
        "east-probe: not seen at 1970-01-01T00:00:15+00:00 or later: service/east/shop/a"
    )


def test_an_act_shows_that_the_present_contradicted_it_before() -> None:
    down = [route({"a": 1, "b": 0}), healthy("a", at=0), unhealthy("b", at=0), unhealthy("a", at=5)]
    story = [*down, healthy("a", at=30), healthy("b", at=30), unhealthy("a", at=40), unhealthy("a", at=50)]
    found = chain(ID, kept(rule_set(failover(tolerationSeconds=10, recoverySeconds=60)), story), [], [])
    assert found is not None
    assert any("held HealthyNow: service/east/shop/a is Healthy since" in one for one in found.guards)


def test_an_act_that_was_not_asked_for_has_no_chain() -> None:
    assert chain("web/nothing/9", kept(rule_set(failover()), [*STORY]), [], []) is None


def test_an_alert_is_told_what_it_reaches_and_what_not_and_why() -> None:
    am = {
        "name": "am", "kind": "AlertmanagerWebhook", "matchers": 'severity="page"', "onResolved": "Healthy",
        "target": "service/{cluster}/shop/a",
    }  # fmt: skip
    other = {**am, "name": "tickets", "matchers": 'severity=~"ticket|info"'}
    rules = load_rules([("r.yaml", rule_file(
        failover(backends=[{"service": "a"}, {"service": "b"}], tolerationSeconds=30), notification(signals=["other"]),
        failover(name="west", route={"cluster": "west", "kind": "TrafficSplit", "namespace": "x", "name": "y"},
                 backends=[{"service": "a"}, {"service": "b"}]),
        sources=[am, other],
    ))])  # fmt: skip
    lines = list(told(reach({"severity": "page", "cluster": "east"}, rules, at(0))))
    assert lines == [
        "source am: yes: says service/east/shop/a is Unhealthy, as signal am",
        "  rule web: yes: after 30 s, mode Enforce",
        "  rule oncall: no: counts only the signals other",
        "  rule west: no: service/east/shop/a is none of its targets",
        'source tickets: no: asks for severity=~"ticket|info", and the alert has severity="page"',
    ]
    assert next(told(reach({"severity": "page"}, rules, at(0)))) == (
        "source am: no: matches, and cannot name its target: label 'cluster' is missing or empty"
    )

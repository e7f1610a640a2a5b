"""Report of a backtest: reactions, flaps, false failovers, holds, and the difference between two versions."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health, Mode, Notify, Observation
from reactor.workbench.backtest.axis import axis
from reactor.workbench.backtest.picture import lane as picture
from rules.loader import RuleSet, load_rules
from rules.rehearsal.backtest.backtest_report import as_json, false_within, numbers
from rules.rehearsal.backtest.backtester import Sweep, backtest, sweep
from rules.rehearsal.backtest.compare import MOVED_SECONDS_MAX, compare
from rules.rehearsal.backtest.rule_story import (
    CHANGES_MAX,
    COLUMNS,
    HEALTHY,
    UNHEALTHY,
    UNHEARD,
    UNKNOWN,
    Act,
    Lane,
    Move,
    Played,
    RuleTimeline,
)
from rules.rehearsal.simulation import at
from tests.unit.backtest.builders import rules

H, U, X = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
Event = tuple[float, Observation]


def seen(second: float, service: str, status: Health) -> Event:
    target = f"service/east/shop/{service}"
    return second, Observation(target=target, status=status, observed_at=at(second))


def checkout(*, toleration: float = 10, recovery: float = 20, mode: str = "Enforce") -> RuleSet:
    of = rules(rule=f"    tolerationSeconds: {toleration}\n    recoverySeconds: {recovery}\n")
    return RuleSet(tuple(rule.model_copy(update={"mode": Mode(mode)}) for rule in of.rules))


def played(of: RuleSet, *events: Event, until: float = 1000) -> Played:
    start = [seen(0, "checkout", H), seen(0, "fallback", H)]
    return backtest(of, sorted([*start, *events], key=lambda event: event[0]), first=0, until=until)


def story(of: Played) -> RuleTimeline:
    (one,) = of.stories.values()
    return one


@pytest.mark.parametrize("mode", ["Enforce", "DryRun"])
def test_a_failover_is_told_with_its_reaction_and_its_length(mode: str) -> None:
    of = story(played(checkout(mode=mode), seen(100, "checkout", U), seen(200, "checkout", H)))
    away, home = of.acts
    assert (away.at, away.move, away.reaction_seconds, away.recovered_at) == (110, Move.AWAY, 10, 200)
    assert (home.at, home.move, home.reaction_seconds) == (220, Move.HOME, None)
    assert of.away == [("east/shop/TrafficSplit/checkout", 110, 220)]
    assert of.flaps == []


SHARED = """
apiVersion: reactor/v1
sources:
  - {name: up, kind: PrometheusQuery, prometheus: main, query: up, target: "custom/place/{place}",
     unhealthyWhen: {below: 1}}
  - {name: places, kind: Quorum, members: custom/place/*, target: cluster/east, signal: up, unhealthyAt: 2,
     minMembers: 3}
rules:
  - name: checkout
    kind: TrafficFailover
    mode: MODE
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    backends: [{service: checkout}, {service: fallback}]
    tolerationSeconds: 10
    recoverySeconds: 20
    guards: {maxUnhealthy: 1, peers: service/east/shop/*}
  - {name: taint, kind: ClusterTaint, mode: MODE, match: cluster/*, tolerationSeconds: 30, recoverySeconds: 60,
     taints: [{key: reactor/brownout, effect: NoExecute}]}
"""


@pytest.mark.parametrize("mode", ["Enforce", "DryRun"])
def test_peers_that_guards_count_and_a_quorum_decide_and_have_no_story_of_their_own(mode: str) -> None:
    of = load_rules([("shared.yaml", SHARED.replace("MODE", mode))])

    def word(second: float, target: str, status: Health) -> Event:
        return second, Observation(target=target, status=status, signal="up", observed_at=at(second))

    places = [f"custom/place/{place}" for place in "abc"]
    said = [word(0, target, H) for target in ["service/east/shop/checkout", "service/east/shop/fallback", *places]]
    said += [word(100, places[0], U), word(110, places[1], U), word(400, places[0], H)]
    said += [word(500, "service/east/shop/checkout", U), word(500, "service/east/shop/other", U)]
    told = backtest(of, said, first=0, until=1000).stories
    assert list(told) == ["checkout", "taint"]
    assert [(act.at, act.move, act.reaction_seconds) for act in told["taint"].acts] == [
        (140, Move.AWAY, 30), (460, Move.HOME, None),
    ]  # fmt: skip
    assert told["taint"].away == [("cluster/east", 140, 460)]
    assert told["checkout"].acts == []
    assert [wait.reason for wait in told["checkout"].waits] == ["WidespreadFailure"]


def test_a_bad_time_shorter_than_the_toleration_is_a_flap_avoided() -> None:
    of = story(played(checkout(), seen(100, "checkout", U), seen(104, "checkout", H)))
    assert of.acts == []
    assert [(flap.at, flap.seconds) for flap in of.flaps] == [(100, 4)]


def test_a_window_that_waits_is_still_open() -> None:
    of = story(played(checkout(), seen(100, "checkout", U), seen(105, "checkout", X), seen(300, "checkout", U)))
    assert [(act.at, act.reaction_seconds) for act in of.acts] == [(305, 205)]


def test_a_failover_is_false_when_its_target_was_soon_good_again() -> None:
    soon = story(played(checkout(), seen(100, "checkout", U), seen(140, "checkout", H)))
    late = story(played(checkout(), seen(100, "checkout", U), seen(141, "checkout", H)))
    within = false_within([soon.rule])
    assert within == {"checkout": 30}
    assert [act.false(30) for act in (soon.acts[0], late.acts[0])] == [True, False]
    assert numbers([soon], within).false_failovers == 1


def test_what_is_open_at_the_end_is_counted_until_the_end() -> None:
    of = story(played(checkout(), seen(900, "checkout", U), seen(950, "fallback", U)))
    assert of.away_seconds == 90
    assert [(wait.reason, wait.at, wait.until) for wait in of.waits] == [("NoHealthySecondary", 960, 1000)]


def test_a_hold_ends_when_its_reason_does() -> None:
    of = story(played(checkout(), seen(0, "fallback", U), seen(100, "checkout", U), seen(200, "fallback", H)))
    assert [(wait.reason, wait.at, wait.until) for wait in of.waits] == [("NoHealthySecondary", 110, 200)]
    assert of.acts[0].at == 200


def test_a_lane_keeps_the_worst_of_each_part() -> None:
    of = story(played(checkout(), seen(500, "checkout", U), seen(500.2, "checkout", H)))
    lane = of.lanes["east/shop/TrafficSplit/checkout", "service/east/shop/checkout"]
    assert lane.columns.count(UNHEALTHY) == 1
    assert lane.columns.count(HEALTHY) == COLUMNS - 1
    assert lane.columns[500] == UNHEALTHY
    assert lane.bad_seconds == pytest.approx(0.2)
    assert UNHEARD not in lane.columns


def test_a_lane_has_each_change_at_its_moment() -> None:
    of = story(played(checkout(), seen(500.25, "checkout", U), seen(500.5, "checkout", H), seen(700, "checkout", X)))
    lane = of.lanes["east/shop/TrafficSplit/checkout", "service/east/shop/checkout"]
    assert list(lane.spans(1000)) == [
        (0, 500.25, HEALTHY), (500.25, 500.5, UNHEALTHY), (500.5, 700, HEALTHY), (700, 1000, UNKNOWN),
    ]  # fmt: skip
    drawn = re.findall(r'class="(\w+)" x="([\d.]+)" y="\d+" width="([\d.]+)"', picture(lane, axis(0, 1000), 1000))
    assert drawn == [
        ("good", "0", "500.25"), ("good", "500.5", "199.5"), ("unknown", "700", "300"), ("bad", "500.25", "0.25"),
    ]  # fmt: skip


def test_a_lane_with_too_many_changes_goes_on_with_the_worst_of_each_part() -> None:
    lane = Lane("o", "t")
    for number in range(CHANGES_MAX + 10):
        lane.note(number / 2, UNHEALTHY if number % 2 else HEALTHY)
    lane.columns[501:503] = bytes([UNHEALTHY]) * 2
    assert lane.exact_until == CHANGES_MAX / 2
    assert len(lane.starts) == len(lane.states) == CHANGES_MAX
    assert list(lane.spans(1000))[-1] == (499.5, 500, UNHEALTHY)
    assert '<rect class="bad" x="501" y="0" width="2" height="20"/>' in picture(lane, axis(0, 1000), 1000)


def test_a_sweep_plays_the_same_past_with_each_value() -> None:
    events = [seen(0, "checkout", H), seen(0, "fallback", H), seen(100, "checkout", U), seen(120, "checkout", H)]
    rows = list(sweep(checkout(), lambda: events, Sweep("tolerationSeconds", (0, 20, 40)), first=0, until=500))
    assert [(value, len(story(one).acts), len(story(one).flaps)) for value, one in rows] == [
        (0, 2, 0),
        (20, 0, 1),
        (40, 0, 1),
    ]


def test_the_report_can_be_written_and_is_the_same_twice() -> None:
    def report() -> str:
        of = played(checkout(), seen(100, "checkout", U), seen(200, "checkout", H))
        return json.dumps(as_json(of, {"checkout": 30}, pairs=compare(of, of), swept=("tolerationSeconds", [(0, of)])))

    assert report() == report()
    assert json.loads(report())["compare"] == {"same": 2, "onlyA": [], "onlyB": [], "moved": []}


def acts(*seconds: float) -> Played:
    of = rules()
    made = [
        Act(second, Notify(id="i", rule="checkout", object="o", generation=1, mode=Mode.ENFORCE, because="B",
                           decided_at=at(second), message="m"), (), Move.AWAY)
        for second in seconds
    ]  # fmt: skip
    return Played(0, 10**6, {"checkout": RuleTimeline(of.rules[0], acts=made)}, 0)


def test_two_actions_far_apart_are_two() -> None:
    pairs = compare(acts(100, 9000), acts(130, 9000 + 2 * MOVED_SECONDS_MAX))
    assert [pair.moved_seconds for pair in pairs] == [30, None, None]


def test_the_nearest_belong_together() -> None:
    pairs = compare(acts(0, 600), acts(610))
    assert [(pair.a and pair.a.at, pair.b and pair.b.at) for pair in pairs] == [(0, None), (600, 610)]


SECONDS = st.lists(st.integers(0, 20_000), unique=True, max_size=12).map(sorted)


@given(SECONDS, SECONDS)
def test_no_action_is_lost_in_a_comparison(a: list[int], b: list[int]) -> None:
    pairs = compare(acts(*a), acts(*b))
    assert [pair.a.at for pair in pairs if pair.a] == a or sorted(p.a.at for p in pairs if p.a) == a
    assert sorted(pair.b.at for pair in pairs if pair.b) == b
    assert all(pair.same for pair in compare(acts(*a), acts(*a)))

"""A window that restarts says so, and why: in the group, in `status`, in `explain`, and in the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from reactor.decide.encoder import RESTARTS_MAX, report_restarts
from rules.core.group import Group
from rules.core.member import Member, WindowRestart
from rules.engine.decide import Decision, decide
from rules.rehearsal.causal_chain import chain
from rules.rehearsal.simulation import at
from rules.summary import summary
from tests.unit.rules.builders import Event, failover, healthy, route, rule_set, seen, step, the_rule, unhealthy
from tests.unit.rules.test_replay import kept

A = "service/east/shop/a"
RULE = the_rule(tolerationSeconds=10, recoverySeconds=20)
RESTART = WindowRestart(at(12), at(8), "probe")
WORDS = "window restarted, as no look of probe since 1970-01-01T00:00:08.000Z shows that it lasted"


def look(service: str, status: str, moment: float, since: float, **more: Any) -> Event:
    """Observation by a source that can be asked, and since when without a break."""
    given = {"signal": "probe", "source": "probe", **more}
    return seen(service, status, at=moment, since=at(since), **given)


STANDS = (route({"a": 1, "b": 0}), look("a", "Healthy", 0, 0), look("b", "Healthy", 0, 0))
BAD = (look("a", "Unhealthy", 5, 5), look("a", "Unhealthy", 8, 5))
RESTARTED = look("a", "Unhealthy", 12, 12)


def after(*events: Event) -> Decision:
    """The decision on the last event, after those on the others, each at its second."""
    group: Group | None = None
    for event in events:
        found = step(RULE, group, event[0], event)
        group = found.group
    return found


def member(*events: Event) -> Member:
    return after(*events).group.members[A]


def test_the_first_look_after_a_time_without_one_says_since_when_nothing_is_proven() -> None:
    found = member(*STANDS, *BAD, RESTARTED)
    assert found.restart == RESTART
    assert found.window is not None
    assert found.window.since == at(12)


def test_a_window_that_goes_on_has_begun_once() -> None:
    assert member(*STANDS, *BAD).restart is None
    assert member(*STANDS, *BAD, look("a", "Unhealthy", 12, 5)).restart is None


def test_a_window_that_another_signal_proves_goes_on() -> None:
    other = look("a", "Unhealthy", 6, 6, signal="watch", source="watch")
    later = look("a", "Unhealthy", 13, 6, signal="watch", source="watch")
    assert member(*STANDS, BAD[0], other, BAD[1], RESTARTED, later).restart is None


def test_a_source_that_was_silent_meanwhile_and_speaks_again_restarts_it() -> None:
    bad = seen("a", "Unhealthy", at=5, since=at(5), signal="probe", source="probe", stale=4)
    found = member(*STANDS, bad, look("b", "Healthy", 10, 0), RESTARTED)
    assert found.restart == WindowRestart(at(12), at(5), "probe")
    waits = member(*STANDS, bad, look("b", "Healthy", 10, 0))
    assert waits.window is not None
    assert waits.window.waiting_since == at(9)


def test_it_is_forgotten_with_the_status() -> None:
    found = member(*STANDS, *BAD, RESTARTED, look("a", "Healthy", 14, 14))
    assert found.restart is None


def test_status_says_why() -> None:
    group = after(*STANDS, *BAD, RESTARTED).group
    assert summary(group, RULE).detail == f"{A}: Unhealthy ({WORDS})"


def test_explain_says_why_the_window_of_an_act_began_later_than_the_failure() -> None:
    rules = rule_set(failover(tolerationSeconds=10, recoverySeconds=20))
    acts = [look("a", "Unhealthy", 22.5, 12), look("b", "Healthy", 22.5, 0)]
    found = chain("web/east/shop/TrafficSplit/web/1", kept(rules, [*STANDS, *BAD, RESTARTED, *acts]), [], [])
    assert found is not None
    assert found.windows[0].endswith(
        "toleration began 1970-01-01T00:00:12.000Z; restarted 1970-01-01T00:00:12.000Z, as no look of probe since "
        "1970-01-01T00:00:08.000Z shows that it lasted"
    )


def test_the_log_says_it_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    story = [*STANDS, *BAD, RESTARTED, look("b", "Healthy", 13, 0)]
    for number in range(1, len(story) + 1):
        report_restarts([after(*story[:number])])
    [line] = caplog.records
    assert line.getMessage() == WORDS
    assert getattr(line, "target", "") == A


def test_the_log_says_it_of_what_is_read_to_catch_up(caplog: pytest.LogCaptureFixture) -> None:
    """A decider that has taken a partition over reads what came meanwhile before it decides."""
    caplog.set_level(logging.INFO)
    group = after(*STANDS, *BAD).group
    caught_up = decide(RULE, group, [RESTARTED[1]], at(12), known=False)
    report_restarts([caught_up])
    report_restarts([decide(RULE, caught_up.group, [], at(12))])
    assert [one.getMessage() for one in caplog.records] == [WORDS]


def test_of_many_windows_that_restart_together_a_few_have_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    report_restarts([after(*STANDS, *BAD, RESTARTED)] * (RESTARTS_MAX + 90))
    lines = [one.getMessage() for one in caplog.records]
    assert lines == [WORDS] * RESTARTS_MAX + ["90 more windows restarted: `reactor status` shows each"]


def test_what_reports_no_begin_is_taken_to_have_lasted() -> None:
    told = member(route({"a": 1, "b": 0}), healthy("a", at=0), unhealthy("a", at=5), unhealthy("a", at=500))
    assert told.restart is None

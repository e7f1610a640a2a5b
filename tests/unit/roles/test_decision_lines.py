"""The log has one line for each decision that changes something: an action, or a hold that begins."""

from __future__ import annotations

import logging

import pytest

from reactor.decide.encoder import report
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import Event, failover, healthy, paused, route, rule_set, unhealthy

WELL = (route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0))


def lines(caplog: pytest.LogCaptureFixture, *events: Event) -> list[tuple[str, str]]:
    """Log lines about the decisions of one history: the words, and the rule that they are about."""
    group_store = GroupStore(Routing(rule_set(failover()).rules))
    with caplog.at_level(logging.INFO, "reactor.decide.encoder"):
        for second, fact in events:
            for decision in group_store.apply([fact], at(second)):
                report(decision)
    return [(record.getMessage(), vars(record)["rule"]) for record in caplog.records]


def test_what_changes_nothing_has_no_line(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, *WELL, healthy("a", at=5), healthy("b", at=6)) == []


def test_an_action_has_one_line_however_often_its_facts_are_repeated(caplog: pytest.LogCaptureFixture) -> None:
    bad = [unhealthy("a", at=second) for second in (10, 11, 12)]
    assert lines(caplog, *WELL, *bad) == [("SetWeights", "web")]


def test_a_hold_has_one_line_when_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    bad = [unhealthy("a", at=second) for second in (10, 11, 12)]
    assert lines(caplog, *WELL, paused(at=5), *bad) == [("on hold", "web")]

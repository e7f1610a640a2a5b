"""Rules that only tell people."""

from __future__ import annotations

from bus.messages import Notify
from rules.catalog import new_group
from rules.engine.decide import decide
from rules.rehearsal.simulation import at
from rules.rulefile.template import substitute
from tests.unit.rules.builders import (
    backends,
    failover,
    healthy,
    notification,
    route,
    rule_set,
    said,
    seen,
    unhealthy,
    unknown,
    words,
)


def test_people_are_told_when_a_target_turns_bad_and_when_it_is_good_again() -> None:
    rule = notification(message="{target} is {status}")
    story = (healthy("a", at=0), unhealthy("a", at=5), healthy("a", at=9))
    assert words(rule, *story) == [
        (5, "service/east/shop/a is Unhealthy"), (9, "service/east/shop/a is Healthy"),
    ]  # fmt: skip


def test_a_target_that_was_good_from_the_start_is_no_news() -> None:
    assert words(notification(), healthy("a", at=0), healthy("a", at=50)) == []


def test_a_target_that_is_bad_when_it_is_first_seen_is_news() -> None:
    assert [at_ for at_, _ in words(notification(), unhealthy("a", at=3))] == [3]


def test_a_flap_shorter_than_the_toleration_is_no_news() -> None:
    story = (healthy("a", at=0), unhealthy("a", at=5), healthy("a", at=9), unhealthy("a", at=20))
    assert [at_ for at_, _ in words(notification(tolerationSeconds=10), *story)] == [30]


def test_not_knowing_is_no_news() -> None:
    assert words(notification(), healthy("a", at=0), unknown("a", at=5)) == []


def test_only_targets_that_match_are_told_of() -> None:
    rule = notification(match="service/*/shop/check*")
    story = (unhealthy("checkout", at=1), unhealthy("cart", at=2), unhealthy("service/west/shop/check", at=3))
    assert [at_ for at_, _ in words(rule, *story)] == [1, 3]


def test_each_target_is_told_of_on_its_own() -> None:
    assert len(words(notification(), *(unhealthy(f"s{n}", at=n) for n in range(20)))) == 20


def test_a_message_takes_labels_and_leaves_what_it_does_not_know() -> None:
    rule = notification(message="{severity} on {target}: {detail} ({runbook})")
    story = seen("a", "Unhealthy", at=5, labels={"severity": "page"}, detail="HTTP 503")
    assert words(rule, story) == [(5, "page on service/east/shop/a: HTTP 503 ({runbook})")]


def test_a_label_cannot_take_the_place_of_the_targets_own_words() -> None:
    story = seen("a", "Unhealthy", at=5, labels={"target": "other", "status": "fine"})
    assert words(notification(message="{target} {status}"), story) == [(5, "service/east/shop/a Unhealthy")]


def test_a_text_from_outside_is_never_read_as_a_format() -> None:
    hostile = "{target.__class__} {0} {} %s {status!r} {detail"
    assert substitute(hostile, {"target": "t", "status": "s", "detail": "{target}"}) == hostile
    assert substitute("{detail}", {"detail": "{target}", "target": "t"}) == "{target}"


def test_the_message_says_since_when() -> None:
    told = words(notification(tolerationSeconds=10), healthy("a", at=0), unhealthy("a", at=5))
    assert told == [(15, "service/east/shop/a is Unhealthy since 1970-01-01T00:00:05Z")]


def test_a_dry_run_only_says_what_it_would_tell() -> None:
    [one] = said(notification(mode="DryRun"), unhealthy("a", at=5))
    assert getattr(one.what, "mode", None) == "DryRun"


def test_a_notification_goes_to_those_that_the_rule_names() -> None:
    [one] = said(notification(notify=["chat", "pager"]), unhealthy("a", at=5))
    assert getattr(one.what, "to", None) == ("chat", "pager")


def test_a_message_is_owed_until_it_is_delivered() -> None:
    rule = rule_set(notification()).rules[0]
    group = new_group(rule, "service/east/shop/a")
    first = decide(rule, group, [unhealthy("a", at=5)[1]], at(5))
    assert first.group.next_deadline == at(20)
    assert decide(rule, first.group, (), at(20)).actions == first.actions


def test_what_is_told_last_says_that_it_is_over() -> None:
    """So that an incident that was opened for it is closed."""
    story = (healthy("a", at=0), unhealthy("a", at=5), healthy("a", at=9))
    told = [one.what for one in said(notification(), *story)]
    assert [word.resolves for word in told if isinstance(word, Notify)] == [False, True]
    moved = [route({"a": 1, "b": 0}), healthy("b", at=0), *story]
    told = [one.what for one in said(failover(backends=backends("a", "b"), notify=["oncall"]), *moved)]
    assert [(word.because, word.resolves) for word in told if isinstance(word, Notify)] == [
        ("PrimaryUnhealthy", False), ("PrimaryHealthy", True),
    ]  # fmt: skip

"""What moves dates alone is no news; a copy with other fields is what dataclasses.replace gives."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from bus.messages import Health
from rules.core.group import Group, Holding, Member, NoState, Signal, Window, keep, kept
from rules.core.values import replace
from rules.engine.news import is_news

AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = AT + timedelta(seconds=30)


def _group(**changes: object) -> Group:
    member = Member(Health.HEALTHY, AT, True, AT, signals={"ready": Signal(Health.HEALTHY, AT, LATER)})
    return Group("rule", "object", NoState(), members={"a": replace(member, **changes)})


def test_a_word_that_is_said_again_is_no_news() -> None:
    again = _group(signals={"ready": Signal(Health.HEALTHY, LATER, LATER + timedelta(seconds=90), detail="2 ready")})
    assert not is_news(_group(), replace(again, position=7, next_deadline=LATER))


@pytest.mark.parametrize(
    "group",
    [
        _group(status=Health.UNHEALTHY),
        _group(settled=False),
        _group(window=Window(healthy=False, since=AT)),
        _group(signals={"ready": Signal(Health.UNKNOWN, AT)}),
        _group(signals={}),
        replace(_group(), held=Holding("Paused", "", AT)),
        replace(_group(), generation=2),
        replace(_group(), members={}),
    ],
)
def test_whatever_else_changes_is_news(group: Group) -> None:
    assert is_news(_group(), group)
    assert is_news(None, group)


def test_a_copy_is_what_the_standard_library_gives_and_keeps_nothing_that_was_computed() -> None:
    member = _group().members["a"]
    keep(member, "computed")
    copy = replace(member, status=Health.UNHEALTHY)
    assert copy == dataclasses.replace(member, status=Health.UNHEALTHY)
    assert (kept(member), kept(copy)) == ("computed", None)
    assert replace(NoState()) == NoState()
    with pytest.raises(KeyError):
        replace(member, stauts=Health.UNHEALTHY)

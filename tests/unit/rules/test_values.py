"""Copies of values: as dataclasses.replace makes them, and without what was computed of the value before."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from bus.messages import Health
from rules.core.member import Member, Signal, keep
from rules.core.values import replace

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def test_a_copy_is_what_dataclasses_makes() -> None:
    values: tuple[Any, ...] = (
        Signal(Health.HEALTHY, NOW, labels={"a": "b"}),
        Member(Health.UNKNOWN, NOW, settled=True),
    )
    for value in values:
        for field in dataclasses.fields(value):
            copy = replace(value, **{field.name: "other"})
            assert copy == dataclasses.replace(value, **{field.name: "other"})
            assert type(copy) is type(value)


def test_a_copy_begins_without_what_was_computed_of_the_value() -> None:
    member = Member(Health.HEALTHY, NOW)
    keep(member, "computed")
    assert getattr(replace(member), "kept", None) is None


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError):
        replace(Member(Health.HEALTHY, NOW), stauts=Health.UNKNOWN)


def test_what_checks_itself_when_it_is_made_is_never_copied_unchecked() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        percent: int

        def __post_init__(self) -> None:
            assert self.percent <= 100

    with pytest.raises(TypeError, match="checks itself"):
        replace(Checked(1), percent=101)

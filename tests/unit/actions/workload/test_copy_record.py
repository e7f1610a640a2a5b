"""The record that a copy carries is read, and anyone may have edited it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import CopyRecord
from reactor.actions.workload.copy_record import NAMES_MAX, record_of

DECISION = {"reactor/decision": "nginx/shop/Deployment/nginx/7"}


@pytest.mark.parametrize(
    ("notes", "record"),
    [
        ({}, CopyRecord()),
        (DECISION, CopyRecord(rule="nginx")),
        ({**DECISION, "reactor/evicting": "any"}, CopyRecord(rule="nginx", leaves="TolerationElapsed")),
        ({**DECISION, "reactor/evicting-because": "Recovered"}, CopyRecord(rule="nginx")),
        ({"reactor/evicting": "", "reactor/evicting-because": "Recovered"}, CopyRecord(leaves="Recovered")),
        ({"reactor/placed-for": "m1,,m\x002,m3"}, CopyRecord(placed_for=("m1", "m3"))),
        ({"reactor/decision": "\x1b/x/1"}, CopyRecord()),
    ],
)
def test_annotations_are_read(notes: Mapping[str, str], record: CopyRecord) -> None:
    assert record_of(None, notes) == record


def test_its_time_of_creation_is_read() -> None:
    assert record_of("2030-01-01T00:00:00Z", {}).created_at is not None
    for wrong in (None, "", "yesterday", "2030-01-01T00:00:00", 7):
        assert record_of(wrong, {}).created_at is None


@given(st.dictionaries(st.sampled_from(["decision", "evicting", "evicting-because", "evicting-for", "placed-for"]),
                       st.text(max_size=2000)))  # fmt: skip
def test_nothing_that_anyone_writes_is_refused(notes: Mapping[str, str]) -> None:
    found = record_of("2030-01-01T00:00:00Z", {f"reactor/{key}": value for key, value in notes.items()})
    assert CopyRecord.model_validate_json(found.model_dump_json()) == found
    assert len(found.stays) <= NAMES_MAX

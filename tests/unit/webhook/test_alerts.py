"""One alert: what is read, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.alerts.alert import ALERT_BYTES_MAX, Alert, BadAlert, fingerprint_of, from_api
from tests.examples import many
from tests.unit.webhook.builders import alert, moment


def test_go_zero_time_is_no_end() -> None:
    assert Alert.read(alert()).ends_at is None
    assert Alert.read(alert() | {"endsAt": "0001-01-01T00:00:00+05:00"}).ends_at is None
    assert Alert.read(alert(firing=False, ends=7)).ends_at == moment(7)


def test_keys_that_a_newer_alertmanager_adds_are_left_alone() -> None:
    assert Alert.read(alert() | {"notification_reason": {"new": [1]}}) == Alert.read(alert())


def test_nanoseconds_are_read() -> None:
    read = Alert.read(alert() | {"startsAt": "2026-01-01T00:00:01.123456789Z"})
    assert read.starts_at is not None
    assert read.starts_at.microsecond == 123456


@pytest.mark.parametrize("given_", [None, "", "two words", "x" * 65, 7, "a\0b"])
def test_a_fingerprint_that_cannot_be_used_is_computed_from_the_labels(given_: object) -> None:
    raw = alert() | {"fingerprint": given_}
    assert Alert.read(raw).fingerprint == fingerprint_of(raw["labels"])
    assert len(fingerprint_of(raw["labels"])) == 16


def test_a_computed_fingerprint_does_not_depend_on_the_order_of_labels() -> None:
    assert fingerprint_of({"a": "1", "b": "2"}) == fingerprint_of({"b": "2", "a": "1"}) != fingerprint_of({"a": "1"})


LABELS = {"alertname": "Down"}
BAD: dict[str, Any] = {
    "NUL in a label's value": alert(cluster="e\0ast"),
    "NUL in a label's name": alert() | {"labels": {"a\0b": "x"}},
    "no labels": alert() | {"labels": {}},
    "labels are a list": alert() | {"labels": ["x"]},
    "65 labels": alert() | {"labels": {f"l{n}": "x" for n in range(65)}},
    "a label of 10 kB": alert(cluster="x" * 10_000),
    "a label that is a number": alert() | {"labels": {"a": 1}},
    "an unknown status": alert() | {"status": "pending"},
    "no status": {key: value for key, value in alert().items() if key != "status"},
    "a date that is none": alert() | {"startsAt": "yesterday"},
    "a month that is none": alert() | {"startsAt": "2026-13-01T00:00:00Z"},
    "a time without a zone": alert() | {"startsAt": "2026-01-01T00:00:00"},
    "a number as a time": alert() | {"startsAt": 1e18},
    "a numeric text as a time": alert() | {"startsAt": "1767225600"},
    "too large in all": alert() | {"labels": {f"l{n}": "\u20ac" * 4000 for n in range(64)}},
    "null": None,
    "a text": "Down",
    "a list": [],
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_an_alert_that_breaks_a_limit_is_refused_with_a_short_reason(raw: Any) -> None:
    with pytest.raises(BadAlert) as refused:
        Alert.read(raw).journal()
    assert 5 < len(str(refused.value)) < 200
    assert "xxx" not in str(refused.value)


def test_long_annotations_are_cut_and_cost_no_alert() -> None:
    raw = alert() | {"annotations": {"summary": "x" * 1_000_000, "nul": "a\0b", "number": 7}}
    text = Alert.read(raw).journal()
    read = json.loads(text)
    assert len(read["annotations"]["summary"]) == 4096
    assert read["annotations"]["nul"] == "ab"
    assert len(text) < ALERT_BYTES_MAX


def test_what_is_journaled_reads_back_as_the_same_alert() -> None:
    read = Alert.read(alert(firing=False, ends=7, cluster="Zürich 🚦 {{ }} <script> ../ * >"))
    assert Alert.read(json.loads(read.journal())) == read


def test_an_alert_of_the_api_fires_and_says_whether_a_person_silenced_it() -> None:
    raw = alert() | {"status": {"state": "suppressed", "silencedBy": ["s"]}, "updatedAt": "2026-01-01T00:00:05Z"}
    read, active = from_api(raw | {"endsAt": "2026-01-01T00:04:00Z"})
    assert (read.status, read.ends_at, read.updated_at, active) == ("firing", None, moment(5), False)
    assert from_api(raw | {"status": {"state": "active"}})[1]
    assert not from_api(raw | {"status": {"state": "active", "mutedBy": ["night"]}})[1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@many(100)
@given(st.dictionaries(st.sampled_from([*alert(), "updatedAt", "x"]), JSON), st.sampled_from(list(alert())))
def test_whatever_comes_is_read_or_refused_and_nothing_else(changes: dict[str, Any], dropped: str) -> None:
    raw = alert() | changes
    raw.pop(dropped)
    try:
        again = Alert.read(raw).journal()
    except BadAlert:
        return
    assert Alert.read(json.loads(again)).journal() == again

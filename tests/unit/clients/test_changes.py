"""Watch events and objects, whatever they look like."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.clients.changes import is_earlier, key_of, parsed_event, strings_of, version_of
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.clients.watching import Expired


def test_an_event_is_its_type_and_its_object() -> None:
    assert parsed_event("here", b'{"type":"ADDED","object":{"a":1}}\n') == ("ADDED", {"a": 1})


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"{}",
        b"[]",
        b'"x"',
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":7}',
        b'{"type":"AD',
        b"\xff",
        b'{"type":"ADDED","object":' + b'{"a":' * 100_000,
    ],
)
def test_anything_else_is_no_event(line: bytes) -> None:
    with pytest.raises(ApiUnavailable, match="here"):
        parsed_event("here", line)


@pytest.mark.parametrize(("code", "kind"), [(410, Expired), (500, ApiUnavailable), (None, ApiUnavailable)])
def test_an_error_event_ends_the_watch(code: int | None, kind: type[Exception]) -> None:
    line = b'{"type":"ERROR","object":{"code":%s}}' % str(code or "null").encode()
    with pytest.raises(ApiUnavailable) as ended:
        parsed_event("here", line)
    assert type(ended.value) is kind


@pytest.mark.parametrize("found", [None, 7, {}, {"metadata": 7}, {"metadata": {}}, {"metadata": {"name": ""}}])
def test_an_object_without_a_name_has_no_key(found: Any) -> None:
    assert key_of(found) is None
    assert version_of(found) == ""


def test_only_text_is_a_label() -> None:
    assert strings_of({"a": "1", "b": 2, "c": None}) == {"a": "1"}
    assert strings_of(None) == {}


@given(st.binary(max_size=80))
def test_any_line_is_an_event_or_refused(line: bytes) -> None:
    with contextlib.suppress(ApiUnavailable):
        parsed_event("here", line)


@pytest.mark.parametrize(
    ("version", "other", "earlier"),
    [
        ("9", "10", True), ("10", "9", False), ("10", "10", False), ("", "10", False), ("9", "", False),
        ("a9", "b10", False), ("-1", "10", False), ("9" * 5000, "1", False), ("1", "9" * 5000, False),
    ],
)  # fmt: skip
def test_only_numbers_tell_which_of_two_versions_is_earlier(version: str, other: str, earlier: bool) -> None:
    assert is_earlier(version, other) is earlier

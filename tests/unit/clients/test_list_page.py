"""A page of a LIST: what it says is found in either order of keys, and objects in other words have another digest."""

from __future__ import annotations

import json

import pytest

from reactor.clients.list_page import ListPage

ONE = {"metadata": {"name": "web", "resourceVersion": "7"}, "ports": [80, 81], "note": '"items":[]'}
METADATA = {"resourceVersion": "12", "continue": "more"}


def built_in(items: object, metadata: object = METADATA) -> bytes:
    return json.dumps({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


def custom(items: object, metadata: object = METADATA) -> bytes:
    return json.dumps(
        {"apiVersion": "v1", "items": items, "kind": "List", "metadata": metadata}, separators=(",", ":")
    ).encode()


@pytest.mark.parametrize("text", [built_in([ONE, ONE]), custom([ONE, ONE])])
def test_it_is_read_in_either_order_of_keys(text: bytes) -> None:
    page = ListPage(text)
    assert (page.version, page.token, page.items) == ("12", "more", [ONE, ONE])


@pytest.mark.parametrize("form", [built_in, custom])
def test_the_same_objects_have_the_same_digest_whatever_the_lists_own_metadata(form: type) -> None:
    later, other = {"resourceVersion": "13"}, {**ONE, "ports": [80]}
    assert ListPage(form([ONE])).digest == ListPage(form([ONE], later)).digest != b""
    assert ListPage(form([ONE])).digest != ListPage(form([other])).digest


@pytest.mark.parametrize("items", [None, []])
def test_an_empty_list_has_no_objects(items: object) -> None:
    assert ListPage(built_in(items)).items == []


def test_a_key_of_the_same_name_elsewhere_is_not_taken_for_the_objects() -> None:
    page = ListPage(b'{"metadata": {"resourceVersion": "1", "items": [3]}, "items": [{"a": [1]}]}')
    assert (page.version, page.items) == ("1", [{"a": [1]}])


@pytest.mark.parametrize("text", [b"", b"<html>", b"[1]", b'{"items": [{"a": [1]', b'{"items": [1}'])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of them
        ListPage(text)


def test_half_a_page_is_refused_when_it_is_read() -> None:
    page = ListPage(b'{"metadata": {"resourceVersion": "1"}, "items": [{"a": [1]}')
    with pytest.raises(ValueError, match="Expecting"):
        _ = page.items


def test_items_that_are_no_list_are_refused() -> None:
    with pytest.raises(ValueError, match="no list"):
        _ = ListPage(b'{"metadata": {"resourceVersion": "1"}, "items": {"a": 1}}').items

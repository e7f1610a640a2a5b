"""Meaning of each refusal of a Kubernetes API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.clients.api_refusals import JSON_PATCH, RefusedRequest, permission, refusal
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound, ObjectNotFound
from reactor.clients.watching import Expired
from reactor.runtime.errors import Retryable, Terminal

SPLIT = "/apis/split.smi-spec.io/v1alpha2/namespaces/shop/trafficsplits/checkout"
REJECTED = "the server rejected our request due to an error in our request"
BROKEN = 'TrafficSplit.split.smi-spec.io "checkout" is invalid: spec.service: Invalid value: "integer"'


def asked(method: str = "GET", path: str = SPLIT, content_type: str = "", **query: str) -> RefusedRequest:
    return RefusedRequest("east", method, path, query, content_type)


def status(message: str, **more: Any) -> bytes:
    return json.dumps({"kind": "Status", "status": "Failure", "message": message, **more}).encode()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Invalid), (401, Forbidden), (403, Forbidden), (404, NotFound), (405, Invalid), (408, ApiUnavailable),
        (409, Conflict), (410, Expired), (413, Invalid), (415, Invalid), (422, Invalid), (429, ApiUnavailable),
        (500, ApiUnavailable), (502, ApiUnavailable), (503, ApiUnavailable), (504, ApiUnavailable), (301, Invalid),
    ],
)  # fmt: skip
def test_every_status_is_one_of_our_errors(code: int, kind: type[Exception]) -> None:
    assert type(refusal(asked(), code, status("why"), {})) is kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [(REJECTED, Conflict), ("testing value /spec/x failed", Conflict), ("test failed", Conflict), (BROKEN, Invalid)],
)
def test_a_patch_that_does_not_fit_any_more_is_a_conflict(message: str, kind: type[Exception]) -> None:
    assert type(refusal(asked("PATCH", content_type=JSON_PATCH), 422, status(message), {})) is kind


def test_the_same_words_about_a_new_object_are_no_conflict() -> None:
    assert type(refusal(asked("POST"), 422, status(REJECTED), {})) is Invalid


def test_a_message_names_the_cluster_the_request_and_the_servers_words() -> None:
    found = str(refusal(asked(), 404, status('trafficsplits "checkout" not found'), {}))
    assert found == f'east: GET {SPLIT} was answered 404: trafficsplits "checkout" not found'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (status('trafficsplits "checkout" not found', details={"name": "checkout"}), ObjectNotFound),
        (status('trafficsplits "checkout" not found'), ObjectNotFound),
        (status("the server could not find the requested resource"), NotFound),
        (status("the server could not find the requested resource", details={}), NotFound),
        (b"404 page not found\n", NotFound),
        (b"<html><body>default backend - 404</body></html>", NotFound),
    ],
)  # fmt: skip
def test_only_a_404_that_names_the_object_says_that_it_is_not_there(body: bytes, kind: type[Exception]) -> None:
    assert type(refusal(asked(), 404, body, {})) is kind


def test_a_page_of_a_proxy_is_cut_short() -> None:
    found = str(refusal(asked(), 502, b"<html>\n<body>" + b"x" * 9000, {}))
    assert "<html> <body>x" in found
    assert len(found) < 500


@pytest.mark.parametrize(
    ("headers", "details", "after"),
    [
        ({"Retry-After": "3"}, {}, 3.0),
        ({}, {"retryAfterSeconds": 4}, 4.0),
        ({"Retry-After": "3"}, {"retryAfterSeconds": 4}, 3.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
        ({"Retry-After": "-1"}, {}, None),
        ({"Retry-After": "inf"}, {}, None),
        ({"Retry-After": "nan"}, {}, None),
        ({}, {}, None),
    ],
)
def test_the_wait_that_is_asked_for_is_kept(
    headers: Mapping[str, str], details: Mapping[str, Any], after: float | None
) -> None:
    found = refusal(asked(), 429, status("slow down", details=details), headers)
    assert isinstance(found, Retryable)
    assert found.after == after


@pytest.mark.parametrize(
    ("request_", "needed"),
    [
        (asked(), ("get", "split.smi-spec.io", "trafficsplits", "shop")),
        (asked("PATCH"), ("patch", "split.smi-spec.io", "trafficsplits", "shop")),
        (asked(path="/api/v1/services"), ("list", "", "services", "")),
        (asked(path="/api/v1/services", watch="true"), ("watch", "", "services", "")),
        (asked(path="/api/v1/namespaces/shop/services"), ("list", "", "services", "shop")),
        (asked(path="/api/v1/namespaces/shop"), ("get", "", "namespaces", "")),
        (asked("POST", "/api/v1/namespaces/shop/events"), ("create", "", "events", "shop")),
        (asked("POST", "/api/v1/namespaces/shop/pods/a/eviction"), ("create", "", "pods/eviction", "shop")),
        (asked(path="/apis/apps/v1/deployments"), ("list", "apps", "deployments", "")),
    ],
)
def test_a_missing_permission_is_named_as_rbac_needs_it(request_: RefusedRequest, needed: tuple[str, ...]) -> None:
    assert permission(request_) == needed


@given(
    st.sampled_from(["GET", "POST", "PATCH", "PUT", "DELETE"]),
    st.text(max_size=30),
    st.integers(300, 599),
    st.binary(max_size=60),
    st.dictionaries(st.just("Retry-After"), st.text(max_size=9)),
)
def test_any_answer_is_one_of_our_errors(
    method: str, path: str, code: int, body: bytes, headers: dict[str, str]
) -> None:
    assert isinstance(refusal(asked(method, f"/{path}"), code, body, headers), Retryable | Terminal)

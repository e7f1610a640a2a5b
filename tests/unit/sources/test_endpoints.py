"""Counting ready endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.sources.kubernetes.endpoints import project_service, project_slice, readiness, service_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def slice_(*endpoints: dict[str, Any], family: str = "IPv4", service: str = "checkout") -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": service}
    metadata = {"name": "s", "namespace": "shop", "labels": labels}
    return project_slice({"metadata": metadata, "addressType": family, "endpoints": list(endpoints)})


def endpoint(address: str, **conditions: bool | None) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


def test_an_endpoint_is_ready_unless_it_says_no() -> None:
    found = readiness([slice_(endpoint("a", ready=True), endpoint("b", ready=None), endpoint("c", ready=False))])
    assert found == (2, 3)


def test_an_endpoint_without_conditions_is_ready() -> None:
    assert readiness([slice_({"addresses": ["a"]})]) == (1, 1)


def test_endpoints_of_all_slices_count_each_once() -> None:
    moving = [slice_(endpoint("a", ready=False), endpoint("b", ready=True)), slice_(endpoint("a", ready=True))]
    assert readiness(moving) == (2, 2)


def test_a_dual_stack_service_is_not_counted_twice() -> None:
    four = slice_(endpoint("10.0.0.1", ready=True), endpoint("10.0.0.2", ready=True))
    six = slice_(endpoint("fd00::1", ready=True), endpoint("fd00::2", ready=False), family="IPv6")
    assert readiness([four, six]) == (2, 2)


def test_no_slices_are_no_endpoints() -> None:
    assert readiness([]) == (0, 0)


@pytest.mark.parametrize(
    "odd",
    [{"endpoints": None}, {"endpoints": "x"}, {"endpoints": [None, 7, {"addresses": []}, {"addresses": [7]}]}, {}],
)
def test_what_is_missing_from_a_slice_is_no_endpoint(odd: dict[str, Any]) -> None:
    assert readiness([project_slice({"metadata": {"name": "s"}, **odd})]) == (0, 0)


def test_a_slice_without_a_service_belongs_to_none() -> None:
    assert service_of(project_slice({"metadata": {"name": "s", "namespace": "shop"}})) is None
    assert service_of(slice_(service="cart")) == ("shop", "cart")


@given(st.dictionaries(st.sampled_from(["metadata", "endpoints", "addressType", "spec"]), JSON))
def test_any_json_can_be_projected_and_counted(found: dict[str, Any]) -> None:
    assert readiness([project_slice(found)]).ready >= 0
    service_of(project_slice(found))
    project_service(found)

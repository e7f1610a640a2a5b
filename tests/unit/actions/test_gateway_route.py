"""Writes to an HTTPRoute or GRPCRoute, and parts that are never written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reactor.actions.outcomes import Declined
from reactor.actions.traffic.weights import difference
from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube.patch import json_patch
from rules.rulefile.route_kinds import ROUTE_KINDS
from tests.unit.actions.builders import Backends, as_read, backend_ref, http_route, refs, route, set_weights, weights_of

HTTP_ROUTE = ROUTE_KINDS["HTTPRoute"]


def applied(obj: JsonObject, weights: Mapping[str, int], rule: int | str | None = None) -> JsonObject | None:
    """The object after the patch; None: nothing is to be written."""
    operations = difference(HTTP_ROUTE, obj, set_weights(weights, route("HTTPRoute", rule=rule)))
    if operations is None:
        return None
    after: JsonObject = json_patch(obj, operations)
    return after


@pytest.mark.parametrize(
    ("stands", "asked", "expected"),
    [
        pytest.param([("p", 1), ("s", 0)], {"p": 0, "s": 1}, [("p", 0), ("s", 1)], id="failover"),
        pytest.param([("p", 90), ("s", 10)], {"p": 90, "s": 10}, None, id="already as asked"),
        pytest.param([("p", None), ("s", 0)], {"p": 1, "s": 0}, None, id="absent is 1"),
        pytest.param([("p", None), ("s", 0)], {"p": 0, "s": 1}, [("p", 0), ("s", 1)], id="absent to 0"),
        pytest.param(
            [("p", None), ("s", None)], {"p": 0, "s": 1}, [("p", 0), ("s", None)], id="a default is not written"
        ),
        pytest.param(
            [("p", 5), ("p", None), ("s", 0)], {"p": 1, "s": 0}, [("p", 1), ("p", None), ("s", 0)], id="twice"
        ),
        pytest.param([("p", 1), ("x", 7), ("s", 0)], {"p": 0, "s": 1}, [("p", 0), ("x", 7), ("s", 1)], id="foreign"),
    ],
)
def test_only_what_differs_is_written(stands: Backends, asked: dict[str, int], expected: Backends | None) -> None:
    after = applied(as_read(http_route(refs(stands))), asked)
    assert (weights_of(after) if after is not None else None) == expected


def test_the_first_rule_with_two_backends_is_moved_by_default() -> None:
    obj = as_read(http_route(refs([("docs", 1)]), refs([("p", 1), ("s", 0)]), refs([("p", 1), ("s", 0)])))
    after = applied(obj, {"p": 0, "s": 1})
    assert after is not None
    assert [weights_of(after, rule) for rule in range(3)] == [
        [("docs", 1)],
        [("p", 0), ("s", 1)],
        [("p", 1), ("s", 0)],
    ]


def test_without_a_rule_of_two_backends_the_first_is_moved() -> None:
    after = applied(as_read(http_route(refs([("p", 4)]), refs([("q", 1)]))), {"p": 2})
    assert after is not None
    assert weights_of(after) == [("p", 2)]


@pytest.mark.parametrize("rule", [1, "pay"])
def test_a_rule_is_found_by_index_or_by_name(rule: int | str) -> None:
    obj = as_read(http_route(refs([("p", 1), ("s", 0)]), refs([("p", 1), ("s", 0)]), names=["browse", "pay"]))
    after = applied(obj, {"p": 0, "s": 1}, rule=rule)
    assert after is not None
    assert (weights_of(after, 0), weights_of(after, 1)) == ([("p", 1), ("s", 0)], [("p", 0), ("s", 1)])


@pytest.mark.parametrize("rule", [2, -1, "gone", "0"])
def test_a_rule_that_is_not_there_moves_nothing(rule: int | str) -> None:
    with pytest.raises(Declined) as refusal:
        applied(as_read(http_route(refs([("p", 1), ("s", 0)]), refs([("q", 1)]))), {"p": 0, "s": 1}, rule=rule)
    assert refusal.value.reason == "RuleMissing"


def test_a_service_of_another_namespace_is_named_with_it() -> None:
    obj = as_read(http_route([backend_ref("p"), backend_ref("west/p", 0), backend_ref("shop/s", 3)]))
    after = applied(obj, {"p": 0, "west/p": 1, "s": 3})
    assert after is not None
    assert weights_of(after) == [("p", 0), ("p", 1), ("s", 3)]


def test_the_write_is_conditional_on_name_and_namespace() -> None:
    obj = as_read(http_route([backend_ref("p"), backend_ref("west/p", 0)]))
    operations = difference(HTTP_ROUTE, obj, set_weights({"west/p": 1}, route("HTTPRoute")))
    assert operations is not None
    assert operations[:4] == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": "/spec/rules/0/backendRefs/1/name", "value": "p"},
        {"op": "test", "path": "/spec/rules/0/backendRefs/1/namespace", "value": "west"},
        {"op": "replace", "path": "/spec/rules/0/backendRefs/1/weight", "value": 1},
    ]


@pytest.mark.parametrize("foreign", [{"kind": "ServiceImport", "group": "multicluster.x-k8s.io"}, {"kind": "Bucket"}])
def test_a_backend_that_is_no_service_is_not_ours(foreign: dict[str, Any]) -> None:
    obj = as_read(http_route([backend_ref("p", 5, **foreign), backend_ref("p", 1), backend_ref("s", 0)]))
    after = applied(obj, {"p": 0, "s": 1})
    assert after is not None
    assert weights_of(after) == [("p", 5), ("p", 0), ("s", 1)]


@pytest.mark.parametrize(
    "stands",
    [
        pytest.param([("p", 1), ("s", 0)], id="ours alone"),
        pytest.param([("p", 1), ("s", 0), ("foreign", 9)], id="a foreign backend does not save us"),
        pytest.param([("p", 0), ("s", 0)], id="although they stand so"),
    ],
)
def test_all_weights_zero_is_never_written(stands: Backends) -> None:
    with pytest.raises(Declined) as refusal:
        applied(as_read(http_route(refs(stands))), {"p": 0, "s": 0})
    assert refusal.value.reason == "AllZero"


def test_zero_for_the_rest_of_the_rule_is_not_zero_when_the_one_above_zero_is_gone() -> None:
    with pytest.raises(Declined) as refusal:
        applied(as_read(http_route(refs([("p", 1), ("q", 1)]))), {"p": 0, "q": 0, "gone": 1})
    assert refusal.value.reason == "BackendMissing"


def test_sixteen_rules_of_sixteen_backends_move_in_one_patch() -> None:
    services = [f"s{index}" for index in range(16)]
    obj = as_read(http_route(*[refs([(service, 1) for service in services])] * 16))
    after = applied(obj, dict.fromkeys(services, 1000000), rule=15)
    assert after is not None
    assert weights_of(after, 15) == [(service, 1_000_000) for service in services]
    assert after["spec"]["rules"][:15] == obj["spec"]["rules"][:15]


@pytest.mark.parametrize("spec", [{}, {"rules": None}, {"rules": []}])
def test_a_route_without_rules_has_none_to_move(spec: JsonObject) -> None:
    with pytest.raises(Declined) as refusal:
        applied({"metadata": {}, "spec": spec}, {"p": 1})
    assert refusal.value.reason == "RuleMissing"

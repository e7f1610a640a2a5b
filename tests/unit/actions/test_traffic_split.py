"""Writes to a TrafficSplit, and parts that are not written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from reactor.actions.outcomes import Declined
from reactor.actions.traffic.weights import difference
from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube.patch import json_patch
from rules.rulefile.route_kinds import ROUTE_KINDS
from tests.unit.actions.builders import Backends, as_read, set_weights, split, weights_of

SPLIT = ROUTE_KINDS["TrafficSplit"]


def applied(obj: JsonObject, weights: Mapping[str, int], **more: Any) -> JsonObject | None:
    """The object after the patch; None: nothing is to be written."""
    operations = difference(SPLIT, obj, set_weights(weights, **more))
    if operations is None:
        return None
    after: JsonObject = json_patch(obj, operations)
    return after


@pytest.mark.parametrize(
    ("stands", "asked", "expected"),
    [
        pytest.param([("p", 1), ("s", 0)], {"p": 0, "s": 1}, [("p", 0), ("s", 1)], id="failover"),
        pytest.param([("p", 0), ("s", 1)], {"p": 1, "s": 0}, [("p", 1), ("s", 0)], id="failback"),
        pytest.param([("p", 1), ("s", 0)], {"p": 1, "s": 0}, None, id="already as asked"),
        pytest.param([("p", 1.0), ("s", 0)], {"p": 1, "s": 0}, None, id="1.0 is 1"),
        pytest.param([("p", 0.5), ("s", 0.5)], {"p": 1, "s": 0}, [("p", 1), ("s", 0)], id="fractions"),
        pytest.param([("p", "500m"), ("s", "500m")], {"p": 0, "s": 1}, [("p", 0), ("s", 1)], id="quantities"),
        pytest.param([("p", "1"), ("s", "0")], {"p": 1, "s": 0}, None, id="a whole quantity is a number"),
        pytest.param([("p", "1"), ("s", "1")], {"p": 1, "s": 0}, [("p", 1), ("s", 0)], id="no mixture is left"),
        pytest.param([("p", None), ("s", 0)], {"p": 0, "s": 0}, [("p", 0), ("s", 0)], id="absent is written"),
        pytest.param([("p", 1), ("p", 0), ("s", 1)], {"p": 1, "s": 0}, [("p", 1), ("p", 1), ("s", 0)], id="twice"),
        pytest.param([("p", 1), ("s", 1)], {"p": 0, "s": 0}, [("p", 0), ("s", 0)], id="all zero is allowed here"),
        pytest.param([("p", 1), ("x", 7), ("s", 0)], {"p": 0, "s": 1}, [("p", 0), ("x", 7), ("s", 1)], id="foreign"),
        pytest.param([("p", 1)], {"p": 1_000_000}, [("p", 1_000_000)], id="the largest weight"),
        pytest.param([("p", 1)], {}, None, id="nothing asked"),
    ],
)
def test_only_what_differs_is_written(stands: Backends, asked: dict[str, int], expected: Backends | None) -> None:
    after = applied(as_read(split(stands)), asked)
    assert (weights_of(after) if after is not None else None) == expected


def test_the_write_is_conditional_on_what_was_read() -> None:
    operations = difference(SPLIT, as_read(split([("p", 1), ("s", 0)])), set_weights({"p": 0, "s": 1}))
    assert operations is not None
    assert operations[:3] == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": "/spec/backends/0/service", "value": "p"},
        {"op": "replace", "path": "/spec/backends/0/weight", "value": 0},
    ]


def test_a_split_without_annotations_gets_them() -> None:
    after = applied(as_read(split([("p", 1), ("s", 0)])), {"p": 0, "s": 1}, epoch=4, remember={"p": 1, "s": 0})
    assert after is not None
    assert after["metadata"]["annotations"] == {
        "reactor/decision": "checkout/east/shop/TrafficSplit/checkout/1",
        "reactor/epoch": "4",
        "reactor/healthy-weights": '{"p":1,"s":0}',
    }


def test_other_annotations_stay() -> None:
    primary = {"failover.linkerd.io/primary-service": "p"}
    after = applied(as_read(split([("p", 1), ("s", 0)], annotations=primary)), {"p": 0, "s": 1})
    assert after is not None
    assert after["metadata"]["annotations"] | primary == after["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("stands", "remember", "expected"),
    [
        pytest.param(None, {"p": 3}, {"p": 3}, id="written once"),
        pytest.param(None, {}, None, id="nothing to remember"),
        pytest.param('{"p": 3}', {}, {"p": 3}, id="what stands stays"),
        pytest.param('{"p": 3}', {"p": 3}, {"p": 3}, id="the same"),
        pytest.param('{"p": 3}', {"p": 5}, {"p": 5}, id="changed"),
        pytest.param('{"other": 9}', {"p": 5}, {"other": 9, "p": 5}, id="another rule's weights are kept"),
        pytest.param("not json", {"p": 5}, {"p": 5}, id="unreadable"),
        pytest.param('{"p": "much"}', {"s": 5}, {"s": 5}, id="not weights"),
        pytest.param("[1]", {"p": 5}, {"p": 5}, id="not an object"),
    ],
)
def test_the_healthy_weights_are_remembered(
    stands: str | None, remember: dict[str, int], expected: dict[str, int] | None
) -> None:
    annotations = {} if stands is None else {"reactor/healthy-weights": stands}
    after = applied(as_read(split([("p", 1), ("s", 0)], annotations=annotations)), {"p": 0, "s": 1}, remember=remember)
    assert after is not None
    found = after["metadata"]["annotations"].get("reactor/healthy-weights")
    assert (None if found is None else json.loads(found)) == expected


def test_a_backend_that_has_left_the_split_is_named() -> None:
    with pytest.raises(Declined, match="no backend ghost; it has: p, s") as refusal:
        applied(as_read(split([("p", 1), ("s", 0)])), {"p": 0, "ghost": 1})
    assert refusal.value.reason == "BackendMissing"


@pytest.mark.parametrize("weight", [-1, 1_000_001])
def test_a_weight_out_of_range_is_not_sent(weight: int) -> None:
    with pytest.raises(Declined, match="weights must be 0 to 1000000") as refusal:
        applied(as_read(split([("p", 1)])), {"p": weight})
    assert refusal.value.reason == "Invalid"


@pytest.mark.parametrize("spec", [{}, {"backends": None}, {"backends": []}])
def test_a_split_without_backends_has_none_to_set(spec: JsonObject) -> None:
    with pytest.raises(Declined, match="it has: none"):
        applied({"metadata": {}, "spec": spec}, {"p": 1})

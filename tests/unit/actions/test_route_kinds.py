"""Each kind of route is read and written by its description: weights as asked, and nothing else is ever touched."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bus.messages import Route
from reactor.actions.outcomes import Declined
from reactor.actions.traffic.weights import backends_of, difference
from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube.patch import json_patch
from reactor.sources.kubernetes.route_projection import route_from
from rules.kinds.traffic.apportion import apportion
from tests.unit.actions.builders import START, as_read, set_weights
from tests.unit.actions.route_samples import NAMES, SAMPLES, Sample

OURS = {"reactor/decision", "reactor/epoch", "reactor/healthy-weights"}
every_kind = pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)


def read(sample: Sample, obj: JsonObject) -> Route:
    custom = (sample.custom_kind, sample.described) if sample.custom_kind else None
    return route_from("east", sample.kind, obj, sample.rule, at=START, custom=custom)


def seen(sample: Sample, obj: JsonObject) -> dict[str, int]:
    route = read(sample, obj)
    assert not route.problem
    return {backend.service: backend.weight for backend in route.backends}


def applied(sample: Sample, obj: JsonObject, weights: dict[str, int], **more: Any) -> JsonObject | None:
    operations = difference(sample.described, as_read(obj), set_weights(weights, sample.ref(), **more))
    if operations is None:
        return None
    after: JsonObject = json_patch(as_read(obj), operations)
    return after


def masked(sample: Sample, obj: JsonObject) -> JsonObject:
    """The object without the weights of p and s, and without our annotations."""
    bare = copy.deepcopy(obj)
    for entry in backends_of(sample.described, obj, sample.ref()):
        if entry.service in ("p", "s"):
            found: Any = bare
            for token in entry.at.split("/")[1:]:
                found = found[int(token) if isinstance(found, list) else token]
            found.pop(entry.field, None)
    notes = bare["metadata"].pop("annotations", {})
    bare["metadata"].pop("resourceVersion", None)
    return {**bare, "notes": {key: text for key, text in notes.items() if key not in OURS}}


@every_kind
def test_a_route_is_read_with_its_weights(sample: Sample) -> None:
    obj = sample.object([sample.whole, 0])
    assert seen(sample, obj) == {"p": sample.whole, "s": 0} | sample.others
    assert read(sample, obj).object.startswith(f"east/shop/{sample.custom_kind or sample.kind}/checkout")


@every_kind
def test_its_weights_move_by_one_conditional_patch(sample: Sample) -> None:
    obj = as_read(sample.object([sample.whole, 0]))
    action = set_weights({"p": 0, "s": sample.whole}, sample.ref())
    operations = difference(sample.described, obj, action)
    assert operations is not None
    assert operations[0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    assert {one["op"] for one in operations[1:] if one["path"].startswith("/spec")} <= {"test", "add", "replace"}
    after: JsonObject = json_patch(obj, operations)
    assert seen(sample, after) == {"p": 0, "s": sample.whole} | sample.others
    assert masked(sample, after) == masked(sample, obj)
    assert difference(sample.described, after, action) is None, "twice is once"
    assert after["metadata"]["annotations"]["reactor/decision"] == action.id


@every_kind
def test_all_weights_zero_is_refused_but_where_it_may_be(sample: Sample) -> None:
    obj = sample.object([sample.whole, 0])
    if sample.kind == "TrafficSplit":
        after = applied(sample, obj, {"p": 0, "s": 0})
        assert after is not None
        return
    with pytest.raises(Declined) as refusal:
        applied(sample, obj, {"p": 0, "s": 0})
    assert refusal.value.reason == "AllZero"


@given(st.sampled_from(SAMPLES), st.lists(st.integers(0, 200), min_size=4, max_size=4))
def test_nothing_but_the_weights_changes_and_they_add_up(sample: Sample, numbers: list[int]) -> None:
    assume(sum(numbers[:2]) and sum(numbers[2:]))
    before, asked = (
        apportion(whole, pair) if (whole := sample.described.sum_to) else pair for pair in (numbers[:2], numbers[2:])
    )
    obj = as_read(sample.object(before))
    after = applied(sample, obj, {"p": asked[0], "s": asked[1]})
    if after is None:
        assert before == asked
        return
    assert masked(sample, after) == masked(sample, obj)
    assert seen(sample, after) == {"p": asked[0], "s": asked[1]} | sample.others
    entries = backends_of(sample.described, after, sample.ref())
    if sample.described.sum_to:
        assert sum(entry.weight for entry in entries if isinstance(entry.weight, int)) == sample.described.sum_to


SUMMED = [sample for sample in SAMPLES if sample.described.sum_to]


@pytest.mark.parametrize("sample", SUMMED, ids=[sample.name for sample in SUMMED])
def test_weights_that_do_not_add_up_are_not_sent(sample: Sample) -> None:
    with pytest.raises(Declined, match="do not add up to") as refusal:
        applied(sample, sample.object([sample.whole, 0]), {"p": 0, "s": 1})
    assert refusal.value.reason == "Invalid"


def sample_of(name: str) -> Sample:
    return SAMPLES[NAMES.index(name)]


@pytest.mark.parametrize(
    ("name", "weights", "expected"),
    [
        pytest.param("VirtualService-http", [1, 2], [33, 67], id="a ratio is read as percentages"),
        pytest.param("VirtualService-http", [None, 100], [0, 100], id="no weight is 0 beside others"),
        pytest.param("VirtualService-http", [None, None], [50, 50], id="no weights at all are equal shares"),
        pytest.param("HTTPProxy", [None, None], [1, 1], id="as Contour reads it"),
        pytest.param("HTTPProxy", [0, 0], [1, 1], id="Contour takes all zero for equal shares"),
        pytest.param("HTTPProxy", [7, None], [7, 0], id="no weight is 0 beside others in Contour"),
        pytest.param("TraefikService", [None, 0], [1, 0], id="Traefik's default is 1"),
        pytest.param("TCPRoute", [None, 0], [1, 0], id="the Gateway API's default is 1"),
        pytest.param("ServiceSplitter", [99.5, 0.5], [99, 1], id="half a percent is seen"),
        pytest.param("ServiceSplitter", [33.4, 66.6], [33, 67], id="fractions by largest remainder"),
        pytest.param("ServiceSplitter", [None, 100.0], [0, 100], id="Consul leaves a 0 out"),
    ],
)
def test_odd_weights_are_read_as_the_data_plane_takes_them(name: str, weights: list[Any], expected: list[int]) -> None:
    sample = sample_of(name)
    found = seen(sample, sample.object(weights))
    assert [found["p"], found["s"]] == expected


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("p", "p"), ("p.shop.svc.cluster.local", "p"), ("p.shop.svc", "p"), ("p.west.svc.cluster.local", "west/p"),
        ("p.west.svc.cluster.example", "west/p"), ("api.example.com", "api.example.com"), ("p.west", "p.west"),
    ],
)  # fmt: skip
def test_a_host_is_named_by_its_service(host: str, service: str) -> None:
    sample = sample_of("VirtualService-http")
    obj = sample.object([None, None])
    obj["spec"]["http"][1]["route"] = [{"destination": {"host": host}}, {"destination": {"host": "s"}, "weight": 1}]
    assert seen(sample, obj) == {service: 0, "s": 100}


def test_a_virtual_services_rules_are_counted_through_its_lists() -> None:
    obj = sample_of("VirtualService-http").object([100, 0])
    obj["spec"]["tls"] = sample_of("VirtualService-tls").object([100, 0])["spec"]["tls"]
    obj["spec"]["tcp"] = [{"route": [{"destination": {"host": "db"}}]}]
    names = [
        [one.service for one in route_from("east", "VirtualService", obj, rule, at=START).backends] for rule in range(4)
    ]
    assert names == [["docs"], ["p", "s"], ["p", "s"], ["db"]]
    assert route_from("east", "VirtualService", obj, 4, at=START).problem == "there is no rule 4, the route has 4"


def test_one_service_twice_where_weights_add_up_cannot_be_used() -> None:
    sample = sample_of("VirtualService-http")
    obj = sample.object([90, 10])
    obj["spec"]["http"][1]["route"][1]["destination"] = {"host": "p", "subset": "v2"}
    problem = "spec.http[1].route has p twice: it is not known which of them gets how much of 100"
    assert read(sample, obj).problem == problem
    with pytest.raises(Declined, match="p twice"):
        applied(sample, obj, {"p": 100})


def test_a_split_without_a_service_is_the_splitters_own() -> None:
    sample = sample_of("ServiceSplitter")
    obj = sample.object([100, 0])
    del obj["spec"]["splits"][0]["service"]
    assert seen(sample, obj) == {"checkout": 100, "s": 0, "x": 0}
    after = applied(sample, obj, {"checkout": 0, "s": 100})
    assert after is not None
    assert (after["spec"]["splits"][0]["weight"], after["spec"]["splits"][1]["weight"]) == (0, 100)

"""For every route and every action: only managed weights and our annotations ever change."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from bus.messages import RouteRef, SetWeights
from reactor.actions.outcomes import Declined
from reactor.actions.traffic.weights import backends_of, difference
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.route_entries import WEIGHT_MAX
from reactor.demo.kube.patch import json_patch
from rules.rulefile.route_kinds import ROUTE_KINDS
from tests.examples import many
from tests.unit.actions.builders import as_read, http_route, route, set_weights, split

SERVICES = ["p", "s", "t", "west/p", "foreign"]
OURS = ("reactor/decision", "reactor/epoch", "reactor/healthy-weights")

weight = st.integers(0, 3) | st.integers(0, WEIGHT_MAX)
some_annotations = st.none() | st.dictionaries(
    st.sampled_from([*OURS, "a/b~c", "argocd.argoproj.io/x", ""]), st.text(max_size=5), max_size=4
)
filters = st.lists(st.fixed_dictionaries({"type": st.just("RequestMirror"), "any": st.text(max_size=3)}), max_size=2)


@st.composite
def backend_refs(draw: st.DrawFn) -> JsonObject:
    namespace, _, name = draw(st.sampled_from(SERVICES)).rpartition("/")
    ref: JsonObject = {"name": name, "port": draw(st.integers(1, 65535)), "filters": draw(filters)}
    optional: dict[str, Any] = {
        "namespace": namespace or None,
        "kind": draw(st.sampled_from([None, "Service", "ServiceImport"])),
        "weight": draw(st.none() | weight),
    }
    return ref | {field: value for field, value in optional.items() if value is not None}


def asked_of(obj: JsonObject, ref: RouteRef) -> st.SearchStrategy[dict[str, int]]:
    """Weights for some of the services that the managed rule has."""
    present = sorted({entry.service for entry in backends_of(ROUTE_KINDS[ref.kind], obj, ref)} - {"foreign"})
    return st.dictionaries(st.sampled_from(present), weight, min_size=1) if present else st.just({})


@st.composite
def http_cases(draw: st.DrawFn) -> tuple[JsonObject, SetWeights]:
    rules = draw(st.lists(st.lists(backend_refs(), min_size=1, max_size=6), min_size=1, max_size=4))
    names = [f"rule-{index}" for index in range(len(rules))]
    ref = route("HTTPRoute", rule=draw(st.none() | st.sampled_from(range(len(rules))) | st.sampled_from(names)))
    obj = as_read(http_route(*rules, names=names, annotations=draw(some_annotations)))
    remember = draw(st.dictionaries(st.sampled_from(SERVICES), weight, max_size=3))
    return obj, set_weights(draw(asked_of(obj, ref)), ref, remember=remember)


@st.composite
def split_cases(draw: st.DrawFn) -> tuple[JsonObject, SetWeights]:
    stands = st.none() | weight | st.sampled_from(["500m", "1", 0.5, 1.0])
    backends = draw(st.lists(st.tuples(st.sampled_from(SERVICES), stands), min_size=1, max_size=6))
    obj = as_read(split(backends, annotations=draw(some_annotations)))
    return obj, set_weights(draw(asked_of(obj, route())))


def carried_out(obj: JsonObject, action: SetWeights) -> JsonObject:
    """The object after the action; it is no example where there is nothing to write."""
    before = copy.deepcopy(obj)
    try:
        operations = difference(ROUTE_KINDS[action.route.kind], obj, action)
    except Declined:
        operations = None
    assert obj == before, "what was read is not changed"
    assume(operations is not None)
    after: JsonObject = json_patch(obj, operations)
    return after


def without_ours(obj: JsonObject, action: SetWeights) -> JsonObject:
    """Everything that is none of our business, in its order."""
    bare = copy.deepcopy(obj)
    annotations = bare["metadata"].pop("annotations", None) or {}
    bare["metadata"]["annotations"] = {key: value for key, value in annotations.items() if key not in OURS}
    for entry in managed(bare, action.route, action):
        entry.pop("weight", None)
    return bare


def managed(obj: JsonObject, ref: RouteRef, action: SetWeights) -> list[JsonObject]:
    entries = [entry for entry in backends_of(ROUTE_KINDS[ref.kind], obj, ref) if entry.service in action.weights]
    return [_at(obj, entry.at) for entry in entries]


def _at(document: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        document = document[int(token) if isinstance(document, list) else token]
    return document


@many(100)
@given(http_cases() | split_cases())
def test_carrying_out_twice_is_carrying_out_once(case: tuple[JsonObject, SetWeights]) -> None:
    obj, action = case
    after = carried_out(obj, action)
    assert difference(ROUTE_KINDS[action.route.kind], after, action) is None


@many(100)
@given(http_cases() | split_cases())
def test_nothing_but_managed_weights_and_our_annotations_changes(case: tuple[JsonObject, SetWeights]) -> None:
    obj, action = case
    after = carried_out(obj, action)
    assert without_ours(after, action) == without_ours(obj, action)


@many(100)
@given(http_cases() | split_cases())
def test_every_entry_of_a_managed_service_is_as_asked(case: tuple[JsonObject, SetWeights]) -> None:
    obj, action = case
    after = carried_out(obj, action)
    entries = backends_of(ROUTE_KINDS[action.route.kind], after, action.route)
    standing = {(entry.service, entry.default if entry.weight is None else entry.weight) for entry in entries}
    assert {(service, at) for service, at in standing if service in action.weights} == set(action.weights.items())


@many(100)
@given(http_cases())
def test_no_rule_that_serves_is_left_with_all_weights_zero(case: tuple[JsonObject, SetWeights]) -> None:
    obj, action = case
    after = carried_out(obj, action)
    before_and_after = zip(obj["spec"]["rules"], after["spec"]["rules"], strict=True)
    changed = [new for old, new in before_and_after if old != new]
    assert all(sum(ref.get("weight", 1) for ref in rule["backendRefs"]) > 0 for rule in changed)


@many(100)
@given(http_cases() | split_cases())
def test_a_patch_never_fits_another_version_of_the_object(case: tuple[JsonObject, SetWeights]) -> None:
    obj, action = case
    carried_out(obj, action)
    operations = difference(ROUTE_KINDS[action.route.kind], obj, action)
    assert operations is not None
    assert operations[0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}

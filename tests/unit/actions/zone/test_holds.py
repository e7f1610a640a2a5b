"""Changes of a node are taken back exactly: to its former state, whatever writer it came from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import MarkedNodes
from reactor.actions.outcomes import Declined
from reactor.actions.zone.holds import BALANCERS, OUT, NodeHold, fence_by
from reactor.actions.zone.origin import IsolationOrigin, origin_of
from reactor.demo.kube.patch import json_patch

MARK = "use1-az6"
FENCE = fence_by(IsolationOrigin("prod-zones"))
BY_ANN = fence_by(IsolationOrigin("prod-zones", "ann"))
DRILL = fence_by(IsolationOrigin("prod-zones", practice=True))
taints = st.lists(
    st.fixed_dictionaries({"key": st.sampled_from("abc"), "effect": st.sampled_from(["NoSchedule", "NoExecute"])}),
    max_size=3, unique_by=lambda taint: (taint["key"], taint["effect"]),
)  # fmt: skip


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    """A node that other people have tainted, cordoned, labelled and annotated, or not."""
    labels = {"zone": "a"} | draw(
        st.sampled_from([{}, {"node.kubernetes.io/exclude-from-external-load-balancers": "mine"}])
    )
    metadata = {"name": "n", "labels": labels} | draw(
        st.sampled_from([{}, {"annotations": {}}, {"annotations": {"a~b/c": "d"}}])
    )
    listed = draw(taints)
    spec = ({"taints": listed} if listed else {}) | draw(
        st.sampled_from([{}, {"unschedulable": True}, {"podCIDR": "10.0.0.0/24"}])
    )
    return {"metadata": metadata, "spec": spec}


def plain(node: dict[str, Any]) -> str:
    """The node as a server would show it: no empty annotations."""
    metadata = {name: value for name, value in node["metadata"].items() if value != {}}
    return json.dumps({**node, "metadata": metadata}, sort_keys=True)


@pytest.mark.parametrize(
    "hold",
    [FENCE, BY_ANN, DRILL, BALANCERS, OUT],
    ids=["fenced", "fenced by a person", "fenced for a drill", "out of the load balancers", "out of service"],
)
@given(node=nodes())
def test_there_and_back_is_nothing(hold: NodeHold, node: dict[str, Any]) -> None:
    operations = hold.take(node, MARK)
    held = json_patch(node, operations) if operations is not None else node
    assert hold.take(held, MARK) is None
    back = hold.give(held)
    assert plain(json_patch(held, back) if back is not None else held) == plain(node)


@given(node=nodes())
def test_all_three_can_be_set_together_and_go_in_any_order(node: dict[str, Any]) -> None:
    held = node
    for hold in (FENCE, BALANCERS, OUT):
        held = json_patch(held, hold.take(held, MARK) or [])
    for hold in (FENCE, OUT, BALANCERS):
        held = json_patch(held, hold.give(held) or [])
    assert plain(held) == plain(node)


@given(node=nodes())
def test_a_cordon_of_another_writer_stays(node: dict[str, Any]) -> None:
    cordoned = {**node, "spec": {**node["spec"], "unschedulable": True}}
    held = json_patch(cordoned, FENCE.take(cordoned, MARK) or [])
    assert json_patch(held, FENCE.give(held) or [])["spec"]["unschedulable"] is True


@given(node=nodes())
def test_a_fenced_node_says_on_whose_word_and_a_newer_word_replaces_it(node: dict[str, Any]) -> None:
    held = node
    for hold, origin in ((FENCE, ("prod-zones", "", False)), (BY_ANN, ("prod-zones", "ann", False)),
                         (DRILL, ("prod-zones", "", True))):  # fmt: skip
        operations = hold.take(held, MARK)
        assert operations is not None
        held = json_patch(held, operations)
        assert (origin_of(held["metadata"]["annotations"]), hold.take(held, MARK)) == (origin, None)
    assert plain(json_patch(held, FENCE.give(held) or [])) == plain(node)


def test_a_node_fenced_by_a_release_that_did_not_say_by_whom_gets_to_say_it() -> None:
    held = json_patch(
        {"metadata": {"name": "n"}, "spec": {}}, FENCE.take({"metadata": {"name": "n"}, "spec": {}}, MARK) or []
    )
    del held["metadata"]["annotations"]["reactor/isolated-by"]
    held = json_patch(held, FENCE.take(held, MARK) or [])
    assert origin_of(held["metadata"]["annotations"]) == ("prod-zones", "", False)


@pytest.mark.parametrize(
    ("notes", "origin"),
    [
        ({}, None),
        ({"reactor/isolated-by": ""}, None),
        ({"reactor/isolated-by": "r" * 254}, None),
        ({"reactor/isolated-by": "prod\x1b"}, None),
        ({"reactor/isolated-by": "prod", "reactor/isolated-by-hand": "a\x1b" + "n" * 999}, "a\\x1b" + "n" * 248),
    ],
    ids=["none", "empty", "too long", "no name", "a person's name that no message takes"],
)
def test_annotations_that_a_person_has_edited_stop_no_watch(notes: dict[str, str], origin: str | None) -> None:
    found = origin_of(notes)
    assert (found.by if found is not None else None) == origin
    if found is not None:
        MarkedNodes(rule=found.rule, nodes=1, by=found.by)


def test_another_zones_fence_is_refused() -> None:
    node = {
        "metadata": {"name": "n"},
        "spec": {"taints": [{"key": "reactor/isolated-zone", "effect": "NoSchedule", "value": "b"}]},
    }
    with pytest.raises(Declined) as refused:
        FENCE.take(node, "a")
    assert refused.value.reason == "ChangeRefused"


def test_every_write_is_conditional_on_what_was_read() -> None:
    node = {"metadata": {"name": "n", "labels": {"z": "a"}}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    for hold in (FENCE, BALANCERS, OUT):
        assert any(operation["op"] == "test" for operation in hold.take(node, MARK) or [])

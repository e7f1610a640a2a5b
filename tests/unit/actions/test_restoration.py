"""What giving the healthy weights back writes."""

from __future__ import annotations

import pytest

from bus.messages import RouteRef
from reactor.actions.outcomes import Declined
from reactor.actions.traffic.restore import restoration
from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube.patch import json_patch
from rules.rulefile.route_kinds import ROUTE_KINDS
from tests.unit.actions.builders import as_read, http_route, refs, route, split, weights_of

DECISION = {"reactor/decision": "checkout/x/1", "reactor/epoch": "3"}


def restored(obj: JsonObject, ref: RouteRef) -> JsonObject | None:
    operations = restoration(ROUTE_KINDS[ref.kind], obj, ref)
    if operations is None:
        return None
    after: JsonObject = json_patch(obj, operations)
    assert restoration(ROUTE_KINDS[ref.kind], after, ref) is None, "once is enough"
    return after


def test_the_remembered_weights_come_back_and_nothing_of_ours_stays() -> None:
    notes = {**DECISION, "reactor/healthy-weights": '{"p":90,"s":10}', "theirs": "x"}
    after = restored(as_read(split([("p", 0), ("s", 1)], annotations=notes)), route())
    assert after is not None
    assert weights_of(after) == [("p", 90), ("s", 10)]
    assert after["metadata"]["annotations"] == {"theirs": "x"}


def test_weights_that_stand_so_already_only_lose_the_annotations() -> None:
    notes = {**DECISION, "reactor/healthy-weights": '{"p":1,"s":0}'}
    after = restored(as_read(split([("p", 1), ("s", 0)], annotations=notes)), route())
    assert after is not None
    assert (weights_of(after), after["metadata"]["annotations"]) == ([("p", 1), ("s", 0)], {})


@pytest.mark.parametrize("notes", [None, DECISION, {"reactor/healthy-weights": "{}"}, {"reactor/healthy-weights": "?"}])
def test_a_route_of_which_nothing_is_remembered_is_left_alone(notes: dict[str, str] | None) -> None:
    assert restored(as_read(split([("p", 0), ("s", 1)], annotations=notes)), route()) is None


def test_a_service_that_has_left_is_passed_over() -> None:
    notes = {"reactor/healthy-weights": '{"gone":5,"p":1}'}
    after = restored(as_read(split([("p", 0), ("new", 4)], annotations=notes)), route())
    assert after is not None
    assert weights_of(after) == [("p", 1), ("new", 4)]


def test_what_is_remembered_for_another_rule_of_the_route_stays() -> None:
    notes = {**DECISION, "reactor/healthy-weights": '{"p":1,"q":7,"s":0}'}
    obj = as_read(http_route(refs([("p", 0), ("s", 1)]), refs([("q", 0), ("r", 1)]), annotations=notes))
    after = restored(obj, route("HTTPRoute", rule=0))
    assert after is not None
    assert after["metadata"]["annotations"] == {**DECISION, "reactor/healthy-weights": '{"q":7}'}
    assert weights_of(after, 1) == [("q", 0), ("r", 1)]


def test_remembered_zeros_are_not_written_to_a_gateway_route() -> None:
    obj = as_read(http_route(refs([("p", 0), ("s", 1)]), annotations={"reactor/healthy-weights": '{"p":0,"s":0}'}))
    with pytest.raises(Declined) as refusal:
        restored(obj, route("HTTPRoute"))
    assert refusal.value.reason == "AllZero"

"""JSON that others wrote: one kind of error, however it is wrong, and each reader says its own of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bus.errors import Malformed
from bus.json_text import parsed
from reactor.actions.annotations import healthy_weights
from reactor.actions.karmada.cluster_taints import HOLDERS_ANNOTATION, holders
from reactor.actions.zone.shoot import NO_UPDATES, ending
from reactor.actions.zone.zone_marks import AUTO_UPDATE
from reactor.audit.position import Position
from reactor.clients.api_refusals import RefusedRequest, refusal
from reactor.execute.intent import Intent
from reactor.fleet.presence import Process, name_in
from rules.engine.group_codec import load_group
from rules.kinds.traffic.route_state import HEALTHY_ANNOTATION
from tests.unit.rules.builders import failover, healthy, moves, route, unhealthy
from tests.unit.rules.test_traffic import A

DEEP = "[" * 100_000
HEAD = '{"generation": 9, "epoch": 1, "action": "x", "done": false, '


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 100_000, "", "{", b"\xff", b"", "9" * 5000], ids=lambda one: one[:3])
def test_what_cannot_be_read_is_one_kind_of_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"nested too deep|char|utf-8|digits"):
        parsed(text)


@pytest.mark.parametrize("read", [name_in, Process.read, Intent.read, Position.read, load_group])
@pytest.mark.parametrize("text", [DEEP, '{"name":' * 100_000, "", "7", "[]", "{}"], ids=lambda one: one[:3])
def test_what_lies_in_a_bucket_and_cannot_be_read_is_malformed(read: Callable[[bytes], object], text: str) -> None:
    with pytest.raises(Malformed):
        read(text.encode())


@pytest.mark.parametrize("text", [
    '{"generation": "9", "epoch": 1, "action": "x", "done": true}',
    '{"generation": true, "epoch": 1, "action": "x", "done": true}', '{"generation": 9, "epoch": 1, "done": true}',
    HEAD + '"until": "never"}', HEAD + '"older": "2999-01-01"}', HEAD + '"until": 7}',
])  # fmt: skip
def test_an_intent_of_other_types_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        Intent.read(text.encode())


@pytest.mark.parametrize("text", [DEEP, "{", f'{{"a": {10**30}}}', '{"a": -1}', '{"a": true}'], ids=lambda one: one[:6])
def test_an_annotation_that_cannot_be_read_counts_as_none(text: str) -> None:
    cluster = {"metadata": {"annotations": {HEALTHY_ANNOTATION: text, HOLDERS_ANNOTATION: text}}}
    assert healthy_weights(cluster) == {}
    assert holders(cluster) == {}
    well = (route(A, annotations={HEALTHY_ANNOTATION: text}), *(healthy(one, at=0) for one in "abc"))
    assert moves(failover(), *well, unhealthy("a", at=5)) == [(5, {"a": 0, "b": 1, "c": 1})]


def test_a_shoot_whose_note_of_its_updates_cannot_be_read_is_given_back_without_them() -> None:
    shoot = {
        "metadata": {"annotations": {AUTO_UPDATE: DEEP}, "resourceVersion": "1", "uid": "u"},
        "spec": {"maintenance": {"autoUpdate": NO_UPDATES}},
    }
    assert not any("autoUpdate" in change["path"] for change in ending(shoot) or ())


def test_an_answer_of_an_api_that_is_nested_too_deep_is_told_by_its_text() -> None:
    told = refusal(RefusedRequest("east", "GET", "/api/v1/pods", {}), 500, DEEP.encode(), {})
    assert "[[[[" in str(told)
    assert len(str(told)) < 1000

"""Parts of the old copy's status that are carried over, and copies that do not leave without them."""

from __future__ import annotations

import contextlib
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Evict, Hold, Place, WorkloadCopy
from rules.core.errors import InvalidFiles
from rules.rehearsal.simulation import at as at_
from rules.rulefile.jsonpath import NoValue, read_jsonpath
from tests.unit.rules.builders import Event, outcome, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    happens,
    held_copy,
    holds,
    placement,
    workload,
    workload_rule,
)

JOB = "{.jobStatus.jobId}"
KEEPS = {
    "rules": [{"aliasLabelName": "flink/job-id", "jsonPath": JOB}, {"aliasLabelName": "n", "jsonPath": ".replicas"}]
}


def rule(**behaviour: Any) -> dict[str, Any]:
    keys = {"purgeMode": "Directly", "statePreservation": KEEPS, **behaviour}
    return workload_rule(failover={"cluster": keys}, placement=placement("m1", "m2", "m3", tolerate=100))


def told(values: dict[str, str], *, at: float = 0, name: str = "m1") -> Event:
    fact = WorkloadCopy(
        namespace="default",
        kind="Deployment",
        name="nginx",
        cluster=name,
        replicas=2,
        state=values,
        observed_at=at_(at),
    )
    return at, fact


ALL = {JOB: "abc-1", ".replicas": "2"}
START = [*clusters("Healthy", "m1", "m2", "m3"), cluster("m1", "Unhealthy", at=10)]


def carried(*events: Event, given: Any = None) -> list[tuple[str, dict[str, str]]]:
    """Labels that evictions take along, and that placements put on."""
    out = []
    for one in happens(given or rule(), *START, *events):
        if isinstance(one.what, Evict):
            out.append(("Evict", one.what.preserved))
        elif isinstance(one.what, Place):
            out.append(("Place", one.what.labels))
    return out


def test_the_new_copy_gets_the_state_of_the_old_one_as_labels() -> None:
    labels = {"flink/job-id": "abc-1", "n": "2"}
    assert carried(told(ALL)) == [("Evict", labels), ("Place", labels)]


def test_it_is_the_newest_state_that_goes_along() -> None:
    labels = {"flink/job-id": "abc-2", "n": "2"}
    assert carried(told(ALL), told({**ALL, JOB: "abc-2"}, at=50))[1] == ("Place", labels)
    assert carried(told({**ALL, JOB: "abc-2"}, at=50), (60.0, told(ALL, at=40)[1]))[1] == ("Place", labels)


def test_state_that_a_carrier_lists_for_all_copies_together_counts_as_well() -> None:
    assert carried(workload({"m1": 2}, states={"m1": ALL}))[1] == ("Place", {"flink/job-id": "abc-1", "n": "2"})


@pytest.mark.parametrize(
    ("values", "words"),
    [({}, "no source has read"), ({JOB: "a"}, ".replicas"), ({**ALL, JOB: "no label!"}, "no label")],
)
def test_a_copy_does_not_leave_without_its_state_and_leaves_when_it_is_told(values: dict[str, str], words: str) -> None:
    events = [held_copy("m1", 2, at=0), told(values, at=1)]
    assert holds(rule(), *START, *events, until=200) == [(110.0, "StateUnknown")]
    (hold,) = [one.what for one in happens(rule(), *START, *events, until=200) if isinstance(one.what, Hold)]
    assert words in hold.detail
    late = [*START, *events, told(ALL, at=150)]
    assert [second for second, *_ in acts(rule(), *late)] == [150.0, 150.0]


def test_two_new_copies_never_get_the_same_state() -> None:
    two = {"m1": 2, "m2": 2}
    given = rule() | {"onInsufficient": "Partial"}
    events = [workload(two, states={"m1": ALL, "m2": ALL})]
    assert carried(*events, given=given)[1] == ("Place", {})


def test_a_cluster_that_does_not_answer_gives_its_state_along_all_the_same() -> None:
    events = [*START, told(ALL), outcome(f"nginx/{OBJECT}/1", "Failed", reason="ClusterUnreachable", at=111)]
    (place,) = [one.what for one in happens(rule(), *events, outcomes=False, until=300) if isinstance(one.what, Place)]
    assert place.labels == {"flink/job-id": "abc-1", "n": "2"}


def test_an_eviction_on_its_way_is_not_asked_for_again_because_the_status_goes_on() -> None:
    events = [*START, told(ALL), told({**ALL, JOB: "abc-2"}, at=111), told({**ALL, JOB: "abc-3"}, at=112)]
    assert [verb for _, verb, _ in acts(rule(), *events, outcomes=False, until=120)] == ["Evict"]


def test_the_state_of_a_copy_that_was_there_before_is_not_that_of_the_new_one() -> None:
    given = rule(blockPredecessorSeconds=None)
    given["placement"] = placement("m1", "m2", tolerate=100)
    away = [told(ALL), cluster("m1", "Healthy", at=200), told({**ALL, JOB: "b"}, at=201, name="m2")]
    back = [cluster("m2", "Unhealthy", at=210), cluster("m2", "Healthy", at=400), cluster("m1", "Unhealthy", at=410)]
    events = [*START, *away, *back]
    assert [second for second, *_ in acts(given, *events, until=600)] == [110.0, 110.0, 310.0, 310.0]
    assert holds(given, *events, until=600) == [(510.0, "StateUnknown")]


def test_gracefully_nothing_is_carried_over_and_check_says_so() -> None:
    given = rule(purgeMode="Gracefully")
    assert carried(held_copy("m1", 2, at=0), copy("m1", "Healthy", at=1), given=given) == [("Place", {}), ("Evict", {})]
    (warning,) = rule_set(given).warnings
    assert "statePreservation: is only carried over with purgeMode Directly" in str(warning)


def test_a_path_that_cannot_be_read_is_refused_at_its_place() -> None:
    bad = {"rules": [{"aliasLabelName": "a", "jsonPath": "{ %health }"}]}
    with pytest.raises(InvalidFiles, match=r"jsonPath.*is no JSONPath from '%health' on"):
        rule_set(rule(statePreservation=bad))


STATUS = {
    "replicas": 2, "big": 9007199254740993, "progress": 1.25, "ready": True, "a.b": "dot", "items": [
        {"name": "old", "at": 9007199254740992, "type": "x"}, {"name": "new", "at": 9007199254740993},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".replicas", "2"), ("{ .replicas }", "2"), ("{$.big}", "9007199254740993"), (".progress", "1.25"),
        (".ready", "true"), ("['replicas']", "2"), ('{["ready"]}', "true"), (r".a\.b", "dot"),
        (".items[0].name", "old"), (".items[-1].name", "new"), (".items[*].name", "old new"), ("..name", "old new"),
        (".items[?(@.at==9007199254740993)].name", "new"), ('.items[?(@.type=="x")].name', "old"),
        (".items[?(@.type=='x')].at", "9007199254740992"), (".items[?(@.type)].name", "old"),
        (".items[0:1].name", "old"), (".items[?(@.at > 1)].name", "old new"), (".items[*].type", None),
        (".nothing", None), (".replicas.deeper", None), (".items[2]", None), (".items[?(@.type=='y')].name", None),
    ],
)  # fmt: skip
def test_a_path_finds_what_kubernetes_jsonpath_finds(path: str, text: str | None) -> None:
    if text is None:
        with pytest.raises(NoValue):
            read_jsonpath(path).text_of(STATUS)
    else:
        assert read_jsonpath(path).text_of(STATUS) == text


@given(st.text(max_size=30))
def test_whatever_is_written_is_a_path_or_a_mistake_of_its_author(text: str) -> None:
    try:
        read_jsonpath(text).text_of(STATUS)
    except (ValueError, NoValue):
        return


@pytest.mark.parametrize("path", ["{..a..a}", "{..a..a..a..a}", "{..a[*]..a..a}", "{.b[?(@.a.b==1)]..a..a}"])
@pytest.mark.parametrize("levels", [90, 5000])
def test_a_path_that_looks_at_a_deep_object_again_and_again_is_bounded(path: str, levels: int) -> None:
    deep: Any = {}
    for _ in range(levels):
        deep = {"a": deep}
    began = process_time()
    with contextlib.suppress(NoValue):
        assert len(read_jsonpath(path).text_of({"a": deep, "b": [deep] * 90})) <= 4096
    assert process_time() - began < 5


def test_a_filter_gives_no_half_answer_where_there_is_too_much_to_look_at() -> None:
    with pytest.raises(NoValue, match="looks at more than"):
        read_jsonpath("{[?(@.a==1)].a}").text_of([{"a": 1}] * 30_000)


def test_what_is_found_is_no_longer_than_a_person_reads() -> None:
    assert len(read_jsonpath("{[*]}").text_of(["x" * 3000] * 1000)) == 4096

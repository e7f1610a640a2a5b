"""PromQL of rule files is read where no Prometheus is: what cannot be read, and labels that no result can have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.core.errors import InvalidFiles, Problem
from rules.loader import load_rules
from rules.rulefile.promql_tree import PARTS_MAX, Labels, read_promql
from tests.examples import many
from tests.unit.rules.builders import failover, rule_file
from tests.unit.rules.test_traffic_checks import query


def found(*sources: dict[str, Any], rules: str | None = None) -> list[Problem]:
    text = rules if rules is not None else rule_file(failover(), sources=list(sources))
    try:
        return list(load_rules([("r.yaml", text)]).warnings)
    except InvalidFiles as error:
        return list(error.problems)


def said(**keys: Any) -> list[str]:
    return [f"{one.severity} {one.path}: {one.message}" for one in found(query(target="service/east/shop/{s}", **keys))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rate(x[1m]", "unclosed left parenthesis"), ("sum by (s) (x", "unclosed left parenthesis"),
        ("x ==", "invalid promql query"), ("x{s=}", "invalid promql query"), ("rate(x)", "expected type matrix"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_an_error_with_its_place(text: str, why: str) -> None:
    (problem,) = found(query(query=text))
    assert (problem.severity, problem.path) == ("error", "sources[0].query")
    assert problem.message.startswith("no PromQL: ")
    assert why in problem.message


def test_a_function_of_another_version_is_a_warning() -> None:
    assert said(query="holt_winters(x[5m], 0.5, 0.5)") == [
        "warning sources[0].query: Prometheus 3 has no function 'holt_winters': a slip, or is the server another one?"
    ]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sum(x)", "has only the labels none"), ("sum by (job, le) (x)", "has only the labels job, le"),
        ("avg without (s) (x)", "has all labels but s"), ("a / on (job) b", "has only the labels job"),
        ("a / ignoring (s) b", "has all labels but s"), ("sum by (job) (x) > 1", "has only the labels job"),
        ("sum by (job) (a) / sum by (job) (b)", "has only the labels job"),
        ("1 - sum by (job) (a)", "has only the labels job"), ("clamp_min(sum(a), 1)", "has only the labels none"),
        ("histogram_quantile(0.9, sum by (le) (rate(a[5m])))", "has only the labels none"),
        ("sum by (s) (sum by (job) (a))", "has only the labels none"),
        ("sum by (job) (a) and b", "has only the labels job"),
    ],
)  # fmt: skip
def test_a_label_that_an_aggregation_removes_makes_no_target(text: str, left: str) -> None:
    (problem,) = found(query(query=text, target="service/east/shop/{s}"))
    assert (problem.severity, problem.path) == ("error", "sources[0].target")
    assert problem.message == f"takes {{s}}, which no series has: the result of the query {left}"


@pytest.mark.parametrize(
    "text",
    [
        "x", "sum by (s) (x)", "sum without (job) (x)", "topk(3, x)", "label_replace(sum(x), 's', 'a', 'b', 'c')",
        "a / on (job) group_left (s) b", "x or sum(y)", "a / ignoring (job) b", "-x", "(x)", "max_over_time(x[5m:1m])",
        "count_values('s', x)", "absent(x{s='a'})", "x > scalar(sum(y))", "x @ start() offset 5m", "x unless on () y",
        "rate(x[1m]) # a comment with ) in it",
    ],
)  # fmt: skip
def test_what_may_have_the_label_is_left_in_peace(text: str) -> None:
    assert [one for one in said(query=text, unhealthyWhen={"above": 1}) if "target" in one or "PromQL" in one] == []


def test_the_target_of_what_is_absent_has_no_labels_of_the_result() -> None:
    assert not [one for one in said(query="sum(x)", unhealthyWhen="Absent") if "takes" in one]


def test_confirmations_and_proofs_of_zones_are_read_too() -> None:
    webhook = {
        "name": "alerts", "kind": "AlertmanagerWebhook", "target": "service/east/shop/{service}",
        "confirm": {"prometheus": "main", "query": "up =="},
    }  # fmt: skip
    assert [one.path for one in found(webhook)] == ["sources[0].confirm.query"]
    zones = """
apiVersion: reactor/v1
rules:
  - {name: z, kind: ZoneIsolation, cluster: prod, zones: [{name: a}, {name: b}], signals: [x, y],
     verify: {prometheus: main, query: "sum(up"}}
"""
    assert "rules[0].verify.query" in [one.path for one in found(rules=zones) if one.severity == "error"]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 8000 + "x" + ")" * 8000, "-" * 16_000 + "x", "sum(" * 4000 + "x" + ")" * 4000, "x" + " + x" * 3000,
        "x" + " and x" * 2000, "x" + " == x" * 2000, "x" + "[1m:1m]" * 2000, "sum " * 4000 + "(x)",
        "-" * PARTS_MAX + "x", "(" * PARTS_MAX + "x" + ")" * PARTS_MAX, "x" + "+x" * PARTS_MAX,
    ],
)  # fmt: skip
def test_what_no_person_writes_ends_no_process(text: str) -> None:
    assert read_promql(text) is not None


@pytest.mark.parametrize("text", ["x offset inf", "x offset -NaN", "x @ nan", "x # offset inf\n offset Inf"])
def test_an_offset_that_is_no_duration_is_told(text: str) -> None:
    assert read_promql(text).problem


TOKENS = [
    "x", "(", ")", "sum", "by", "without", "{", "}", 'a="b"', "[1m]", "[5m:1m]", "[:]", "offset", "5m", "+", "-", "/",
    "on", "group_left", "1e5", "0x1f", "NaN", "inf", "@", "start()", "and", "unless", "rate", "label_replace", '"', "'",
    "`", ",", "topk", "3", "bool", "==", "!~", "count_values", "é", "\x00", "\n", "#", "$", "absent",
]  # fmt: skip


@given(st.lists(st.sampled_from(TOKENS), max_size=14).map(" ".join) | st.text(max_size=40))
@many(800)
def test_any_text_is_read_or_told(text: str) -> None:
    found = read_promql(text)
    assert found.labels == Labels(all_but=True) or not found.problem


def test_labels_are_those_alone_or_all_but_those() -> None:
    assert read_promql("sum by (a, b) (x)").labels == Labels(frozenset("ab"))
    assert read_promql("sum by (a, b) (sum without (a) (x))").labels == Labels(frozenset("b"))
    assert read_promql("count_values without (a) ('a', x)").labels == Labels(all_but=True)


WRONG = """
apiVersion: reactor/v1
sources:
  - {name: a, kind: HttpProb, target: "service/east/shop/a", url: "http://x", everySeconds: -3, foo: 1}
  - {name: b, kind: httpprobe, target: "service/east/shop/a"}
rules:
  - {name: r, kind: TrafficFailove, route: {cluster: east, kind: TrafficSplit, namespace: a, name: b}, mode: Sometimes}
  - {name: s, kind: Nonsense, mode: Sometimes}
"""


def test_a_misspelled_kind_hides_no_other_error() -> None:
    problems = {one.path: one.message for one in found(rules=WRONG)}
    assert problems.keys() == {
        "sources[0].kind", "sources[0].everySeconds", "sources[0].foo", "sources[1].kind", "sources[1].url",
        "rules[0].kind", "rules[0].mode", "rules[1].kind",
    }  # fmt: skip
    assert problems["sources[0].kind"].endswith("got 'HttpProb'; did you mean HttpProbe?")
    assert problems["sources[1].kind"].endswith("did you mean HttpProbe?")
    assert problems["rules[0].kind"].endswith("did you mean TrafficFailover?")
    assert problems["rules[1].kind"].endswith("got 'Nonsense'")

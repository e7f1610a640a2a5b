"""Hints: what is seldom meant is told, what is sensible is not, and a comment silences one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rules
from rules.core.errors import Problem
from rules.lint.hints import HINTS
from rules.loader import examine, load_rules
from rules.rulefile.overlap import could_select_both, may_overlap
from rules.rulefile.selectors import matches as selects
from rules.rulefile.selectors import parsed
from rules.rulefile.targets import matches
from tests.unit.rules.builders import backends, failover, notification
from tests.unit.rules.test_loader import GOOD, name

LIBRARY = sorted(
    file for file in (Path(rules.__file__).parent / "library").glob("*.yaml") if not file.stem.endswith("_test")
)
ENDPOINTS = {"name": "endpoints", "kind": "EndpointsWatch", "cluster": "east"}
QUERY = {
    "name": "slo",
    "kind": "PrometheusQuery",
    "prometheus": "main",
    "query": "up == 0",
    "target": "service/east/shop/a",
}
A, ANY = {"target": "service/east/shop/a"}, {"target": "service/{region}/shop/{name}"}
AB: dict[str, Any] = {"backends": backends("a", "b"), "recoverySeconds": 60}


def probe(**keys: Any) -> dict[str, Any]:
    return {
        "name": "probe", "kind": "HttpProbe", "target": "service/east/shop/a", "url": "http://a.example/"
    } | keys  # fmt: skip


def selecting(selector: str, **keys: Any) -> dict[str, Any]:
    route = {"cluster": "east", "kind": "TrafficSplit", "selector": selector} | keys.pop("route", {})
    return failover(route=route, recoverySeconds=60, **keys)


def workload(name: str = "nginx", **keys: Any) -> dict[str, Any]:
    return {
        "name": name, "kind": "WorkloadFailover", "failover": {"cluster": {}},
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "nginx"}],
    } | keys  # fmt: skip


def hints(
    *rules: Mapping[str, Any], sources: Sequence[Mapping[str, Any]] = (), guards: Sequence[Mapping[str, Any]] = ()
) -> list[Problem]:
    text = json.dumps({"apiVersion": "reactor/v1", "sources": [*sources], "rules": [*rules], "guards": [*guards]})
    reading = examine([("f.yaml", text)])
    assert reading.problems == []
    return reading.hints()


def said(*rules: Mapping[str, Any], **more: Any) -> list[tuple[str, str]]:
    """The hints by name, with what they are about."""
    return [(hint.hint, hint.path) for hint in hints(*rules, **more)]


# --- quiet ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*LIBRARY, *GOOD], ids=name)
def test_a_file_that_is_as_it_should_be_gets_no_hint(path: Path) -> None:
    assert examine([(path.name, path.read_text())]).hints() == []


def test_the_library_gets_no_hint_when_all_of_it_is_used_together() -> None:
    assert examine([(path.name, path.read_text()) for path in LIBRARY]).hints() == []


def test_hints_are_no_business_of_who_runs_the_rules() -> None:
    text = json.dumps({"apiVersion": "reactor/v1", "rules": [failover()]})
    assert load_rules([("f.yaml", text)]).warnings == ()


def test_a_rule_that_is_off_gets_no_hint() -> None:
    assert said(failover(mode="Off"), failover(name="other", mode="Off"), sources=[ENDPOINTS]) == []


# --- no-recovery ---------------------------------------------------------------------------------------------------


def test_a_rule_that_goes_back_at_once_will_flap() -> None:
    assert said(failover()) == [("no-recovery", "rules[0]")]
    taint = {
        "name": "t",
        "kind": "ClusterTaint",
        "match": "cluster/east",
        "taints": [{"key": "a", "effect": "NoExecute"}],
    }
    assert said(taint) == [("no-recovery", "rules[0]")]


def test_a_person_who_writes_that_it_goes_back_at_once_means_it() -> None:
    assert said(failover(recoverySeconds=0)) == []


def test_what_tells_people_or_never_goes_back_needs_no_recovery() -> None:
    assert said(notification(), workload()) == []


# --- not-fed, not-read ---------------------------------------------------------------------------------------------


def test_a_rule_that_nothing_feeds_is_told_once() -> None:
    assert sorted(said(failover(**AB), sources=[ENDPOINTS | {"cluster": "west"}])) == [
        ("not-fed", "rules[0]"), ("not-read", "sources[0]"),
    ]  # fmt: skip


def test_a_backend_that_nothing_feeds_is_told_at_its_place() -> None:
    assert said(
        failover(**AB),
        sources=[
            probe(failureThreshold=1),
        ],
    ) == [("not-fed", "rules[0].backends[1]")]


def test_a_cluster_without_a_source_is_told_at_its_name() -> None:
    rule = workload(placement={"clusterAffinity": {"clusterNames": ["member1", "mebmer2"]}})
    (found,) = hints(rule, sources=[{"name": "c", "kind": "ClusterProbe", "cluster": "member1"}])
    assert (found.hint, found.path) == ("not-fed", "rules[0].placement.clusterAffinity.clusterNames[1]")
    assert "cluster/mebmer2, so no copy is ever placed there. Is it misspelt?" in found.message


def test_files_without_sources_are_fed_by_others() -> None:
    assert said(failover(**AB), notification(), workload()) == []


def test_files_without_rules_are_read_by_others() -> None:
    assert said(sources=[ENDPOINTS, probe()]) == []


def test_a_signal_that_the_rule_does_not_read_feeds_nothing() -> None:
    rule = failover(**AB, signals=["endpoints"])
    found = hints(rule, sources=[ENDPOINTS, probe()])
    assert [(hint.hint, hint.path) for hint in found] == [("not-read", "sources[1]")]
    assert "with the signal 'probe'" in found[0].message


@pytest.mark.parametrize(
    "template",
    ["service/{cluster}/{namespace}/{service}", "service/east/shop/{service}", "service/east/shop/{a}-x",
     "service/e{x}/shop/a"],
)  # fmt: skip
def test_a_template_that_could_name_the_target_feeds_it(template: str) -> None:
    targets = [{"service": "a", "target": "service/east/shop/a"}, {"service": "b", "target": "service/east/shop/a-x"}]
    found = said(failover(backends=targets, recoverySeconds=1), sources=[QUERY | {"target": template}])
    assert ("not-fed", "rules[0]") not in found
    assert ("not-read", "sources[0]") not in found


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ({"name": "c", "kind": "ClusterProbe", "cluster": "member1"}, workload()),
        ({"name": "w", "kind": "WorkloadWatch", "cluster": "member1"},
         workload(failover={"application": {}}, propagateDeps=True)),
        ({"name": "l", "kind": "LeaseWatch", "cluster": "karmada"}, workload(carrier="Karmada")),
        ({"name": "n", "kind": "NodeWatch", "cluster": "prod"}, notification(match="zone/prod/*")),
    ],
)  # fmt: skip
def test_every_kind_of_rule_is_fed_by_the_sources_that_are_for_it(source: Any, rule: Any) -> None:
    assert said(rule, sources=[source]) == []


def test_a_zone_that_one_signal_observes_says_before_it_is_isolated_what_brings_it_back() -> None:
    nodes = {"name": "nodes", "kind": "NodeWatch", "cluster": "prod"}
    rule = {"name": "z", "kind": "ZoneIsolation", "cluster": "prod", "zones": [{"name": "a"}, {"name": "b"}]}
    assert said(rule, sources=[nodes]) == [("one-witness", "rules[0].zones[0]")]
    slo = QUERY | {"name": "slo", "target": "zone/prod/{zone}"}
    assert said(rule, sources=[nodes, slo]) == []
    outside = rule | {"failback": {"signals": ["nodes", "outside"]}}
    assert said(outside, sources=[nodes, slo])[0] == ("one-witness", "rules[0].zones[0]")


def test_peers_of_guards_and_members_of_a_quorum_are_read() -> None:
    other = {"name": "other", "kind": "ClusterProbe", "cluster": "north"}
    guard = {"rules": ["*"], "maxUnhealthy": 3, "peers": "cluster/*"}
    quorum = {"name": "q", "kind": "Quorum", "members": "cluster/*", "unhealthyAt": 2, "target": "service/east/shop/a"}
    assert said(failover(**AB), sources=[ENDPOINTS, other]) == [("not-read", "sources[1]")]
    assert said(failover(**AB), sources=[ENDPOINTS, other], guards=[guard]) == []
    assert said(failover(**AB), sources=[ENDPOINTS, other, quorum]) == []


def test_the_inventory_of_karmada_feeds_its_rules() -> None:
    assert said(workload(carrier="Karmada"), sources=[probe(target="cluster/x")]) == []
    assert ("not-fed", "rules[0]") in said(workload(), sources=[probe(target="service/x/y/z")])


# --- toleration-below-source ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "seconds"),
    [
        (probe(failureThreshold=3, everySeconds=5), 15),
        (QUERY | {"everySeconds": 30}, 30),
        ({"name": "c", "kind": "ClusterProbe", "cluster": "x", "failureSeconds": 40} | A, 40),
        ({"name": "l", "kind": "LeaseWatch", "cluster": "x", "graceSeconds": 20} | ANY, 20),
    ],
)  # fmt: skip
def test_a_toleration_shorter_than_what_the_source_takes_says_little(source: Any, seconds: float) -> None:
    def told(toleration: float) -> list[Problem]:
        found = hints(failover(**AB, tolerationSeconds=toleration), sources=[ENDPOINTS, source])
        return [hint for hint in found if hint.hint == "toleration-below-source"]

    [hint] = told(seconds - 1)
    assert hint.path == "rules[0].tolerationSeconds"
    assert f"the {seconds} s that source {source['name']!r} takes to notice" in hint.message
    assert told(seconds) == []
    assert told(0) == [], "the source decides alone, and somebody has written so"


def test_a_query_without_any_toleration_decides_by_one_look() -> None:
    assert said(failover(**AB), sources=[ENDPOINTS, QUERY]) == [
        ("toleration-below-source", "rules[0].tolerationSeconds")
    ]
    assert said(failover(**AB), sources=[ENDPOINTS, probe()]) == []


def test_tolerations_of_clusters_and_of_copies_are_looked_at() -> None:
    rule = workload(
        placement={"clusterTolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10},
            {"key": "b", "operator": "Exists"},
        ]},
        failover={"cluster": {}, "application": {"decisionConditions": {"tolerationSeconds": 10}}}, propagateDeps=True,
    )  # fmt: skip
    sources = [
        {"name": "c", "kind": "ClusterProbe", "cluster": "m1"},
        QUERY | {"target": "workload/{cluster}/shop/Deployment/nginx", "everySeconds": 12},
    ]
    assert said(rule, sources=sources) == [
        ("toleration-below-source", "rules[0].failover.application.decisionConditions.tolerationSeconds"),
        ("toleration-below-source", "rules[0].placement.clusterTolerations[0].tolerationSeconds"),
    ]


# --- two rules -----------------------------------------------------------------------------------------------------


def test_two_rules_on_one_route_undo_each_other() -> None:
    [hint] = hints(failover(**AB), failover(name="again", **AB))
    assert (hint.hint, hint.path) == ("same-route", "rules[1].route")
    assert "rule 'web' (f.yaml:1) moves the same route" in hint.message


@pytest.mark.parametrize("other", [{"namespace": "pay"}, {"cluster": "west"}, {"name": "api"}])
def test_two_rules_on_two_routes_do_not(other: dict[str, str]) -> None:
    route = failover()["route"]
    assert said(failover(**AB), failover(name="again", route=route | other, **AB)) == []


def test_two_rules_of_one_httproute_may_be_moved_by_two_rules() -> None:
    def of(name: str, index: int | None) -> dict[str, Any]:
        rule = failover(name=name, route_kind="HTTPRoute", **AB)
        return rule if index is None else rule | {"route": rule["route"] | {"rule": index}}

    assert said(of("a", 0), of("b", 1)) == []
    assert said(of("a", 0), of("b", 0)) == [("same-route", "rules[1].route")]
    assert said(of("a", 0), of("b", None)) == [("same-route", "rules[1].route")]


def test_a_rehearsal_beside_the_rule_in_force_is_no_second_writer() -> None:
    assert said(failover(**AB), failover(name="next", mode="DryRun", **AB)) == []
    assert len(said(failover(mode="DryRun", **AB), failover(name="next", mode="DryRun", **AB))) == 1


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [("app=a", "app=a", True), ("app=a", "app=b", False), ("app=a", "tier=x", True), ("app", "!app", False),
     ("app in (a, b)", "app in (b, c)", True), ("app in (a, b)", "app notin (a, b)", False),
     ("!app", "app notin (a)", True), ("app", "app!=a", True)],
)  # fmt: skip
def test_selectors_overlap_where_one_object_could_have_both(one: str, other: str, overlap: bool) -> None:
    found = said(selecting(one), selecting(other, name="again"))
    assert found == ([("overlapping-selectors", "rules[1].route.selector")] if overlap else [])


def test_selectors_of_two_namespaces_do_not_overlap() -> None:
    def at(name: str, namespace: str | None) -> dict[str, Any]:
        return selecting("a=b", name=name, route={"namespace": namespace} if namespace else {})

    assert said(at("one", "shop"), at("two", "pay")) == []
    assert len(said(at("one", "shop"), at("two", None))) == 1


def test_workloads_that_two_rules_select_are_told() -> None:
    labelled = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "a"}}}
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchExpressions": [
        {"key": "app", "operator": "NotIn", "values": ["a"]}]}}  # fmt: skip
    assert said(workload(), workload("again")) == [("overlapping-selectors", "rules[1].resourceSelectors[0]")]
    assert len(said(workload(), workload("again", resourceSelectors=[labelled]))) == 1
    assert said(workload(resourceSelectors=[other]), workload("again", resourceSelectors=[labelled])) == []


# --- comments ------------------------------------------------------------------------------------------------------

COMMENTED = """
apiVersion: reactor/v1
rules:
  {above}
  - name: web   {beside}
    kind: TrafficFailover
    route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: web}}
"""


@pytest.mark.parametrize(
    ("above", "beside", "found"),
    [("", "", ["no-recovery"]), ("", "# reactor: ignore no-recovery", []), ("# reactor: ignore no-recovery", "", []),
     ("", "# we know; reactor:ignore same-route , no-recovery", ["no-recovery"]),
     ("", "# reactor:ignore same-route , no-recovery", []), ("", "# reactor: ignore not-fed", ["no-recovery"])],
)  # fmt: skip
def test_a_comment_silences_the_hint_that_it_names(above: str, beside: str, found: list[str]) -> None:
    reading = examine([("f.yaml", COMMENTED.format(above=above, beside=beside))])
    assert [hint.hint for hint in reading.hints()] == found


def test_a_comment_that_names_no_hint_is_told() -> None:
    [hint, warning] = sorted(
        examine([("f.yaml", COMMENTED.format(above="", beside="# reactor: ignore flaps"))]).hints(),
        key=lambda one: one.severity,
    )  # fmt: skip
    assert (hint.severity, warning.severity, warning.line) == ("hint", "warning", 5)
    assert f"no hint is called flaps; there are {', '.join(HINTS)}" in warning.message


# --- the sums behind it --------------------------------------------------------------------------------------------

SEGMENT = st.text("ab", min_size=1, max_size=3)
GLOB = st.one_of(SEGMENT, st.sampled_from(["*", "a*", "*b", "?b", "**", "a*b"]))


@given(
    st.lists(GLOB, min_size=1, max_size=4),
    st.lists(GLOB, min_size=1, max_size=4),
    st.lists(SEGMENT, min_size=1, max_size=4),
)
def test_patterns_with_a_target_in_common_could_meet(one: list[str], other: list[str], path: list[str]) -> None:
    first, second, target = "/".join(one), "/".join(other), "/".join(path)
    assert may_overlap(first, second) == may_overlap(second, first)
    if matches(first, target) and matches(second, target):
        assert may_overlap(first, second)
        assert may_overlap(first, target)
    if not {"*", "?"} & set(first):
        assert may_overlap(first, second) == matches(second, first)


@given(st.text("a*?[{}/", max_size=12), st.text("a*?[]/b", max_size=12))
def test_any_two_texts_are_compared(one: str, other: str) -> None:
    assert may_overlap(one, other) in (True, False)


SELECTOR = st.sampled_from(["a", "!a", "a=x", "a!=x", "a in (x, y)", "a notin (x)", "b=x", "!b"])


@given(st.lists(SELECTOR, min_size=1, max_size=3), st.lists(SELECTOR, min_size=1, max_size=3))
def test_selectors_overlap_exactly_where_some_labels_fit_both(one: list[str], other: list[str]) -> None:
    worlds = [
        {key: value for key, value in (("a", a), ("b", b)) if value}
        for a in ("", "x", "y", "z")
        for b in ("", "x", "z")
    ]  # fmt: skip
    first, second = ",".join(one), ",".join(other)
    some = any(selects(first, labels) and selects(second, labels) for labels in worlds)
    assert could_select_both(parsed(first), parsed(second)) == some


def test_many_rules_and_sources_are_looked_through_in_seconds() -> None:
    sources = [probe(name=f"p{n}", target=f"service/east/shop/a{n}", failureThreshold=1) for n in range(700)]
    many = [
        failover(name=f"r{n}", tolerationSeconds=10, recoverySeconds=1,
                 route={"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": f"r{n}"},
                 backends=backends(f"a{n}", f"a{n + 1}")) for n in range(699)
    ]  # fmt: skip
    assert hints(*many, sources=sources) == []


def test_a_signal_that_puts_taints_on_clusters_is_said_to_be_no_word_about_their_health() -> None:
    taint = {
        "name": "brownout", "kind": "ClusterTaint", "match": "cluster/*", "signals": ["probe"], "recoverySeconds": 60,
        "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
    }  # fmt: skip
    sources = [probe(target="cluster/east")]
    moving = workload(recoverySeconds=60)
    assert ("taint-signal", "rules[1].signals") in said(moving, taint, sources=sources)
    listed = workload(recoverySeconds=60, signals=["probe"])
    assert "taint-signal" not in [one for one, _ in said(listed, taint, sources=sources)]


@pytest.mark.parametrize(("carrier", "warned"), [("Karmada", False), ("Kubernetes", True)])
def test_the_inventory_of_a_karmada_control_plane_has_its_signal_without_a_source(
    carrier: str, *, warned: bool
) -> None:
    rule = workload(carrier=carrier, signals=["karmada"])
    text = json.dumps({"apiVersion": "reactor/v1", "sources": [ENDPOINTS], "rules": [rule]})
    problems = examine([("f.yaml", text)]).problems
    assert any("no source here has" in one.message for one in problems) is warned

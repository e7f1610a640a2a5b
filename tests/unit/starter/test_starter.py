"""Rules of `reactor init` can be used as they are, whatever is on the clusters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Backend, Route, RouteKind
from reactor.workbench.starter.look import ClusterFindings, FoundCopy
from reactor.workbench.starter.making import RULES_MAX, Starter, starter
from reactor.workbench.starter.starter_tests import text_of_test
from reactor.workbench.starter.starter_text import text_of_rules
from rules import loader
from rules.rehearsal.rule_tests import tester
from rules.rulefile.route_kinds import ROUTE_KINDS
from tests.examples import many

NOW = datetime.fromtimestamp(0, UTC)
# Names that some reader of YAML takes for something else are names, too.
names = st.sampled_from(["shop", "web", "no", "on", "1e3", "null", "0x1", "a-b", "y", "123", "true"])
BUILT_IN = [kind for kind in get_args(RouteKind) if kind in ROUTE_KINDS]
zones = st.sampled_from(["eu-1a", "1", "no", "Z.b", "1e3"])


@st.composite
def routes(draw: st.DrawFn, cluster: str) -> list[Route]:
    found: dict[str, Route] = {}
    for name in draw(st.lists(names, max_size=3)):
        kind = draw(st.sampled_from(BUILT_IN))
        services = draw(st.lists(names | st.just("other/web"), min_size=2, max_size=4, unique=True))
        route = Route(
            cluster=cluster, kind=kind, namespace=draw(names), name=name, observed_at=NOW,
            rule=draw(st.none() | st.integers(0, 15)) if ROUTE_KINDS[kind].has_rules else None,
            annotations=draw(st.just({}) | st.builds(lambda one: {"failover.linkerd.io/primary-service": one}, names)),
            backends=tuple(Backend(service=one, weight=draw(st.integers(0, 100))) for one in services),
        )  # fmt: skip
        found[route.object.partition("#")[0]] = route
    return [*found.values()]


@st.composite
def clusters(draw: st.DrawFn) -> list[ClusterFindings]:
    found = []
    for cluster in draw(st.lists(st.sampled_from(["east", "west", "no", "1"]), min_size=1, max_size=3, unique=True)):
        kinds = st.sampled_from(["Deployment", "StatefulSet"])
        copies = draw(st.lists(st.builds(FoundCopy, kinds, names, names, st.integers(1, 50)), max_size=4))
        in_zones = draw(st.dictionaries(zones, st.integers(1, 9), max_size=3))
        found.append(
            ClusterFindings(
                cluster, tuple(draw(routes(cluster))), tuple(copies), tuple(sorted(in_zones.items())), ("odd\nwords",)
            )
        )
    return found


@many(100)
@given(clusters())
def test_each_rule_that_moves_traffic_says_by_which_signal_it_comes_back(found: list[ClusterFindings]) -> None:
    made = starter(found)
    said = {source["signal"] for source in made.sources}
    for one in made.routes:
        assert one.rule["failback"]["mode"] == "Automatic"
        assert said.issuperset(one.rule["failback"]["signals"])
    assert not made.routes or "mode: Trial" in text_of_rules(made, "rules.yaml", "rules_test.yaml")


@many(100)
@given(clusters())
def test_whatever_is_found_the_rules_are_quiet_under_check_and_their_tests_pass(found: list[ClusterFindings]) -> None:
    made = starter(found)
    if not made.rules:
        return
    text = text_of_rules(made, "rules.yaml", "rules_test.yaml")
    reading = loader.examine([("rules.yaml", text)])
    assert (reading.problems, [one for one in reading.hints() if one.hint != "one-witness"]) == ([], [])
    suite = tester.load_suite(text_of_test(made, "rules.yaml"), "rules_test.yaml", lambda _: text)
    assert suite.warnings == ()
    assert [one.name for one in tester.run(suite) if not one.passed] == []


@many(100)
@given(clusters())
def test_every_rule_that_is_made_does_nothing_yet(found: list[ClusterFindings]) -> None:
    assert {made.rule["mode"] for made in starter(found).rules} <= {"DryRun"}


def starter_of(number: int) -> Starter:
    copies = tuple(FoundCopy("Deployment", "shop", f"web-{index}", 1) for index in range(number))
    return starter([ClusterFindings("east", copies=copies), ClusterFindings("west", copies=copies)])


def test_a_starter_has_no_more_rules_than_a_person_reads_and_says_how_many_are_left_out() -> None:
    made = starter_of(RULES_MAX + 3)
    assert len(made.workloads) == RULES_MAX
    assert made.left_out == ["3 more workloads: narrow it with --namespace"]
    assert loader.load_rules([("rules.yaml", text_of_rules(made, "rules.yaml", "t.yaml"))]).warnings == ()


def test_a_workload_that_one_cluster_has_stays_there() -> None:
    made = starter(
        [ClusterFindings("east", copies=(FoundCopy("Deployment", "shop", "web", 1),)), ClusterFindings("west")]
    )
    assert made.rules == []


def test_what_could_not_be_read_is_named_in_the_file() -> None:
    made = starter_of(1)
    made.left_out.append("east: Nodes could not be read: forbidden")
    assert "# - east: Nodes could not be read: forbidden" in text_of_rules(made, "rules.yaml", "t.yaml")

"""Coverage of rule tests: what was seen, what never, and that no reason is forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rules
from rules.catalog import KINDS
from rules.core.reasons import Because, Held
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.rule_tests.possible import BECAUSE, HELD, possible
from rules.rehearsal.rule_tests.reason_coverage import Covered, coverage
from tests.unit.rules.builders import failover, rule_set
from tests.unit.rules.test_tester import CHECKOUT, FAILS, MOVED, WEST, a_test, read_file, suite

LIBRARY = sorted((Path(rules.__file__).parent / "library").glob("*_test.yaml"))
ALL_GUARDS: dict[str, Any] = {
    "maxConcurrent": 1, "ratePerSecond": 1, "maxUnhealthy": 3, "cooldownSeconds": 5, "approval": {},
    "disruption": {"unhealthyAt": 2, "secondaryRatePerSecond": 0},
    "blockedWindows": [{"cron": "0 0 * * *", "durationSeconds": 60}],
}  # fmt: skip


LIVE = frozenset(
    {Held.CATCHING_UP, Held.AWAITING_GUARD, Held.ALL_ZERO, Held.SOURCE_SILENT, Held.LIST_DOUBTED, Held.HEALTHY_NOW}
)
"""Not in a rule test: facts are read in time there, guards answer at once, and AllZero only stops a mistake of ours."""


def covered(*tests: dict[str, Any], rules: str = "shop.yaml") -> Covered:
    loaded = tester.load_suite(suite(*tests, rules=rules), "rules/shop_test.yaml", read_file)
    [one] = coverage([(loaded, list(tester.run(loaded)))])
    return one


def test_every_reason_belongs_to_a_kind_or_a_guard() -> None:
    of_guards = possible(rule_set(failover(guards=ALL_GUARDS)).rules[0])[1]
    assert frozenset().union(*BECAUSE.values()) == set(Because)
    assert frozenset().union(*HELD.values(), of_guards, LIVE) == set(Held)


def test_every_kind_that_people_write_has_its_reasons() -> None:
    internal = {kind for kind in KINDS if kind.__name__ in ("LimiterRule", "QuorumRule")}
    assert BECAUSE.keys() == HELD.keys() == KINDS.keys() - internal


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.name)
def test_no_library_test_sees_what_its_rule_cannot_say(path: Path) -> None:
    loaded = tester.load_suite(path.read_text(), str(path), lambda file: Path(file).read_text())
    for one in coverage([(loaded, list(tester.run(loaded)))]):
        because, held = possible(loaded.rules.rule(one.rule), loaded.rules.guards)
        assert one.because.keys() <= because
        assert one.held.keys() <= held
        assert one.because, "each rule acts in one of its tests"


def test_what_was_seen_is_counted_and_the_rest_was_never_seen() -> None:
    hold = [{"target": CHECKOUT, "values": "Unhealthy x6"}, {"target": WEST, "values": "Unhealthy x6"}]
    one = covered(a_test([MOVED], FAILS), a_test([MOVED], FAILS, name="again"), a_test([], hold, name="hold"))
    assert (one.rule, one.kind, one.place) == ("web", "TrafficFailover", "rules/shop.yaml:1")
    assert dict(one.because) == {"PrimaryUnhealthy": 2}
    assert dict(one.held) == {"NoHealthySecondary": 1}
    assert one.never_because == ("Drift", "PrimaryChanged", "PrimaryHealthy", "SecondariesChanged")
    assert (one.seen, one.possible) == (2, 12)


def test_a_rule_that_no_test_touches_is_told_with_all_its_reasons() -> None:
    one = covered(a_test([], [{"target": CHECKOUT, "values": "Healthy"}]))
    assert one.seen == 0
    assert len(one.never_because) == 5


def test_a_rule_that_is_off_is_left_out() -> None:
    loaded = tester.load_suite(suite(a_test([]), rules="off.yaml"), "rules/shop_test.yaml", read_file)
    assert list(coverage([(loaded, list(tester.run(loaded)))])) == []


def test_a_rule_that_two_test_files_are_about_is_told_once() -> None:
    loaded = tester.load_suite(suite(a_test([MOVED])), "rules/shop_test.yaml", read_file)
    results = list(tester.run(loaded))
    [one] = coverage([(loaded, results), (loaded, results)])
    assert dict(one.because) == {"PrimaryUnhealthy": 2}


def test_what_a_rule_tells_people_of_itself_is_no_reason_of_its_own() -> None:
    inputs = [{"target": CHECKOUT, "values": "Unhealthy"}, {"target": WEST, "values": "Healthy"}]
    of_itself = covered(a_test([{"action": "SetWeights"}], inputs), rules="told.yaml")
    assert dict(of_itself.because) == {"PrimaryUnhealthy": 1}
    changed = [{"target": CHECKOUT, "values": "Healthy Unhealthy"}]
    assert dict(covered(a_test([{"action": "Notify"}], changed), rules="tell.yaml").because) == {"TargetChanged": 1}


@pytest.mark.parametrize(
    ("keys", "more", "less"),
    [
        ({"steps": [{"percent": 10, "pauseSeconds": 5}]}, {"Returning"}, set()),
        ({"onAllDown": "Spread"}, {"AllDown"}, {"NoHealthySecondary"}),
        ({"mode": "DryRun"}, set(), {"ActionFailed"}),
        ({"mode": "Approve"}, {"AwaitingApproval", "ApprovalExpired", "Rejected"}, set()),
        ({"guards": {"cooldownSeconds": 5}}, {"Cooldown"}, set()),
        ({"guards": {"minHealthy": 1}}, {"WidespreadFailure"}, set()),
    ],
)
def test_only_what_a_rule_can_say_as_it_is_written_is_asked_of_its_tests(
    keys: dict[str, Any], more: set[str], less: set[str]
) -> None:
    def of(**keys: Any) -> set[str]:
        because, held = possible(rule_set(failover(**keys)).rules[0])
        return {*because, *held}

    assert of(**keys) - of() == more
    assert of() - of(**keys) == less

"""Commands of people, and refused ones."""

from __future__ import annotations

import pytest

from tests.unit.rules.zone.builders import (
    FORWARD,
    STEPS,
    ZONES,
    failback,
    healthy,
    holds,
    isolate,
    listed,
    names,
    retry,
    said,
    steps,
    unhealthy,
    zone_rule,
)

WELL = [*listed(), *healthy(*ZONES, at=0)]


def test_a_person_needs_neither_the_toleration_nor_a_second_signal() -> None:
    found = said(zone_rule(), WELL, isolate("a", at=9))
    assert steps(found) == [(9.0, "a", "Failover", "InProgress", step) for step in STEPS]
    assert {getattr(one.what, "detail", "") for one in found} == {"ann: INC-7"}


def test_a_person_waits_for_the_other_guards_and_not_without_end() -> None:
    found = said(zone_rule(), listed(demand_nodes=11), isolate("a", at=9), listed(at=2000), until=5000)
    assert names(found) == []
    assert holds(found) == [(9.0, "prod/a", "InsufficientCapacity"), (909.0, "prod/a", "StartExpired")]


def test_what_became_too_late_can_be_asked_again_for_any_zone() -> None:
    found = said(
        zone_rule(), listed(demand_nodes=11), isolate("a", at=9), listed(at=2000), isolate("b", at=3000), until=4000
    )
    assert names(found) == FORWARD
    assert {step[1] for step in steps(found)} == {"b"}


@pytest.mark.parametrize(
    ("inventory", "allowed"), [({"demand_nodes": 11}, {"force": True}), ({"single_zone_services": ("shop/db",)}, {})]
)
def test_force_skips_capacity_and_never_a_services_only_zone(
    inventory: dict[str, object], allowed: dict[str, bool]
) -> None:
    found = said(zone_rule(), listed(**inventory), isolate("a", at=9, force=True))  # type: ignore[arg-type]
    assert names(found) == (FORWARD if allowed else [])


def test_a_service_may_be_named_that_goes_down_with_its_zone() -> None:
    lonely = listed(single_zone_services=("shop/db", "a:shop/mq"))
    both = isolate("a", at=9, allow_single_zone=("shop/db", "shop/mq"))
    assert names(said(zone_rule(), lonely, both)) == FORWARD
    one = said(zone_rule(), lonely, isolate("a", at=9, allow_single_zone=("shop/db",)))
    assert holds(one)[0] == (9.0, "prod/a", "SingleZoneServices")


def test_a_second_word_may_carry_more_than_the_first() -> None:
    found = said(zone_rule(), listed(demand_nodes=11), isolate("a", at=9), isolate("a", at=20, by="eve", force=True))
    assert [step[0] for step in steps(found)] == [20.0] * len(STEPS)


def test_the_same_zone_again_is_a_no_op() -> None:
    found = said(zone_rule(), WELL, isolate("a", at=9), isolate("a", at=20, by="eve"))
    assert (names(found), holds(found)) == (FORWARD, [])


def test_another_zone_is_refused_while_one_is_isolated_or_on_its_way() -> None:
    done = said(zone_rule(), WELL, isolate("a", at=9), isolate("b", at=20))
    assert (names(done), holds(done)) == (FORWARD, [(20.0, "prod/b", "MaxIsolatedZones")])
    running = said(zone_rule(), WELL, isolate("a", at=9), isolate("b", at=20), outcomes=False, until=30)
    assert (names(running), holds(running)) == (["+Fence"], [(20.0, "prod/b", "AnotherInProgress")])


def test_of_two_operators_in_the_same_moment_one_gets_the_zone() -> None:
    found = said(zone_rule(), WELL, isolate("a", at=9), isolate("b", at=9, by="eve"))
    assert {step[1] for step in steps(found)} == {"a"}
    assert holds(found)[0] == (9.0, "prod/b", "AnotherInProgress")


def test_a_command_that_comes_twice_counts_once() -> None:
    once = isolate("a", at=9)
    found = said(zone_rule(), WELL, once, failback("a", at=50), [(100, fact) for _, fact in once], until=200)
    assert names(found)[: len(STEPS)] == FORWARD
    assert names(found)[len(STEPS) :] == ["-CutNetwork", "-ShiftTraffic", "-Fence"]


def test_a_command_that_is_older_than_the_last_one_is_refused_and_not_skipped() -> None:
    late = [(50.0, fact) for _, fact in failback("a", at=5, by="bob")]
    found = said(zone_rule(), WELL, isolate("a", at=9), late)
    assert (names(found), holds(found)) == (FORWARD, [(50.0, "prod/a", "ChangeRefused")])
    assert "say it again" in getattr(found[-1].what, "detail", "")


def test_an_id_instead_of_a_name_is_refused_with_the_name() -> None:
    found = said(zone_rule(), WELL, isolate("euc1-az2", at=9))
    assert holds(found) == [(9.0, "prod/euc1-az2", "ZoneNotFound")]
    assert "euc1-az2 is the id of b" in getattr(found[0].what, "detail", "")


def test_an_unknown_zone_is_refused_with_those_that_there_are() -> None:
    found = said(zone_rule(), WELL, isolate("z", at=9))
    assert "it has a, b, c" in getattr(found[0].what, "detail", "")


def test_failing_back_another_zone_than_the_isolated_one_is_refused() -> None:
    found = said(zone_rule(), WELL, isolate("a", at=9), failback("b", at=50))
    assert (names(found), holds(found)) == (FORWARD, [(50.0, "prod/b", "ChangeRefused")])


def test_failing_back_what_is_not_isolated_changes_nothing() -> None:
    assert said(zone_rule(), WELL, failback("a", at=9)) == []


def test_retrying_what_has_not_failed_is_refused_or_changes_nothing() -> None:
    assert holds(said(zone_rule(), WELL, retry("a", at=9))) == [(9.0, "prod/a", "ChangeRefused")]
    assert names(said(zone_rule(), WELL, isolate("a", at=9), retry("a", at=20))) == FORWARD


def test_a_person_can_take_back_a_start_that_waits() -> None:
    found = said(zone_rule(), listed(demand_nodes=11), isolate("a", at=9), failback("a", at=20), listed(at=100))
    assert names(found) == []


def test_a_persons_word_is_the_yes_that_mode_approve_waits_for() -> None:
    found = said(zone_rule(mode="Approve"), WELL, isolate("a", at=9))
    assert (names(found), holds(found)) == (FORWARD, [])


def test_an_isolation_by_hand_of_a_bad_zone_starts_before_its_toleration() -> None:
    found = said(zone_rule(), WELL, unhealthy("a", at=100), isolate("a", at=103))
    assert {step[0] for step in steps(found)} == {103.0}


def test_of_commands_that_are_read_together_the_older_one_comes_first() -> None:
    """A restarted decider may read both at once: the failback is not lost, and the later wish finds one on its way."""
    late = [(20.0, fact) for _, fact in (*failback("a", at=15), *isolate("b", at=16, by="bob"))]
    apart = [*failback("a", at=15), *isolate("b", at=16, by="bob")]
    for asked in (late, late[::-1], apart):
        found = said(zone_rule(), WELL, isolate("a", at=9), asked)
        assert names(found)[-3:] == ["-CutNetwork", "-ShiftTraffic", "-Fence"]
        assert {step[1] for step in steps(found)} == {"a"}

"""An isolation whose record the bus has lost is taken up again by what the nodes say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import MarkedNodes, ZoneStep
from reactor.views.zone_removal import not_to_remove, removal
from reactor.views.zone_words import rows_of
from rules.core.group import Group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.state import Isolation, ZoneState
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event
from tests.unit.rules.zone.builders import (
    BACK,
    FORWARD,
    STEPS,
    UNDONE,
    ZONES,
    approved,
    failback,
    group_after,
    healthy,
    holds,
    isolate,
    listed,
    marks,
    names,
    said,
    seen,
    steps,
    unhealthy,
    zone_rule,
)

WELL = healthy(*ZONES, at=0)
SICK = [*healthy("b", "c", at=0), *unhealthy("a", at=0)]
FOUND = "its record was lost: 5 nodes of a say that rule zones has isolated it; "


def lost(**more: Any) -> list[Event]:
    """Inventory from after the loss: the nodes of a say that they are isolated."""
    return listed(marked={"a": marks(**more)})


def record(group: Group) -> Isolation | None:
    assert isinstance(group.state, ZoneState)
    return group.state.isolation


def test_a_zone_that_is_well_comes_back_when_that_is_proven_and_says_how_it_was_found() -> None:
    found = said(zone_rule(), lost(), WELL)
    assert steps(found) == [(20.0, "a", "Failback", "InProgress", step) for step in UNDONE]
    assert {one.what.because for one in found if hasattr(one.what, "because")} == {"ZoneRecovered"}
    assert holds(found) == [(0.0, "prod/a", "IsolationFound")]
    assert found[0].what.detail == f"{FOUND}zone/prod/a: healthy, 20 s of recoverySeconds are left"


def test_a_zone_that_is_bad_is_isolated_again_step_by_step_after_its_guards() -> None:
    found = said(zone_rule(), lost(), SICK)
    assert steps(found) == [(10.0, "a", "Failover", "InProgress", step) for step in STEPS]
    assert {one.what.because for one in found if hasattr(one.what, "because")} == {"ZoneUnhealthy"}
    back = said(zone_rule(), lost(), SICK, healthy("a", at=100))
    assert names(back) == FORWARD + BACK


def test_while_another_zone_is_bad_too_nothing_is_done_and_no_other_zone_is_isolated() -> None:
    found = said(zone_rule(), lost(), WELL, seen("a", "Unhealthy", at=1), unhealthy("b", at=1), until=500)
    assert names(found) == []
    other = said(zone_rule(), lost(), unhealthy("b", at=0), healthy("a", "c", at=0), until=15)
    assert names(other) == []


def test_one_signal_alone_isolates_nothing_again() -> None:
    one = seen("a", "Unhealthy", at=1, signals=["prom"])
    assert names(said(zone_rule(), lost(), WELL, one, until=500)) == []


def test_what_a_person_has_isolated_stays_until_a_person_opens_it() -> None:
    ann = lost(by="ann")
    found = said(zone_rule(), ann, WELL, until=50_000)
    assert (names(found), holds(found)[0]) == ([], (0.0, "prod/a", "IsolationFound"))
    assert holds(found)[-1][2] == "IsolationFound"
    back = said(zone_rule(), ann, WELL, failback("a", at=3000, by="bob"), until=5000)
    assert names(back) == BACK
    assert [one.what.because for one in back if isinstance(one.what, ZoneStep)] == ["Commanded"] * 3
    group = group_after(zone_rule(), ann, WELL, until=70)
    assert (mine := record(group)) is not None
    assert (mine.phase, mine.status, mine.by, mine.done) == ("Failover", "Done", "ann", STEPS)


def test_a_minute_later_what_a_person_has_isolated_is_gone_over_and_each_node_says_by_whom() -> None:
    store = GroupStore(Routing([zone_rule()]))
    store.apply([fact for _, fact in [*lost(by="ann"), *WELL]], at_(0))
    alarm = store.next_alarm()
    asked = []
    while alarm is not None and alarm <= at_(60):
        asked += [(alarm, action) for one in store.fire_due(alarm) for action in one.actions]
        alarm = store.next_alarm()
    ((when, look),) = [(when, one) for when, one in asked if isinstance(one, ZoneStep)]
    assert (when, look.step, look.status, look.settings["by"]) == (at_(60), "Verify", "Done", "ann")


@pytest.mark.parametrize("by", ["", "ann"])
def test_half_a_way_back_is_finished_when_the_zone_is_proven_well_again(by: str) -> None:
    half = lost(nodes=3, released=2, by=by)
    found = said(zone_rule(), half, WELL)
    assert steps(found) == [(20.0, "a", "Failback", "InProgress", step) for step in UNDONE]
    bad = said(zone_rule(), half, SICK, until=9)
    assert (names(bad), holds(bad)) == ([], [(0.0, "prod/a", "IsolationFound")])
    assert names(said(zone_rule(), half, SICK)) == FORWARD


def test_a_drill_comes_back() -> None:
    found = said(zone_rule(), lost(practice=True), WELL)
    assert names(found) == BACK
    assert {one.what.because for one in found if hasattr(one.what, "because")} == {"Practice"}


@pytest.mark.parametrize(
    ("rule", "inventory"),
    [
        ({}, lost(rule="zones-2")),
        ({"carrier": "Gardener", "shoot": {"namespace": "garden-x", "name": "prod"}}, lost()),
        ({"mode": "DryRun"}, lost()),
        ({"mode": "Off"}, lost()),
        ({}, listed(marked={"a": marks()}, api_reachable=False)),
        ({}, listed(nodes={"a": (5, 5), "d": (5, 5)}, marked={"d": marks()})),
        ({}, listed()),
    ],
    ids=[
        "another rule's",
        "Gardener",
        "DryRun",
        "Off",
        "API server away",
        "a zone that is none of the rule's",
        "no marks",
    ],
)
def test_nothing_else_is_taken_up(rule: dict[str, Any], inventory: list[Event]) -> None:
    assert names(said(zone_rule(**rule), inventory, WELL)) == []
    assert record(group_after(zone_rule(**rule), inventory, WELL, until=1)) is None


def test_an_inventory_that_comes_late_isolates_no_zone_that_was_opened() -> None:
    late = listed(at=400, marked={"a": marks(by="ann")})
    whole = [*listed(), *WELL, *unhealthy("a", at=100), *healthy("a", at=300)]
    found = said(zone_rule(), whole, late, until=2000)
    assert names(found) == FORWARD + BACK
    drill = {"cron": "1 0 * * *", "durationSeconds": 120}
    found = said(zone_rule(practice=drill), listed(), WELL, late, until=2000)
    assert names(found) == ["+Fence", "+ShiftTraffic", "-ShiftTraffic", "-Fence"]


def test_an_isolation_that_was_only_rehearsed_keeps_no_real_one_from_being_found() -> None:
    rehearsed = group_after(
        zone_rule(mode="DryRun"), listed(), WELL, unhealthy("a", at=100), healthy("a", at=300), until=400
    )
    assert isinstance(rehearsed.state, ZoneState)
    assert (rehearsed.state.isolation, rehearsed.state.has_ended) == (None, False)


def test_what_an_executor_was_still_opening_when_the_record_was_lost_is_not_isolated_again() -> None:
    open_ = listed(at=20)
    found = said(zone_rule(), lost(by="ann"), WELL, open_, until=5000)
    assert names(found) == []
    going = listed(at=20, marked={"a": marks(by="ann", nodes=2, released=3)})
    found = said(zone_rule(), lost(by="ann"), WELL, going, until=5000)
    assert names(found) == BACK
    later = listed(at=200)  # as after an autoscaler has replaced all nodes
    group = group_after(zone_rule(), lost(by="ann"), WELL, later, until=300)
    assert record(group) is not None


def test_a_person_who_asks_another_zone_before_the_nodes_were_listed_is_refused() -> None:
    found = said(zone_rule(), isolate("b", at=0), WELL, listed(at=1, marked={"a": marks()}), until=1000)
    assert [hold[1:] for hold in holds(found)][:2] == [("prod/b", "ZonesUnknown"), ("prod/b", "MaxIsolatedZones")]
    assert names(found) == []
    after = listed(at=1200, marked={"a": marks()})
    found = said(zone_rule(), isolate("b", at=0), WELL, listed(at=1, marked={"a": marks()}), after, until=1500)
    assert names(found) == BACK


def test_where_people_bring_zones_back_the_hold_says_so() -> None:
    found = said(zone_rule(failback={"automatic": False}), lost(), WELL, until=5000)
    assert names(found) == []
    assert found[0].what.detail == f"{FOUND}failback.automatic is false: reactor zone failback brings it back"


def test_signals_of_the_way_back_that_did_not_see_it_bad_since_prove_nothing_by_themselves() -> None:
    rule = zone_rule(failback={"signals": ["cloud", "outside"]})
    good = seen("a", "Healthy", at=1, signals=["cloud", "outside"])
    found = said(rule, lost(), WELL, good, until=5000)
    assert names(found) == []
    assert "none of cloud, outside has called the zone bad since" in found[0].what.detail
    bad = seen("a", "Unhealthy", at=1, signals=["cloud"])
    after = seen("a", "Healthy", at=50, signals=["cloud", "outside"])
    assert steps(said(rule, lost(), WELL, bad, after, until=5000))[0][0] == 70.0


def test_a_person_who_brings_a_found_zone_back_still_needs_its_health_or_force() -> None:
    bad = [*lost(), *WELL, *seen("a", "Unhealthy", at=1, signals=["prom"])]
    asked = said(zone_rule(), bad, failback("a", at=5), until=500)
    assert (names(asked), holds(asked)[-1][2]) == ([], "IsolationFound")
    forced = said(zone_rule(), bad, failback("a", at=5, force=True), until=500)
    assert names(forced) == BACK
    rule = zone_rule()
    group = group_after(rule, bad, until=2)
    mine = record(group)
    assert mine is not None
    assert not_to_remove(mine, running=False, force=False) == ""
    assert "reactor zone failback" in not_to_remove(mine, running=True, force=False)
    assert removal(rule, group, mine, force=False).startswith("zones: fail back of a; undoes: CutNetwork")


def test_in_mode_approve_a_person_still_approves_the_way_back() -> None:
    rule = zone_rule(mode="Approve")
    assert names(said(rule, lost(), WELL)) == []
    assert names(said(rule, lost(), WELL, approved("a", at=50))) == BACK


def test_people_see_it_in_the_list_of_zones() -> None:
    rule = zone_rule()
    row = rows_of(rule, group_after(rule, lost(), WELL, until=5))[0]
    assert (row["zone"], row["phase"], row["status"]) == ("prod/a", "Failover", "Pending")
    assert str(row["detail"]).startswith(f"IsolationFound: {FOUND}")


def test_a_rule_without_a_fence_takes_off_the_one_that_it_has_left() -> None:
    found = said(zone_rule(steps=["ShiftTraffic", "Verify"]), lost(), WELL)
    assert names(found) == ["-ShiftTraffic", "-Fence"]


says = st.one_of(
    st.none(), st.builds(marks, nodes=st.integers(1, 5), by=st.sampled_from(["", "ann"]), released=st.integers(0, 2))
)
happens = st.one_of(
    st.builds(lambda marked: ("listed", marked), says), st.sampled_from([("bad", None), ("good", None)]),
    st.sampled_from([("isolate", None), ("failback", None)]),
)  # fmt: skip


def _events(what: str, marked: MarkedNodes | None, now: int) -> list[Event]:
    if what == "listed":
        return listed(at=now, marked={"a": marked} if marked else {})
    if what in ("bad", "good"):
        return unhealthy("a", at=now) if what == "bad" else healthy("a", at=now)
    return isolate("a", at=now) if what == "isolate" else failback("a", at=now, force=True)


@given(st.lists(st.tuples(st.integers(1, 60), happens), max_size=12))
def test_once_an_isolation_has_ended_none_is_ever_taken_up(
    story: list[tuple[int, tuple[str, MarkedNodes | None]]],
) -> None:
    rule, now = zone_rule(), 0
    store = GroupStore(Routing([rule]))
    simulator = Simulator(store, outcomes=True)
    list(simulator.take([fact for _, fact in WELL], at_(0)))
    ended = False
    for seconds, (what, marked) in story:
        now += seconds
        list(simulator.until(at_(now)))
        events = _events(what, marked, now)
        list(simulator.take([fact for _, fact in events], at_(now)))
        (group,) = store.groups.values()
        assert isinstance(group.state, ZoneState)
        ended = ended or group.state.ended_at is not None
        if ended and group.state.isolation is not None:
            assert not group.state.isolation.found

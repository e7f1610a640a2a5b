"""Divided replicas that others took over go back when what they were taken over from has come back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from bus.messages import Place
from rules.engine.group_codec import dump_group, load_group, unpacked
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, outcome, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    copy,
    divided,
    happens,
    held_copy,
    holds,
    in_time,
)
from tests.unit.rules.workload.test_flapping import DUPLICATED, fleet, outages, rule, states

HALVES = divided(m1=1, m2=1)
DYNAMIC = {**divided(), "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
TAKEN_OVER = [(120.0, "Place", {"m2": 6}), (120.0, "Evict", "m1"), (145.0, "CancelEviction", "m1")]
GOES_BACK = ("Place", {"m1": 3, "m2": 3})


def once(*more: Event, copies: dict[str, int] | None = None) -> list[Event]:
    """m1 fails at 100 and is back at 145; copies have no observations but those given here."""
    return [*fleet(copies or {"m1": 3, "m2": 3}), *outages("m1", 1), *more]


def well(at: float, *names: str) -> list[Event]:
    return [copy(name, "Healthy", at=at) for name in names or ("m1", "m2")]


def test_they_go_back_when_all_copies_are_seen_healthy() -> None:
    came = acts(rule(HALVES), *once(*well(200)))
    assert came == [*TAKEN_OVER, (200.0, *GOES_BACK)]


def test_the_action_says_why_and_leaves_no_cluster() -> None:
    *_, last = happens(rule(HALVES), *once(*well(200)))
    assert isinstance(last.what, Place)
    assert (last.what.because, last.what.leaving, last.what.evictions) == ("Recovered", (), ())
    assert last.what.sources == ("m2", "m1"), "the object of a copy that shrinks is not written anew from another one"
    assert last.what.detail == "m2: 3 replicas fewer, what it took them over from has come back"


@pytest.mark.parametrize(
    "told",
    [
        [],
        well(200, "m1"),
        [*well(200, "m1"), copy("m2", "Unhealthy", at=200)],
        [*well(200), cluster("m1", "Unhealthy", at=190)],
        [copy("m1", "Healthy", at=50), copy("m2", "Healthy", at=130)],  # before m1 was back
        [copy("m1", "Healthy", at=50), copy("m2", "Healthy", at=150)],
    ],
)  # fmt: skip
def test_nothing_shrinks_before_each_copy_was_seen_healthy_since_then(told: Sequence[Event]) -> None:
    assert [one for one in acts(rule(HALVES), *once(*told), until=215) if one[1:] == GOES_BACK] == []


def test_a_word_is_said_where_they_stay_for_longer_than_the_grace_period() -> None:
    assert (745.0, "GraceExpired") in holds(rule(HALVES, onGraceExpired="Purge"), *once(*well(200, "m1")))
    [detail] = [one.what.detail for one in happens(rule(HALVES), *once()) if getattr(one.what, "held", "")]
    assert detail == "3 replicas are too many and stay; m1: without an observation, m2: without an observation"


def test_each_copy_is_as_large_as_it_was() -> None:
    events = once(*well(200, "m1", "m2", "m3"), copies={"m1": 3, "m2": 4, "m3": 2})
    came = acts(rule(divided(m1=3, m2=4, m3=2)), *events)
    assert [came[0][2], came[-1][2]] == [{"m2": 6, "m3": 3}, {"m1": 3, "m2": 4, "m3": 2}]
    events = once(*well(200, "m1", "m2", "m3"), copies={"m1": 3, "m2": 1, "m3": 6})
    came = acts(rule(divided(m1=1, m2=1, m3=1)), *events)
    assert [came[0][2], came[-1][2]] == [{"m2": 5, "m3": 5}, {"m1": 3, "m2": 2, "m3": 5}], "m3 took nothing over"


def test_a_cluster_that_has_only_just_recovered_is_waited_for() -> None:
    events = once(cluster("m1", "Unhealthy", at=190), cluster("m1", "Healthy", at=198), *well(200))
    assert acts(rule(HALVES), *events)[-1] == (203.0, *GOES_BACK)


def test_copies_that_are_new_go_first_and_the_others_shrink_then() -> None:
    """m1 leaves four replicas: to m3 what goes there, and the rest to m2, which had some before."""
    given_rule = rule(DYNAMIC)
    events = once(copies={"m1": 4, "m2": 4})
    events += [fact for at in (200, 250, 300) for fact in well(at, *(f"m{number}" for number in range(1, 9)))]
    *_, last = states(given_rule, events)
    assert {name: one.replicas for name, one in last.copies.items()} == {"m1": 4, "m2": 4}
    assert last.wanted_replicas is None


def test_with_another_failure_nothing_is_placed_where_enough_stays() -> None:
    """Of eleven replicas instead of six, the eight that stay were divided again, and a copy that stays shrank."""
    given_rule = rule(divided(m1=1, m2=1, m3=1))
    events = [*fleet({"m1": 2, "m2": 2, "m3": 2}), *outages("m1", 1), *outages("m2", 1)]
    events.append(cluster("m2", "Unhealthy", at=300))
    came = acts(given_rule, *events)
    assert [one[2] for one in came if one[1] == "Place"] == [{"m3": 6}]
    assert came[-1] == (320.0, "Evict", "m2")


def test_what_people_have_scaled_meanwhile_is_kept() -> None:
    events = once(held_copy("m1", 3, at=5), held_copy("m2", 3, at=5), held_copy("m1", 5, at=160), *well(200))
    assert acts(rule(HALVES), *events)[-1] == (200.0, "Place", {"m1": 5, "m2": 3})
    events = once(held_copy("m1", 3, at=5), held_copy("m2", 3, at=5), held_copy("m2", 4, at=160), *well(200))
    assert acts(rule(HALVES), *events)[-1] == (200.0, *GOES_BACK)
    thirds = {"m1": 2, "m2": 2, "m3": 2}
    events = once(held_copy("m2", 2, at=5), held_copy("m2", 7, at=160), *well(200, *thirds), copies=thirds)
    assert acts(rule(divided(m1=1, m2=1, m3=1)), *events)[-1] == (200.0, "Place", {"m1": 2, "m2": 6, "m3": 2})


def test_a_failure_while_they_go_back_takes_them_over_again() -> None:
    """It is not known if the copy has shrunk: it is asked for its full size before the other one is evicted."""
    group_store = GroupStore(Routing.of(rule_set(rule(HALVES))))
    player = Simulator(group_store, outcomes=False)
    came: list[Any] = []
    events = once(*well(200), cluster("m1", "Unhealthy", at=210), *(done(number) for number in (1, 2, 3)))
    for when, fact in in_time(events):
        came += [*player.until(at_(when)), *player.take([fact], at_(when))]
    came += player.until(at_(231))
    assert [(one.at, one.what.clusters) for one in came if isinstance(one.what, Place)] == [
        (120, {"m2": 6}), (200, {"m1": 3, "m2": 3}), (230, {"m2": 6})
    ]  # fmt: skip
    [entry] = group_store.groups["nginx", OBJECT].outbox
    assert isinstance(entry.action, Place), "one replaces the other"


def done(number: int) -> Event:
    return outcome(f"nginx/{OBJECT}/{number}", "Done", at={1: 121, 2: 122, 3: 146}[number])


def test_on_a_karmada_control_plane_its_scheduler_owns_the_number() -> None:
    for replicas in (None, 6):
        events = [*fleet({"m1": 3, "m2": 3}, replicas=replicas), *outages("m1", 1), *well(200)]
        came = acts(rule(HALVES, carrier="Karmada"), *events)
        assert [one[1] for one in came].count("Place") == 1


def test_full_copies_have_no_replicas_that_could_be_too_many() -> None:
    came = acts(rule(DUPLICATED), *once(*well(200), copies={"m1": 2}))
    assert [one[1] for one in came].count("Place") == 1


def test_what_an_earlier_release_has_stored_shrinks_as_well() -> None:
    group_store = GroupStore(Routing.of(rule_set(rule(HALVES))))
    player = Simulator(group_store, outcomes=True)
    for when, fact in in_time(once()):
        for _ in (*player.until(at_(when)), *player.take([fact], at_(when))):
            pass
    list(player.until(at_(150)))
    stored = json.loads(unpacked(dump_group(group_store.groups["nginx", OBJECT])))
    assert stored["state"].pop("wanted_sizes") == {"m1": 3, "m2": 3}
    assert stored["state"].pop("too_many_since") is not None
    others = [group for key, group in group_store.groups.items() if key != ("nginx", OBJECT)]
    taken_over = GroupStore(Routing.of(rule_set(rule(HALVES))), [*others, load_group(json.dumps(stored).encode())])
    player = Simulator(taken_over, outcomes=True)
    came = [one.what for when, fact in well(200) for one in player.take([fact], at_(when))]
    assert [one.clusters for one in came if isinstance(one, Place)] == [{"m1": 3, "m2": 3}]

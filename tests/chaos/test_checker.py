"""The checker itself: it lets a good run pass, and catches each way in which a run can be bad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest

from reactor.audit.checker import check
from reactor.audit.history import RouteHistory, Run, Span, Write

AWAY, HOME = {"a": 0, "b": 1}, {"a": 1, "b": 0}
GOOD = ((12.1, AWAY), (31.1, HOME), (42.1, AWAY))
"""Two outages of a route that tolerates two seconds, and recovers in one: from 10 to 30, and from 40 on."""


def run(*writes: tuple[float, dict[str, int]], outages: Sequence[Span] = (Span(10, 30), Span(40))) -> Run:
    seen = tuple(Write(at, weights, number, 1) for number, (at, weights) in enumerate(writes, 1))
    return Run((RouteHistory("r", "a", 2.0, 1.0, tuple(outages), seen),), end=60.0)


def broken(run: Run) -> list[str]:
    return [breach.promise for breach in check(run).breaches]


def test_a_good_run_keeps_all_promises() -> None:
    verdict = check(run(*GOOD))
    assert verdict.breaches == []
    assert verdict.tested == {
        "lost": 3, "doubled": 3, "early": 3, "needless": 3, "interleaved": 2, "last-one": 3, "converged": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("writes", "promises"),
    [
        (GOOD[:2], ["lost", "converged"]),
        ((), ["lost", "lost", "converged"]),
        (((12.1, AWAY), (42.1, HOME)), ["lost", "lost", "converged"]),
        (((11.0, AWAY), *GOOD[1:]), ["early"]),
        ((GOOD[0], (30.5, HOME), GOOD[2]), ["early"]),
        (((5.0, AWAY), *GOOD[1:]), ["early"]),
        ((GOOD[0], (15.0, AWAY), *GOOD[1:]), ["doubled"]),
        ((*GOOD, (45.0, HOME), (46.0, AWAY)), ["doubled", "doubled"]),
        ((GOOD[0], GOOD[1], (41.0, AWAY)), ["early"]),
        ((*GOOD, (50.0, {"a": 0, "b": 0})), ["last-one", "doubled"]),
    ],
)
def test_each_way_to_be_bad_is_caught(writes: Sequence[tuple[float, dict[str, int]]], promises: list[str]) -> None:
    assert broken(run(*writes)) == promises


def test_a_write_for_a_flap_is_needless() -> None:
    flap = (Span(10, 10.5),)
    assert broken(run((12.1, AWAY), (13.1, HOME), outages=flap)) == ["needless"]
    assert broken(run(outages=flap)) == []


def test_trouble_excuses_lateness_and_nothing_else() -> None:
    late = replace(run((25.0, AWAY), *GOOD[1:]), troubles=(Span(9, 22),))
    assert broken(late) == []
    assert broken(replace(late, troubles=(Span(9, 15),))) == ["lost"]
    early = replace(run((11.0, AWAY), *GOOD[1:]), troubles=(Span(9, 22),))
    assert broken(early) == ["early"]


def test_an_older_epoch_or_generation_on_an_object_is_caught() -> None:
    good = run(*GOOD)
    [route] = good.routes
    last = route.writes[2]
    for changed in (replace(last, generation=1), replace(last, epoch=0)):
        writes = (*route.writes[:2], changed)
        bad = replace(good, routes=(replace(route, writes=writes),))
        assert broken(bad) == ["interleaved"]
    wiped = replace(good, routes=(replace(route, writes=(*route.writes[:2], replace(route.writes[2], epoch=0))),))
    assert broken(replace(wiped, wipes=(35.0,))) == []


def test_nothing_may_be_moved_to_secondaries_that_are_gone() -> None:
    good = run((12.1, AWAY), (31.1, HOME))
    [route] = good.routes
    deserted = replace(route, deserted=Span(40))
    assert broken(replace(good, routes=(deserted,))) == []
    moved = replace(deserted, writes=(*route.writes, Write(42.1, AWAY, 3, 1)))
    assert broken(replace(good, routes=(moved,))) == ["last-one"]


def test_due_counts_only_the_good_time() -> None:
    troubled = Run((), 100.0, troubles=(Span(4, 6), Span(5, 10), Span(20, inf)), grace=5.0)
    assert troubled.due(0.0) == pytest.approx(11.0)
    assert troubled.due(7.0) == pytest.approx(15.0)
    assert troubled.due(18.0) == inf

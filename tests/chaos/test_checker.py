"""The checker itself: it lets a good run pass, and catches each way in which a run can be bad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest

from reactor.audit.spans import Span
from tests.judge.checker import check, lateness
from tests.judge.object_history import RouteHistory, Run, Write, good

AWAY, HOME = {"a": 0, "b": 1}, {"a": 1, "b": 0}
GOOD = ((12.1, AWAY), (31.1, HOME), (42.1, AWAY))
"""Two outages of a route that tolerates two seconds, and recovers in one: from 10 to 30, and from 40 on."""


def run(
    *writes: tuple[float, dict[str, int]], outages: Sequence[Span] = (Span(10, 30), Span(40)),
    b: Sequence[Span] = (), c: Sequence[Span] | None = None,
) -> Run:  # fmt: skip
    seen = tuple(Write(at, weights, number, 1) for number, (at, weights) in enumerate(writes, 1))
    others = {"b": tuple(b)} | ({"c": tuple(c)} if c is not None else {})
    return Run((RouteHistory("r", "a", 2.0, 1.0, tuple(outages), seen, others),), end=60.0)


def broken(run: Run) -> list[str]:
    return [breach.promise for breach in check(run).breaches]


def changed(run: Run, **more: object) -> Run:
    [route] = run.routes
    return replace(run, routes=(replace(route, **more),))  # type: ignore[arg-type]


def test_a_good_run_keeps_all_promises() -> None:
    verdict = check(run(*GOOD))
    assert verdict.breaches == []
    assert verdict.tested == {
        "lost": 3, "doubled": 3, "early": 3, "needless": 3, "blind": 3, "interleaved": 2, "last-one": 3, "converged": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("writes", "promises"),
    [
        (GOOD[:2], ["lost", "converged"]),
        ((), ["lost", "lost", "converged"]),
        (((12.1, AWAY), (42.1, HOME)), ["lost", "lost", "converged", "blind"]),
        (((11.0, AWAY), *GOOD[1:]), ["early"]),
        ((GOOD[0], (30.5, HOME), GOOD[2]), ["early"]),
        (((5.0, AWAY), *GOOD[1:]), ["needless"]),
        ((GOOD[0], (15.0, AWAY), *GOOD[1:]), ["doubled"]),
        ((*GOOD, (45.0, HOME), (46.0, AWAY)), ["blind"]),
        ((GOOD[0], GOOD[1], (41.0, AWAY)), ["early"]),
        ((*GOOD, (50.0, {"a": 0, "b": 0})), ["last-one"]),
    ],
)
def test_each_way_to_be_bad_is_caught(writes: Sequence[tuple[float, dict[str, int]]], promises: list[str]) -> None:
    assert broken(run(*writes)) == promises


def test_a_write_for_a_flap_is_needless() -> None:
    flap = (Span(10, 10.5),)
    assert broken(run((12.1, AWAY), (13.1, HOME), outages=flap)) == ["needless"]
    assert broken(run(outages=flap)) == []


def test_an_outage_that_was_long_enough_and_is_over_calls_for_nothing() -> None:
    long = (Span(10, 20),)
    assert broken(run((20.5, AWAY), (22.0, HOME), outages=long)) == ["lost"]  # seen too late to know better
    assert broken(replace(run((21.5, AWAY), (22.6, HOME), outages=long), troubles=(Span(9, 22),))) == ["needless"]


def test_trouble_makes_an_action_late_and_excuses_none() -> None:
    late = replace(run((25.0, AWAY), *GOOD[1:]), troubles=(Span(9, 22),))
    assert broken(late) == []
    assert lateness(late) == pytest.approx(3.0)
    assert broken(replace(late, troubles=(Span(9, 15),))) == ["lost"]
    for writes, promise in ((((11.0, AWAY), *GOOD[1:]), "early"), (((5.0, AWAY), *GOOD[1:]), "needless")):
        assert broken(replace(run(*writes), troubles=(Span(0, 22),))) == [promise]


def test_where_nothing_looked_a_window_may_restart_and_no_later() -> None:
    late = changed(replace(run((29.0, AWAY), *GOOD[1:]), troubles=(Span(9, 20),)), blind=(Span(9, 20),))
    assert broken(late) == []
    assert broken(changed(late, blind_grace=5.0, blind=(Span(9, 16),), outages=(Span(10, 31), Span(40)))) != []


def test_what_could_not_be_told_when_it_began_begins_when_it_is_told_and_what_was_told_before_goes_on() -> None:
    late = replace(run((23.0, AWAY), *GOOD[1:]), troubles=(Span(9, 15),))
    assert broken(late) == ["lost"]
    assert broken(changed(late, unheard=(Span(9, 20),))) == []
    assert broken(changed(late, unheard=(Span(12, 20),))) == ["lost"]
    assert broken(changed(late, unheard=(Span(5, 10),))) == ["lost"]


def test_what_nothing_has_looked_at_since_the_window_was_over_is_left_blindly() -> None:
    assert broken(changed(run(*GOOD), blind=(Span(11, 14),))) == ["blind"]
    assert broken(changed(run(*GOOD), blind=(Span(11, 12.05),))) == []


def test_an_older_epoch_or_generation_on_an_object_is_caught() -> None:
    good = run(*GOOD)
    [route] = good.routes
    last = route.writes[2]
    for wrong in (replace(last, generation=1), replace(last, epoch=0)):
        bad = changed(good, writes=(*route.writes[:2], wrong))
        assert broken(bad) == ["interleaved"]
    wiped = changed(good, writes=(*route.writes[:2], replace(route.writes[2], epoch=0)))
    assert broken(replace(wiped, wipes=(35.0,))) == []


def test_nothing_may_be_moved_to_what_is_bad() -> None:
    good = run((12.1, AWAY), (31.1, HOME), b=(Span(38),))
    assert broken(good) == []
    assert broken(run(*GOOD, b=(Span(38),))) == ["blind"]
    third = {"a": 0, "b": 0, "c": 1}
    assert broken(run((12.1, third), outages=(Span(10),), b=(Span(5),), c=())) == []


def test_of_three_backends_one_that_gets_bad_while_away_is_left_too() -> None:
    b, c = {"a": 0, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 1}
    assert broken(run((12.1, b), (22.1, c), outages=(Span(10),), b=(Span(20),), c=())) == []
    assert broken(run((12.1, b), (21.1, c), outages=(Span(10),), b=(Span(20),), c=())) == ["early"]
    assert broken(run((12.1, b), outages=(Span(10),), b=(Span(20),), c=())) == ["lost"]


def test_all_down_and_back_in_one_moment_moves_nothing() -> None:
    down = (Span(10, 20),)
    assert broken(run(outages=down, b=down)) == []
    assert broken(run((20.1, AWAY), (21.2, HOME), outages=down, b=down)) == ["needless"]


def test_a_source_sees_nothing_between_two_looks() -> None:
    blips = (Span(10, 11), Span(11.5, 14), Span(14.2, 20))
    assert broken(run((13.0, AWAY), (21.5, HOME), outages=blips)) == ["early"]
    assert broken(changed(run((13.0, AWAY), (21.5, HOME), outages=blips), period=1.0)) == []


def test_due_counts_only_the_good_time() -> None:
    troubled = Run((), 100.0, troubles=(Span(4, 6), Span(5, 10), Span(20, inf)), grace=5.0)
    assert troubled.due(0.0) == pytest.approx(11.0)
    assert troubled.due(7.0) == pytest.approx(15.0)
    assert troubled.due(18.0) == inf


def test_between_outages_it_is_good() -> None:
    assert good((Span(1, 2), Span(2, 3), Span(5))) == (Span(-inf, 1), Span(3, 5))
    assert good(()) == (Span(-inf, inf),)


@pytest.mark.parametrize(
    ("cut_off", "valid", "promises"),
    [([Span(11.4, 13.0)], 2.0, []), ([], 2.0, ["needless"]), ([Span(11.0, 11.4)], 2.0, ["needless"]),
     ([Span(11.4, 13.0)], 0.0, ["needless"])],
    ids=["cut off", "it could tell", "it could tell by then", "it can be asked"],
)  # fmt: skip
def test_the_last_word_of_an_outsider_holds_only_while_it_is_cut_off(
    cut_off: Sequence[Span], valid: float, promises: list[str]
) -> None:
    """Another fault in the meantime changes nothing."""
    left = replace(run((12.6, AWAY), (14.0, HOME), outages=[Span(10, 11.5)]), troubles=(Span(11.0, 13.0),))
    assert broken(changed(left, cut_off=tuple(cut_off), valid=valid)) == promises

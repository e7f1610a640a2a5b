"""The checker of workloads: it lets good runs pass, and finds each sort of wrong write that is put into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reactor.audit.spans import Span
from tests.judge.checker import check, lateness
from tests.judge.object_history import Run
from tests.judge.workload_history import CopyWrite, Effect, WorkloadHistory

Given = tuple[float, str, Effect]
MOVED: tuple[Given, ...] = ((14.1, "two", "place"), (14.2, "one", "mark"), (15.4, "one", "remove"))
"""The copy on `one` is bad from 10 on, and tolerated for 4 s; a new one takes a second to start."""
BACK: tuple[Given, ...] = (*MOVED, (34.1, "one", "place"), (34.2, "two", "mark"), (35.4, "two", "remove"))
"""And that on `two` is bad from 30 on; `one` would be good again since 20."""
TO_AND_FRO = {"one": (Span(10, 20),), "two": (Span(30),)}
IN_VAIN: tuple[Given, ...] = (
    *MOVED[:2], (20.1, "one", "unmark"), (20.2, "two", "mark"), (22.4, "two", "remove")
)  # fmt: skip
"""The copy on `two` is bad from the beginning, and the one on `one` good again from 20 on."""
BAD_TWO = {"one": (Span(10, 20),), "two": (Span(0),)}
BOTH = {"one": (Span(10),), "two": (Span(0),)}
LATE = {"one": (Span(10),), "two": (Span(0, 25),)}


def run(
    *writes: Given, outages: Mapping[str, Sequence[Span]] | None = None, blocks: bool = False,
    troubles: Sequence[Span] = (),
) -> Run:  # fmt: skip
    """Give a run; a copy that is placed is bad for a second."""
    given = {name: [*spans] for name, spans in (outages or {"one": (Span(10),)}).items()}
    for at, cluster, effect in writes:
        if effect == "place":
            given.setdefault(cluster, []).append(Span(at, at + 1.0))
    written = tuple(CopyWrite(*one, generation=number, epoch=1) for number, one in enumerate(writes, 1))
    spans = {name: tuple(some) for name, some in given.items()}
    history = WorkloadHistory("w", 4.0, "one", spans, written, blocks)
    return Run((), end=60.0, troubles=tuple(troubles), workloads=(history,))


def changed(run: Run, **more: object) -> Run:
    [workload] = run.workloads
    return replace(run, workloads=(replace(workload, **more),))  # type: ignore[arg-type]


def broken(run: Run) -> list[str]:
    return [breach.promise for breach in check(run).breaches]


@pytest.mark.parametrize(
    ("writes", "outages"),
    [
        (MOVED, {"one": (Span(10),)}),
        (BACK, TO_AND_FRO),
        (IN_VAIN, BAD_TWO),
        (MOVED[:2], BOTH),
        ((*MOVED[:2], (25.1, "one", "remove")), LATE),
        ((), {"one": (Span(10, 13),), "two": (Span(5),)}),
        # It is good again just when the copy is made: the new one is too many.
        (((14.1, "two", "place"), (14.3, "two", "mark"), (14.4, "two", "remove")), {"one": (Span(10, 14.05),)}),
        ((*MOVED[:2], (14.7, "one", "unmark"), (14.8, "two", "mark"), (14.9, "two", "remove")),
         {"one": (Span(10, 14.6),)}),
        # It is good again while its mark is on its way.
        ((*MOVED[:2], (14.25, "two", "mark"), (14.3, "one", "unmark"), (14.4, "two", "remove")),
         {"one": (Span(10, 14.15),)}),
        # One that is too many takes the place of the one that fails again, before it has left.
        (
            (*MOVED[:2], (20.1, "one", "unmark"), (20.15, "two", "mark"), (24.3, "two", "unmark"),
             (24.4, "one", "mark"), (24.5, "one", "remove")),
            {"one": (Span(10, 20), Span(20.2)), "two": (Span(0, 22),)},
        ),
    ],
    ids=[
        "moved", "moved back", "in vain", "both bad", "the new one is late", "a flap", "good as it is placed",
        "good as it is marked", "good before it is marked", "needed again",
    ],
)  # fmt: skip
def test_what_a_perfect_reactor_does_is_right(writes: Sequence[Given], outages: Mapping[str, Sequence[Span]]) -> None:
    assert broken(run(*writes, outages=outages)) == []


@pytest.mark.parametrize(
    ("writes", "promises"),
    [
        ((), ["lost", "converged"]),
        (((12.0, "two", "place"), *MOVED[1:]), ["early"]),
        (((5.0, "two", "place"), (5.1, "two", "mark"), (5.2, "two", "remove"), *MOVED), ["needless"]),
        (MOVED[:2], ["lost", "converged"]),
        (MOVED[:1], ["lost", "converged"]),
        ((*MOVED[:2], (14.8, "one", "remove")), ["blind"]),
        ((*MOVED[:2], (15.0, "one", "mark"), MOVED[2]), ["doubled"]),
        ((*MOVED[:2], (15.0, "one", "nothing"), MOVED[2]), ["doubled"]),
        ((*MOVED[:2], (14.9, "two", "place"), (16.0, "one", "remove")), ["doubled"]),
        ((*MOVED, (16.0, "one", "remove")), ["doubled"]),
        ((*MOVED, (16.0, "one", "unmark")), ["doubled"]),
        ((*MOVED[:2], (15.0, "one", "unmark"), (15.1, "one", "mark"), MOVED[2]), ["blind"]),
        ((*MOVED, (16.0, "two", "resize")), ["needless"]),
        ((*MOVED, (20.0, "two", "remove")), ["last-one", "converged"]),
        ((*MOVED[:2], (15.3, "two", "mark"), (15.4, "two", "remove"), (16, "one", "unmark")),
         ["last-one", "last-one", "blind", "lost", "converged"]),
        (((10.5, "one", "remove"),), ["last-one", "converged"]),
        (((10.5, "one", "mark"), (14.0, "one", "unmark"), *MOVED), ["last-one", "blind"]),
        ((*MOVED, (20.0, "one", "place"), (20.1, "one", "mark"), (20.2, "one", "remove")), ["needless"]),
    ],
)  # fmt: skip
def test_each_wrong_write_of_a_move_is_found(writes: Sequence[Given], promises: list[str]) -> None:
    assert broken(run(*writes)) == promises


@pytest.mark.parametrize(
    ("writes", "promises"),
    [
        (BACK[:3], ["lost", "converged"]),
        ((*MOVED, (32.0, "one", "place"), *BACK[4:]), ["early"]),
        ((*MOVED, (25.0, "one", "place"), (25.1, "one", "mark"), (25.2, "one", "remove"), *BACK[3:]), ["needless"]),
        ((*BACK[:5], (34.6, "two", "remove")), ["blind"]),
        ((*MOVED, (21.0, "two", "remove")), ["last-one", "converged"]),
        ((*BACK, (40.0, "two", "place"), (40.1, "two", "mark"), (40.2, "two", "remove")), ["needless"]),
    ],
)
def test_each_wrong_write_of_a_move_back_is_found(writes: Sequence[Given], promises: list[str]) -> None:
    assert broken(run(*writes, outages=TO_AND_FRO)) == promises


@pytest.mark.parametrize(
    ("writes", "outages", "promises"),
    [
        (IN_VAIN[:4], BAD_TWO, ["lost", "converged"]),
        (IN_VAIN[:2], BAD_TWO, ["lost", "converged"]),
        ((*IN_VAIN[:2], (16.0, "one", "unmark"), *IN_VAIN[3:]), BAD_TWO, ["blind"]),
        ((*IN_VAIN[:2], (20.1, "one", "remove")), BAD_TWO, ["last-one", "lost", "converged"]),
        ((*IN_VAIN[:4], (22.0, "two", "unmark"), (22.1, "two", "mark"), IN_VAIN[4]), BAD_TWO, ["blind"]),
        (
            (*MOVED[:2], (14.7, "one", "unmark"), (14.8, "two", "mark"), (17.0, "two", "unmark"), (17.1, "two", "mark"),
             (17.2, "two", "remove")),
            {"one": (Span(10, 14.6),)}, ["needless"],
        ),
        ((*MOVED[:2], (19.0, "one", "remove")), BOTH, ["blind", "lost", "converged"]),
        ((*MOVED[:2], (19.0, "two", "mark")), BOTH, ["last-one"]),
        ((*MOVED[:2], (19.0, "two", "remove")), BOTH, ["blind", "lost", "converged"]),
    ],
)  # fmt: skip
def test_each_wrong_write_after_a_move_in_vain_is_found(
    writes: Sequence[Given], outages: Mapping[str, Sequence[Span]], promises: list[str]
) -> None:
    assert broken(run(*writes, outages=outages)) == promises


def test_a_cluster_that_is_blocked_gets_no_copy_and_none_is_missed() -> None:
    assert broken(run(*BACK, outages=TO_AND_FRO, blocks=True)) == ["needless"]
    assert broken(run(*MOVED, outages=TO_AND_FRO, blocks=True)) == []
    # What was too many has left nothing.
    again: tuple[Given, ...] = (*IN_VAIN, (34.1, "two", "place"), (34.2, "one", "mark"), (35.3, "one", "remove"))
    both = {"one": (Span(10, 20), Span(30)), "two": (Span(0, 25),)}
    assert broken(run(*again, outages=both, blocks=True)) == []


def test_a_trouble_makes_a_write_late_and_excuses_none() -> None:
    late: tuple[Given, ...] = ((25.0, "two", "place"), (25.1, "one", "mark"), (29.0, "one", "remove"))
    assert broken(run(*late, troubles=(Span(9, 22),))) == []
    assert lateness(run(*late, troubles=(Span(9, 22),))) == pytest.approx(3.0)
    assert broken(run(*late, troubles=(Span(9, 15),))) == ["lost"]
    early: tuple[Given, ...] = ((12.0, "two", "place"), *MOVED[1:])
    assert broken(run(*early, troubles=(Span(0, 22),))) == ["early"]
    recovered = {"one": (Span(10, 15),)}
    assert broken(run(*late[:1], (25.1, "two", "mark"), (25.2, "two", "remove"), outages=recovered)) == ["needless"]


def test_a_mark_that_a_trouble_kept_away_is_not_missed() -> None:
    unmarked: tuple[Given, ...] = (MOVED[0], (26.0, "one", "remove"))
    assert broken(run(*unmarked, outages={"one": (Span(10, 20),)}, troubles=(Span(14.15, 25.5),))) == []
    assert broken(run(*unmarked, outages={"one": (Span(10, 20),)})) == ["needless", "lost"]


def test_where_nothing_has_looked_since_the_toleration_a_move_is_blind() -> None:
    assert broken(changed(run(*MOVED), blind=(Span(11, 14.16),))) == ["blind"]
    assert broken(changed(run(*MOVED), blind=(Span(11, 13.99),))) == []


def test_a_store_that_is_wiped_forgets_what_is_blocked_and_nothing_else() -> None:
    for writes in (MOVED[:1], MOVED[:2], IN_VAIN[:2]):
        unfinished = run(*writes, outages={"one": (Span(10, 14.15),)})
        assert {*broken(replace(unfinished, wipes=(14.5,)))} == {"lost", "converged"}
    assert broken(replace(run(*BACK, outages=TO_AND_FRO, blocks=True), wipes=(32.0,))) == []
    assert broken(replace(run(*MOVED[:2], (19.0, "one", "remove"), outages=BOTH), wipes=(14.5,)))[:1] == ["blind"]
    assert broken(replace(run(), wipes=(5.0,))) == ["lost", "converged"]
    assert broken(replace(run(*MOVED[:2]), wipes=(14.5,))) == ["lost", "converged"]


def test_an_older_generation_or_epoch_on_a_copy_is_found() -> None:
    good = run(*BACK[:5], (35.0, "two", "nothing"), outages=TO_AND_FRO)
    [workload] = good.workloads
    *before, last = workload.writes
    for wrong in (replace(last, generation=1), replace(last, epoch=0)):
        bad = changed(good, writes=(*before, wrong))
        assert "interleaved" in broken(bad)
        assert "interleaved" not in broken(replace(bad, wipes=(20.0,)))

"""The judge of zones: it lets a good isolation and its way back pass, and finds each sort of wrong write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from reactor.audit.spans import Span
from tests.judge.checker import check
from tests.judge.object_history import Run
from tests.judge.zone_history import CORDONED, EXCLUDED, FENCED, RELEASED, ZoneHistory, ZoneWrite

FULL = frozenset((FENCED, CORDONED, EXCLUDED))
THEIRS = frozenset((FENCED, EXCLUDED))
"""Of a node that a person had cordoned before."""
NODES = {"a1": FULL, "a2": THEIRS}


def node(at: float, name: str, *marks: str) -> ZoneWrite:
    return ZoneWrite(at, name, frozenset(marks))


FENCE = (node(13.2, "a1", FENCED, CORDONED), node(13.2, "a2", FENCED))
EXCLUDE = (node(13.4, "a1", FENCED, CORDONED, EXCLUDED), node(13.4, "a2", FENCED, EXCLUDED))
EVICT = (ZoneWrite(13.6, "a1", pod="web-0"), ZoneWrite(14.8, "a2", pod="web-1"))
INCLUDE = (node(34.5, "a1", FENCED, CORDONED), node(34.5, "a2", FENCED))
RELEASE = (node(34.7, "a1", RELEASED), node(37.0, "a2", RELEASED))
CLEAR = (node(37.1, "a1"), node(37.1, "a2"))
THERE = (*FENCE, *EXCLUDE, *EVICT)
BACK = (*INCLUDE, *RELEASE, *CLEAR)
BAD = (Span(10, 30),)


def run(
    *writes: ZoneWrite, bad: Sequence[Span] = BAD, second: Sequence[Span] | None = None, end: float = 90.0,
    emptied: float = 14.8, **more: Any,
) -> Run:  # fmt: skip
    """Give a run whose nodes are at the end as the writes have left them."""
    marks = dict.fromkeys(NODES, frozenset[str]())
    marks |= {write.node: write.marks for write in writes if write.marks is not None and write.node in NODES}
    witnesses = {"inside": tuple(bad), "outside": tuple(bad if second is None else second)}
    given: dict[str, Any] = {
        "writes": tuple(writes), "marks": marks, "occupied": (Span(-inf, emptied),), "batches": (1, 2), "bake": 3.0,
        "period": 1.0, **more,
    }  # fmt: skip
    return Run((), end, zones=(ZoneHistory("z", 3.0, 4.0, NODES, witnesses, **given),))


def broken(run: Run) -> list[str]:
    return [breach.promise for breach in check(run).breaches]


def later(writes: Sequence[ZoneWrite], seconds: float) -> tuple[ZoneWrite, ...]:
    return tuple(replace(write, at=write.at + seconds) for write in writes)


def test_a_good_isolation_and_its_way_back_keep_all_promises() -> None:
    verdict = check(run(*THERE, *BACK))
    assert verdict.breaches == []
    assert verdict.tested["lost"] == 2  # it was bad for too short a time to have to be empty
    assert verdict.tested["early"] == len(THERE) + len(BACK)
    assert broken(run(*THERE, bad=(Span(10),))) == []
    assert broken(run(bad=(Span(10, 12.5),))) == []


FOREIGN = {
    "a node of another zone is fenced": (node(14.0, "b1", FENCED), "last-one"),
    "a pod of another zone is evicted": (ZoneWrite(14.0, "b1", pod="web-7"), "last-one"),
    "something else is written": (ZoneWrite(14.0, foreign="configmaps x"), "needless"),
    "something else on a node is changed": (
        ZoneWrite(14.0, "a1", FULL, foreign="something else on node a1"), "needless",
    ),
    "a DaemonSet's pod is evicted": (ZoneWrite(14.0, "a1", pod="log-a1", foreign="pod log-a1"), "needless"),
    "a fence is written again": (node(14.0, "a1", *FULL), "doubled"),
}  # fmt: skip


@pytest.mark.parametrize("what", FOREIGN)
def test_a_write_that_no_isolation_makes_is_found(what: str) -> None:
    wrong, promise = FOREIGN[what]
    assert broken(run(*FENCE, *EXCLUDE, EVICT[0], wrong, EVICT[1], *BACK)) == [promise]


def test_each_step_out_has_to_wait_for_the_toleration() -> None:
    assert broken(run(*later(THERE, -1.0), *BACK)) == ["early"] * 5
    assert broken(run(*THERE, *BACK, bad=(Span(12, 30),))) == ["early"] * 6
    assert broken(run(*THERE, bad=(Span(10, 12.5),))) != []


def test_what_was_well_is_not_isolated() -> None:
    short = [Span(10, 12.0)]
    assert set(broken(run(*later(THERE, 2.0), *later(BACK, -10), bad=short))) == {"needless"}
    assert set(broken(run(*THERE, *BACK, bad=[Span(10, 11.1)]))) == {"needless"}
    # The last write that may not know of it: a look, a decision and a request.
    assert broken(run(*THERE, *later(BACK, -16.4), bad=[Span(10, 13.05)])) == []


def test_an_isolation_whose_first_step_was_half_done_does_not_go_on_when_it_is_well_again() -> None:
    half = (FENCE[0], node(20.0, "a1", RELEASED), node(20.1, "a1"))
    assert broken(run(*half, bad=[Span(10, 13.5)])) == []
    assert broken(run(FENCE[0], *later((FENCE[1], *EXCLUDE, *EVICT), 3.0), *BACK, bad=[Span(10, 13.5)])) == (
        ["needless"] * 5
    )


def test_what_was_begun_goes_on_while_a_witness_sees_it_bad_and_no_longer() -> None:
    well = [Span(10, 13.3)]
    rest = later((*EXCLUDE, *EVICT), 4.0)
    assert broken(run(*FENCE, *rest, *BACK, bad=well, emptied=21.0)) == ["needless"] * 4
    # No trouble makes that right.
    assert broken(replace(run(*FENCE, *rest, *BACK, bad=well), troubles=(Span(13, 30),))) == ["needless"] * 4
    one = [Span(10, 60)]
    assert broken(run(*FENCE, *rest, *later(BACK, 30), bad=well, second=one, emptied=21.0)) == []
    assert broken(run(*FENCE, *rest, *later(BACK, 30), bad=well, second=one, elsewhere=(Span(13.3, 90),))) != []


def test_what_was_seen_well_is_isolated_further_only_after_the_toleration() -> None:
    again = [Span(10, 13.3), Span(16, 60)]
    rest, back = later((*EXCLUDE, *EVICT), 4.0), later(BACK, 30)
    assert broken(run(*FENCE, *rest, *back, bad=again)) == ["early"] * 4
    assert broken(run(*FENCE, *later(rest, 2.0), *back, bad=again, emptied=21.0)) == []
    # What no witness could see is no reason to begin again.
    assert broken(run(*FENCE, *rest, *back, bad=again, blind=(Span(14, 16),), emptied=21.0)) == []
    # Nor is what is shorter than a look.
    assert broken(run(*FENCE, *rest, *back, bad=[Span(10, 14.2), Span(16, 60)], emptied=21.0)) == []


def test_after_an_opening_write_nothing_of_it_goes_on() -> None:
    again = (node(22.0, "a1", FENCED, CORDONED), node(23.0, "a1", *FULL))
    rest, alone = later((*EXCLUDE, *EVICT), 4.0), [Span(10, 60)]
    whole = run(*FENCE, *rest, *again, *later(BACK, 30), bad=[Span(10, 13.3)], second=alone, emptied=21.0)
    assert broken(whole) == ["blind"] * 2


def test_one_witness_or_all_zones_isolate_nothing() -> None:
    alone = (Span(10, 11.1),)
    assert broken(run(*THERE, *BACK, second=alone)) == ["blind"] * 6
    assert broken(run(second=alone)) == []
    # The second one counts from when it begins.
    assert broken(run(*THERE, *BACK, second=(Span(11, 30),))) == ["early"] * 5
    assert broken(run(*THERE, *BACK, elsewhere=BAD)) == ["blind"] * 6
    assert broken(run(elsewhere=BAD)) == []


def test_steps_out_come_in_their_order() -> None:
    early_label = node(13.2, "a1", *FULL)
    assert broken(run(early_label, FENCE[1], EXCLUDE[1], *EVICT, *BACK)) == ["interleaved"]
    assert broken(run(*FENCE, EXCLUDE[0], *EVICT, replace(EXCLUDE[1], at=15.0), *BACK)) == ["interleaved"] * 2
    assert broken(run(*later(EVICT, -0.3), *later(FENCE, 2.0), *later(EXCLUDE, 2.0), *BACK)) == ["interleaved"] * 2


def test_the_way_back_waits_for_the_recovery_of_both_witnesses_and_is_never_blind() -> None:
    assert broken(run(*THERE, *later(BACK, -3.0))) == ["early"] * 3  # a note that is taken off opens nothing
    assert broken(run(*THERE, *later(BACK, -10.0), bad=(Span(10, 27), Span(27.9, 30)))) == ["blind"] * 4
    assert set(broken(run(*THERE, *BACK, second=(Span(10, 40),)))) == {"blind"}
    assert broken(run(*THERE, *later(BACK, 10.0), second=(Span(10, 40),))) == []


def test_an_opening_write_while_it_is_bad_again_is_blind_also_half_way() -> None:
    relapse = (Span(10, 30), Span(35.0))
    rest = (replace(RELEASE[1], at=38.0), *later(CLEAR, 1.0), *later(FENCE, 26.0), *later(EXCLUDE, 26.0))
    assert broken(run(*THERE, *INCLUDE, RELEASE[0], *rest, bad=relapse)) == ["blind"]
    stays = (*later(FENCE[:1], 26.0), *later(EXCLUDE, 26.0))
    assert broken(run(*THERE, *INCLUDE, RELEASE[0], *stays, bad=relapse)) == []


def test_the_way_back_has_its_order_and_its_batches() -> None:
    assert broken(run(*THERE, *later(RELEASE, 0.0), *CLEAR)) == ["interleaved", "interleaved"]
    assert broken(run(*THERE, *INCLUDE, RELEASE[0], replace(RELEASE[1], at=35.2), *CLEAR)) == ["early"]
    noted = (node(34.9, "a1"), replace(RELEASE[1], at=37.8), node(37.9, "a2"))
    assert broken(run(*THERE, *INCLUDE, RELEASE[0], *noted)) == ["interleaved"]


def test_what_is_not_isolated_not_empty_or_not_opened_in_time_is_lost() -> None:
    stays = (Span(10),)
    assert broken(run(bad=stays, emptied=inf)) == ["lost", "lost", "converged", "converged", "converged"]
    assert broken(run(*later(THERE, 8.0), bad=stays, emptied=23.0)) == ["lost"]
    assert broken(run(*later(THERE, 40.0), bad=stays, emptied=60.0)) == ["lost", "lost"]
    late = replace(run(*later(THERE, 40.0), bad=stays, emptied=60.0), troubles=(Span(12, 50),))
    assert broken(late) == []
    assert broken(run(*THERE, bad=stays, emptied=70.0)) == ["lost"]
    assert broken(run(*THERE, end=100.0)) == ["lost", "converged", "converged"]
    assert broken(run(*THERE, *BACK[:-1])) == ["lost", "converged"]


def test_trouble_excuses_no_wrong_write() -> None:
    for writes, promise in ((later(THERE, -1.0), "early"), (later(THERE, -6.0), "needless")):
        bad = replace(run(*writes, *BACK), troubles=(Span(0, 80),))
        assert set(broken(bad)) == {promise}


def test_what_nothing_has_looked_at_since_the_window_is_isolated_blindly() -> None:
    assert broken(run(*THERE, *BACK, blind=(Span(12, 14.0),))) == ["blind"] * 5
    assert broken(run(*THERE, *BACK, blind=(Span(12, 13.1),))) == []


def test_at_the_end_everything_is_as_it_was() -> None:
    assert broken(run(*THERE, *BACK, changed=("b1",))) == ["converged"]
    assert broken(run(*THERE, *BACK, marks={"a1": frozenset((RELEASED,))})) == ["converged"]
    assert broken(run(*THERE, bad=(Span(10),), marks=NODES | {"a1": frozenset((FENCED,))})) == ["converged"]
    assert "converged" in broken(run(*THERE, bad=(Span(10),), emptied=inf))

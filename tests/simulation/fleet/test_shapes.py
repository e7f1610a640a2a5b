"""Outages that overlap, and rule files that are edited during outages: the same promises, and nothing is excused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reactor.audit.spans import Span
from tests.judge.object_history import RouteHistory, Run, Write
from tests.simulation.fleet.draw_edits import LONGER, PATIENT, draw_edits
from tests.simulation.fleet.draw_together import draw_together
from tests.simulation.fleet.judge_edits import judge_edits
from tests.simulation.fleet.reload import TAKEN, Version
from tests.simulation.fleet.scenario import dump, load
from tests.simulation.fleet.world import World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


def test_outages_really_overlap_two_and_three_at_a_time() -> None:
    most = set()
    for seed in range(30):
        faults = draw_together(seed).faults
        most.add(max(sum(one.at <= two.at < one.at + one.seconds for one in faults) for two in faults))
    assert most == {2, 3}


def test_edits_are_really_taken_and_have_their_effect() -> None:
    scenario = draw_edits(1)
    seen = World(scenario).play()
    assert [version.begin for version in seen.versions][1:] == [1000 + edit.at for edit in scenario.edits]
    assert all(version.used_until <= version.end + TAKEN for version in seen.versions[:-1])
    written = {route.name: len(route.writes) for route in seen.run.routes}
    assert written == {"route-0": 2, "route-1": 2, "route-2": 2, "route-3": 4}


def test_a_scenario_with_edits_is_written_down_and_read_back() -> None:
    scenario = draw_edits(3)
    assert load(dump(scenario)) == scenario
    assert World(load(dump(scenario))).play().hash == World(scenario).play().hash


# --- the judge --------------------------------------------------------------------------------------------------------

ROUTE = RouteHistory("web", "web", PATIENT, 2.0, (Span(1010.0, 1100.0),), (), {"west": ()}, dark=False)
RUN = Run((), 1060.0)


def versions(*said: tuple[float, float | None]) -> tuple[Version, ...]:
    """Versions of the files from these seconds on; each process has taken each two seconds later."""
    ends = [*(begin for begin, _ in said[1:]), float("inf")]
    return tuple(
        Version(begin, end, end + 2, {} if toleration is None else {"web": toleration})
        for (begin, toleration), end in zip(said, ends, strict=True)
    )


def broken(said: tuple[Version, ...], *moved_at: float) -> list[str]:
    writes = tuple(
        Write(at, {"web": number % 2, "west": 1 - number % 2}, number + 1, 1) for number, at in enumerate(moved_at)
    )
    return [one.promise for one in judge_edits(replace(ROUTE, writes=writes), RUN, said, lambda _: ())]


def test_a_write_is_judged_by_the_rule_that_a_process_still_uses() -> None:
    edited = versions((1000.0, PATIENT), (1015.0, LONGER))
    assert broken(edited, 1016.5) == []  # some process still uses six seconds
    assert broken(edited, 1021.0) == ["early"]
    assert broken(edited, 1031.0) == []


def test_a_write_without_a_rule_is_a_breach() -> None:
    removed = versions((1000.0, PATIENT), (1012.0, None))
    assert broken(removed, 1030.0) == ["ruleless"]
    assert broken(removed) == []


def test_what_a_rule_that_is_put_back_calls_for_is_lost_if_it_is_not_done() -> None:
    put_back = versions((1000.0, PATIENT), (1012.0, None), (1025.0, PATIENT))
    assert broken(put_back) == ["lost"]
    assert broken(put_back, 1030.0) == []


def test_what_a_less_patient_rule_calls_for_is_lost_if_it_is_not_done() -> None:
    assert broken(versions((1000.0, 1000.0), (1020.0, PATIENT))) == ["lost"]
    assert broken(versions((1000.0, 1000.0))) == []

"""Judges every write to the copies of a workload, and what was not written, against `workload_model`.

lost        something called for a write, everything worked for the limit, and the copies were as before
doubled     a write that changed nothing, or made or removed what was already so
early       the copy that was left, or replaced, was bad for less than the toleration
needless    that copy was good; or the new one is on a cluster that is blocked; or the size of a copy was changed
blind       the copy that was to stay was bad, or nothing had looked since the toleration was over
interleaved a write with an older generation or epoch than the one on the copy
last-one    no good copy was left, where there had been one; or all copies were leaving
converged   at the end there is not one good, unmarked copy, where there can be one
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from reactor.audit.spans import Span
from reactor.audit.verdict import AuditVerdict, Breach
from tests.judge.object_history import Run
from tests.judge.spells import current
from tests.judge.workload_history import CopyWrite, WorkloadHistory
from tests.judge.workload_model import State, bad, calls, first
from tests.judge.workload_writes import WriteJudge


def check(workload: WorkloadHistory, run: Run, verdict: AuditVerdict) -> None:
    """Judge everything about one workload."""
    states, wrong = _replayed(workload, run)
    wrong += _interleaved(workload, run)
    for promise in ("last-one", "early", "doubled", "needless", "blind", "interleaved"):
        verdict.add(promise, [one for one in wrong if one.promise == promise], tested=len(workload.writes))
    musts = list(_musts(workload, run, states))
    lost = [
        Breach("lost", workload.name, must.due, f"{must.what}, called for since {must.spell.begin:.3f}")
        for must in musts
        if must.done > must.due
    ]
    verdict.add("lost", lost, tested=len(musts))
    verdict.add("converged", list(_converged(workload, run, states[-1])), tested=1)


def lateness(workload: WorkloadHistory, run: Run) -> Iterator[float]:
    """Give the seconds from when each write was called for, or from a later end of a trouble, to when it came."""
    for must in _musts(workload, run, _replayed(workload, run)[0]):
        if must.over <= must.done <= must.spell.end and must.done < inf:
            ends = [gap.end for gap in (*run.troubles, *workload.blind) if must.spell.begin < gap.end <= must.done]
            yield must.done - max([must.over, *ends])


def _replayed(workload: WorkloadHistory, run: Run) -> tuple[list[State], list[Breach]]:
    """Give the states, the first one before any write, and what was wrong with the writes between them."""
    states, found = [first(workload)], list[Breach]()
    for write in workload.writes:
        states[-1] = states[-1].until(write.at, run)
        judge = WriteJudge(workload, run, states[-1], write)
        found += [Breach(promise, workload.name, write.at, what) for promise, what in judge.findings()]
        states.append(states[-1].after(write, judge.surplus))
    states[-1] = states[-1].until(run.end, run)
    return states, found


def _interleaved(workload: WorkloadHistory, run: Run) -> Iterator[Breach]:
    last: dict[str, CopyWrite] = {}
    for write in workload.writes:
        before = last.get(write.cluster)
        if write.effect == "remove":
            last.pop(write.cluster, None)
            continue
        older = before is not None and (write.generation < before.generation or write.epoch < before.epoch)
        # A store that was wiped begins to count again, and so do its decisions.
        if before is not None and older and not any(wipe <= write.at for wipe in run.wipes):
            what = f"{write.generation} of epoch {write.epoch} after {before.generation} of {before.epoch}"
            yield Breach("interleaved", workload.name, write.at, f"generation {what} on {write.cluster}")
        last[write.cluster] = write


@dataclass(frozen=True, slots=True)
class Must:
    """Something that called for a write."""

    spell: Span
    over: float
    """Earliest time of the write."""
    due: float
    """Latest time of it."""
    done: float
    """Time of the next write."""
    what: str


def _musts(workload: WorkloadHistory, run: Run, states: Sequence[State]) -> Iterator[Must]:
    ends = [*(state.begin for state in states[1:]), inf]
    for state, end in zip(states, ends, strict=True):
        for spell, window, what in calls(workload, state):
            begun = spell if window else Span(max(spell.begin, state.begin), spell.end)
            if begun.begin >= begun.end or begun.end <= state.begin or begun.begin >= end:
                continue
            due = max(run.due_for(workload, begun, window), run.due(max(state.begin, begun.begin)))
            if begun.end == inf:  # what still calls for its write when looking ends was waited for
                due = min(due, run.end)
            if due < begun.end and due <= run.end:
                yield Must(begun, max(begun.begin + window, state.begin), due, end, what)


def _converged(workload: WorkloadHistory, run: Run, state: State) -> Iterator[Breach]:
    lasting = {name: current(bad(workload, state, name), run.end) for name in state.copies}
    what = ""
    match [*state.copies.items()]:
        case [(name, copy)]:
            if lasting[name] is not None and not (workload.blocks and state.left):
                what = f"its only copy is on {name}, and bad"
            elif copy.marked:
                what = f"its only copy, on {name}, is marked"
        case [_, _]:
            if not all(lasting.values()):
                what = "it has two copies"
        case _:
            what = "it has no copy"
    if what:
        yield Breach("converged", workload.name, run.end, what)

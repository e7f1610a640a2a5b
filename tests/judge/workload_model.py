"""Reference model of a workload: its copies between two writes, and what a perfect reactor may and must do then.

It follows docs/concepts/workloads.md with `Duplicated`, `Gracefully` and `Keep`, one copy on one of two clusters:

place    while the only copy has been bad for the toleration
mark     a copy that has been bad for the toleration while another one stays; or the newest of two, when the older one
         has been good since: it is too many (decision 24)
unmark   a copy that is good again; or one that was too many, when the other one has been bad for the toleration
remove   a copy that is leaving, while the other one is good
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from reactor.audit.spans import Span, merged
from tests.judge.object_history import Run, good
from tests.judge.spells import IN_HANDS, common, over
from tests.judge.workload_history import CopyWrite, WorkloadHistory


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy."""

    since: float
    marked: bool = False
    surplus: bool | None = False
    """True if it was marked as one too many; None: that, or as a bad one."""


@dataclass(frozen=True, slots=True)
class State:
    """Copies of a workload since a write."""

    begin: float
    copies: Mapping[str, Copy]
    left: Mapping[str, bool] = field(default_factory=dict)
    """Clusters that were left; True if it was for a bad copy, False if that is not sure, or forgotten."""

    def other(self, cluster: str) -> str | None:
        """Give the cluster of the other copy, if there is one."""
        return next((name for name in self.copies if name != cluster), None)

    def after(self, write: CopyWrite, surplus: bool | None = False) -> State:
        """Give the state after a write, right or wrong. `surplus`: of a copy that leaves, as in `Copy`."""
        copies, left, name = dict(self.copies), dict(self.left), write.cluster
        known = copies.get(name)
        match write.effect:
            case "place" if known is None:
                copies[name] = Copy(write.at)
            case "mark" if known is not None:
                copies[name] = replace(known, marked=True, surplus=surplus)
            case "unmark" if known is not None:
                copies[name] = replace(known, marked=False, surplus=False)
            case "remove" if known is not None:
                del copies[name]
                if surplus is not True:
                    left[name] = surplus is False
        return State(write.at, copies, left)

    def until(self, end: float, run: Run) -> State:
        """Give this state with what was forgotten until its end: which clusters are blocked."""
        if not any(self.begin - IN_HANDS <= wipe <= end for wipe in run.wipes):
            return self
        return replace(self, left=dict.fromkeys(self.left, False))


def first(workload: WorkloadHistory) -> State:
    """Give the state before the first write."""
    return State(-inf, {workload.home: Copy(-inf)})


def bad(workload: WorkloadHistory, state: State, cluster: str) -> list[Span]:
    """Give when the copy there is bad, as a source can see it."""
    seen = merged(workload.outages.get(cluster, ()), gap=workload.period)
    return common(seen, [Span(state.copies[cluster].since)])


def well(workload: WorkloadHistory, state: State, cluster: str) -> list[Span]:
    """Give when the copy there is good."""
    return common(good(bad(workload, state, cluster)), [Span(state.copies[cluster].since)])


def failed(workload: WorkloadHistory, run: Run, state: State, cluster: str) -> list[Span]:
    """Give when the copy there has been bad for the toleration."""
    return over(bad(workload, state, cluster), max(workload.toleration - run.slack - workload.lag, 0.0))


Call = tuple[Span, float, str]
"""A stretch that calls for a write, after how many seconds of it, and for which."""


def calls(workload: WorkloadHistory, state: State) -> Iterator[Call]:
    """Give what calls for another state than this one."""
    match sorted(state.copies, key=lambda name: state.copies[name].since):
        case [only]:
            if not (workload.blocks and state.left):
                yield from ((one, workload.toleration, f"away from {only}") for one in bad(workload, state, only))
            if state.copies[only].marked:
                yield from ((one, 0.0, f"{only} is the only copy, and marked") for one in well(workload, state, only))
        case [older, newer] if state.copies[older].marked or state.copies[newer].marked:
            for marked, stays in ((older, newer), (newer, older)):
                if state.copies[marked].marked:
                    yield from _ending(workload, state, marked, stays)
        case [older, newer]:
            serves = merged([*well(workload, state, older), *well(workload, state, newer)])
            for steady in (*bad(workload, state, older), *well(workload, state, older)):
                for one in common(serves, [steady]):
                    yield one, 0.0, "two copies, and none is marked"
        case _:
            return


def _ending(workload: WorkloadHistory, state: State, marked: str, stays: str) -> Iterator[Call]:
    """Give what ends the time in which one copy is marked and the other one stays."""
    for one in well(workload, state, stays):
        yield one, 0.0, f"without {marked}"
    surplus = state.copies[marked].surplus
    if surplus is False:
        for one in well(workload, state, marked):
            yield one, 0.0, f"{marked} is good again, and marked"
    if surplus is True:
        for one in common(well(workload, state, marked), bad(workload, state, stays)):
            yield one, workload.toleration, f"{marked} in the place of {stays}"

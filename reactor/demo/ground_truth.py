"""History of the route as it really was: read from the API server's own log of writes, not from the reactor's
account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reactor.demo.follow import weights_of
from reactor.demo.kube import WORLD, Emulator

_KIND, _ROUTES = "TrafficSplit", "trafficsplits"
_REACTOR = "alert-reactor"
"""Its field manager, as managedFields has it."""


@dataclass(frozen=True, slots=True)
class RouteWrite:
    """One write to a route that changed the object, by another writer than the world itself."""

    at: float
    """Time on the machine's monotonic clock."""
    manager: str
    before: Mapping[str, int]
    after: Mapping[str, int]

    @property
    def by_reactor(self) -> bool:
        """True if the reactor wrote it."""
        return self.manager == _REACTOR


@dataclass(frozen=True, slots=True)
class StoryVerdict:
    """Comparison of the writes with what was due."""

    writes: int
    doubled: int
    """Writes that moved no weight, or that nothing had asked for."""
    early: int
    """Writes before their window could have been over."""


def shifts(emulator: Emulator, cluster: str) -> list[RouteWrite]:
    """Give the writes to a cluster's routes, oldest first."""
    store = emulator.clusters[cluster]
    changes = store.store.collection(store.catalog.named(_ROUTES)).history
    steps = {str(change.version): change for change in changes}
    found = []
    for write in emulator.writes.effective(_ROUTES, cluster=cluster):
        if write.manager == WORLD or write.after not in steps:
            continue
        step = steps[write.after]
        before, after = (
            weights_of(_KIND, revision.value) if revision else {} for revision in (step.before, step.after)
        )
        found.append(RouteWrite(write.at, write.manager, before, after))
    return found


def judge(found: Sequence[RouteWrite], due: Sequence[float]) -> StoryVerdict:
    """Compare writes with the moments from which they were due, one for each that should be there."""
    moved = [shift for shift in found if shift.before != shift.after]
    early = sum(shift.at < moment for shift, moment in zip(moved, due, strict=False))
    return StoryVerdict(len(found), len(found) - min(len(moved), len(due)), early)

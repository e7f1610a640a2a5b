"""Executors and inventory of a world: executors that work, fail, are late or lost, and lists of the state after that.

The world's own truth is kept here: weights, copies, which of them are ready. Observations are derived from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bus.messages import (
    Action,
    Approve,
    Backend,
    Evict,
    Fact,
    Health,
    Hold,
    Inventory,
    Mode,
    Notify,
    Observation,
    Outcome,
    Place,
    Purge,
    Route,
    SetWeights,
    Workload,
    WorkloadCopy,
)
from rules.core.reasons import Held
from rules.kinds.traffic.route_state import DECISION_ANNOTATION
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.simulation import second as second_
from rules.rehearsal.world.fault_plan import Interval
from rules.rehearsal.world.seeded_random import SeededRandom
from rules.rehearsal.world.world_topology import Topology
from rules.rulefile.targets import encode_segment


@dataclass(frozen=True, slots=True)
class Resync:
    """An object is listed again."""

    object: str


@dataclass(frozen=True, slots=True)
class ForeignWrite:
    """Another writer changes an object."""

    object: str
    how: float


@dataclass(frozen=True, slots=True)
class Vanish:
    """An object is deleted, and created again later."""

    object: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Try:
    """An executor has an action in its hands."""

    action: Action
    fate: str
    """`Done` or `Failed`."""
    said_after: float


WorldChange = Resync | ForeignWrite | Vanish | Try
WorldEvent = tuple[float, Fact | WorldChange]
Later = Callable[[float, Fact | WorldChange], None]
"""Puts something into the world's queue: (second, what)."""
Fate = tuple[str, float, float]
"""The result of one delivery, seconds until it comes, and seconds until that is heard."""
FATES: tuple[tuple[float, tuple[Fate, ...]], ...] = (
    (0.70, (("Done", 0.5, 0.25),)),
    (0.80, (("Done", 1.0, 20.0),)),  # done at once, heard late
    (0.88, (("Lost", 0.0, 0.0), ("Done", 0.5, 0.5))),
    (0.94, (("Failed", 1.0, 0.25), ("Done", 1.0, 0.25))),
    (0.97, (("Failed", 1.0, 0.25), ("Failed", 1.0, 0.25), ("Failed", 1.0, 0.25), ("Done", 1.0, 0.25))),
    (1.00, (("Done", 90.0, 1.0),)),
)
"""The rolls below this, and the result of each delivery in turn; the last one stays."""


@dataclass(slots=True)
class FaultyExecutor:
    """Executors and inventory of one world."""

    cast: Topology
    dice: SeededRandom
    later: Later = lambda *_: None
    routes: dict[str, Route] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    starts: dict[str, list[Interval]] = field(default_factory=dict)
    """Target of a copy to when it was placed, and when it was ready, each time that it was."""
    gone: set[str] = field(default_factory=set)
    newest: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Rule, object and key to the newest generation."""
    _deliveries: Counter[str] = field(default_factory=Counter)
    _busy: set[str] = field(default_factory=set)
    """Ids of actions that an executor is about."""

    def __post_init__(self) -> None:
        """Begin with what the cast says."""
        self.routes = dict(self.cast.routes)
        self.workloads = dict(self.cast.workloads)

    def published(self, action: Action, now: float) -> None:
        """Take an action in hand, each time that it is published."""
        if action.mode is not Mode.ENFORCE or action.id in self._busy:
            return
        if not isinstance(action, Notify):
            key = (action.rule, action.object, action.concurrency_key)
            self.newest[key] = max(action.generation, self.newest.get(key, 0))
        roll = self.dice.of("fate", action.id).roll()
        drawn = next((fates for most, fates in FATES if roll < most), FATES[0][1])
        delivery = self._deliveries[action.id]
        self._deliveries[action.id] += 1
        fate, after, said_after = drawn[min(delivery, len(drawn) - 1)]
        if fate != "Lost":
            self._busy.add(action.id)
            self.later(now + after, Try(action, fate, said_after))

    def held(self, hold: Hold, now: float) -> None:
        """A person reads that something waits for them."""
        dice = self.dice.of("approve", hold.rule, hold.object, now)
        if hold.held == Held.AWAITING_APPROVAL and dice.chance(0.8):
            second = now + dice.between(10, 900)
            yes = Approve(rule=hold.rule, object=hold.object, by="ann", reason="seen", observed_at=at_(second))
            self.later(second, yes)

    def happens(self, what: WorldChange, now: float) -> list[Fact]:
        """Let something happen, and give what is observed of it in this instant."""
        match what:
            case Resync():
                return list(self._listed(what.object, now))
            case ForeignWrite():
                return self._drifted(what, now)
            case Vanish():
                self.gone.add(what.object)
                if what.object in self.routes:  # it is created again from its manifest, which knows no decisions
                    self.routes[what.object] = self.cast.routes[what.object]
                self.later(now + what.seconds, ForeignWrite(what.object, 2.0))
                return list(self._listed(what.object, now))
            case Try():
                return self._tried(what, now)

    def sees(self, fact: Fact) -> Fact | None:
        """Give what is really observed of a copy: nothing where there is none, and Unhealthy while it starts."""
        if not isinstance(fact, Observation) or not fact.target.startswith("workload/"):
            return fact
        _, cluster, object_ = fact.target.split("/", 2)
        copies = self.workloads[object_].clusters if object_ in self.workloads else {}
        if object_ in self.gone or not any(encode_segment(name) == cluster for name in copies):
            return None
        seen = second_(fact.observed_at)
        begun = [start for start in self.starts.get(fact.target, ()) if start[0] <= seen]
        if not begun:
            return fact
        placed_at, ready_at = begun[-1]
        starting = seen < ready_at and fact.status is Health.HEALTHY
        changes: dict[str, object] = {"status": Health.UNHEALTHY} if starting else {}
        if fact.since is not None:
            well = fact.status is Health.HEALTHY and not starting
            changes["since"] = max(fact.since, at_(ready_at if well else placed_at))
        return fact.model_copy(update=changes)

    def _tried(self, what: Try, now: float) -> list[Fact]:
        action = what.action
        self._busy.discard(action.id)
        key = (action.rule, action.object, action.concurrency_key)
        refused = not isinstance(action, Notify) and action.generation < self.newest[key]
        fate = "Refused" if refused else what.fate
        if fate == "Done":
            self._written(action, now)
        second = now + what.said_after
        body = {"action": action.id, "rule": action.rule, "object": action.object, "status": fate}
        self.later(second, Outcome.model_validate({**body, "observedAt": at_(now)}))
        return []

    def _written(self, action: Action, now: float) -> None:
        after = now + self.dice.of("watch", action.id).pick((0.25, 0.5, 3.0, 20.0))
        match action:
            case SetWeights():
                route = _weighted(self.routes[action.route.object], action.weights)
                notes = {**route.annotations, DECISION_ANNOTATION: action.id}
                self.routes[action.route.object] = route.model_copy(update={"annotations": notes})
                self.later(after, Resync(action.route.object))
            case Place():
                object_ = action.workload.object
                here = self.workloads[object_].clusters
                for name in action.clusters.keys() - here.keys():
                    self._starts(name, object_, now)
                self._placed(object_, {**here, **action.clusters}, after)  # what is there goes when it is purged
            case Purge():
                self._removed(action.workload.object, action.from_, after)
            case Evict() if action.purge_mode == "Directly":
                self._removed(action.workload.object, action.from_, after)
            case _:
                pass  # taints, evictions that wait, steps of zones, words: nothing else of this world changes

    def _starts(self, cluster: str, object_: str, now: float) -> None:
        target = f"workload/{encode_segment(cluster)}/{object_}"
        ready_at = now + self.dice.of("start", target, now).pick((5.0, 30.0, 120.0, 1200.0))
        self.starts.setdefault(target, []).append((now, ready_at))

    def _removed(self, object_: str, cluster: str, after: float) -> None:
        here = self.workloads[object_].clusters
        self._placed(object_, {name: count for name, count in here.items() if name != cluster}, after)
        if object_ in self.cast.single:
            self.later(after, _copy(self.workloads[object_], cluster, None, after))

    def _placed(self, object_: str, clusters: dict[str, int], after: float) -> None:
        self.workloads[object_] = self.workloads[object_].model_copy(update={"clusters": clusters})
        self.later(after, Resync(object_))

    def _drifted(self, what: ForeignWrite, now: float) -> list[Fact]:
        self.gone.discard(what.object)
        if what.object in self.routes and what.how < 1:
            route, dice = self.routes[what.object], self.dice.of("drift", what.object, now)
            self.routes[what.object] = _weighted(
                route, {one.service: dice.pick((0, 0, 1, 5)) for one in route.backends}
            )
        return list(self._listed(what.object, now))

    def _listed(self, object_: str, now: float) -> list[Inventory]:
        changes = {"exists": object_ not in self.gone, "observed_at": at_(now)}
        if object_ in self.routes:
            return [self.routes[object_].model_copy(update=changes)]
        workload = self.workloads[object_]
        if object_ not in self.cast.single:
            return [workload.model_copy(update=changes)]
        return [
            _copy(workload, name, count if object_ not in self.gone else None, now)
            for name, count in sorted(workload.clusters.items())
        ]


def _weighted(route: Route, weights: dict[str, int]) -> Route:
    backends = tuple(
        Backend(service=one.service, weight=weights.get(one.service, one.weight)) for one in route.backends
    )
    return route.model_copy(update={"backends": backends})


def _copy(workload: Workload, cluster: str, replicas: int | None, second: float) -> WorkloadCopy:
    """One copy, as its cluster lists it; None: it is gone from there."""
    ref = workload.model_dump(by_alias=False, include={"namespace", "kind", "name", "api_version", "uid", "labels"})
    return WorkloadCopy(
        **ref, cluster=cluster, replicas=replicas, exists=replicas is not None, observed_at=at_(second)
    )  # fmt: skip

"""Knowledge of a checker about a world: facts that were listed, ordered, asked and answered. None of it is the engine's
account, but for the holds that it publishes."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter

from bus.messages import (
    Action,
    CancelEviction,
    Cluster,
    Evict,
    Fact,
    Health,
    IsolateZone,
    Notify,
    Observation,
    Outcome,
    Pause,
    Place,
    Purge,
    Resume,
    Route,
    SetTaints,
    SetWeights,
    Taint,
    Workload,
    WorkloadCopy,
    Zones,
    ZoneStep,
)
from rules.core.group import Holding
from rules.rehearsal.simulation import second as second_
from rules.rehearsal.world.signal_timeline import SignalTimeline
from rules.rulefile.targets import matches

ActionKey = tuple[str, str, str]
"""Rule, object, key: an action replaces the one before it of its key."""
UNDOABLE = ("Fence", "ShiftTraffic", "CutNetwork")
"""Steps that leave something standing, whatever the rule says."""


@dataclass(slots=True)
class KnownRoute:
    """A route as it was last listed or written."""

    route: Route
    weights: dict[str, int]
    """Service to its largest weight."""
    at: float
    since: float
    """Second in which it was first listed, or listed again after it was gone."""


@dataclass(slots=True)
class Copies:
    """Copies of a workload, as listed and written."""

    listed: Workload | WorkloadCopy
    since: dict[str, float] = field(default_factory=dict)
    """Cluster to the second in which the reactor placed a copy there; 0: it was there already."""
    known_at: dict[str, float] = field(default_factory=dict)
    """Cluster to when its copy was first listed."""
    changed_at: float = 0.0
    """Second of the last action that changed it: older lists do not count."""
    exists: bool = True
    gone: set[str] = field(default_factory=set)
    """Clusters in which there was none, or none any more: what is listed there later is new."""


@dataclass(slots=True)
class WorldLog:
    """All that was said and asked so far."""

    words: SignalTimeline = field(default_factory=SignalTimeline)
    routes: dict[str, KnownRoute] = field(default_factory=dict)
    copies: dict[str, Copies] = field(default_factory=dict)
    """By workload."""
    leaving: dict[tuple[str, str], dict[str, bool]] = field(default_factory=dict)
    """By rule and workload: clusters that it was asked to leave, and whether it was evicted there."""
    placer: dict[str, str] = field(default_factory=dict)
    """Workload to the rule that last placed it."""
    clusters: dict[str, Cluster] = field(default_factory=dict)
    clouded: float = 0.0
    """Last second in which more than one cluster may have been bad: toleration from before need not count."""
    taints: dict[str, dict[tuple[str, str, str], tuple[Taint, float]]] = field(default_factory=dict)
    """Cluster to (who, key, effect) to the taint, and since when it is there."""
    zones: dict[str, Zones] = field(default_factory=dict)
    touched: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """Rule to zone to steps that may be in effect."""
    isolate: dict[tuple[str, str], IsolateZone] = field(default_factory=dict)
    orders: list[tuple[float, Pause | Resume]] = field(default_factory=list)
    asked: dict[str, Action] = field(default_factory=dict)
    """By id."""
    flying: dict[ActionKey, Action] = field(default_factory=dict)
    """Asked and not answered, the newest of each key."""
    failed: set[str] = field(default_factory=set)
    """Ids of actions that have failed at least once."""
    done: dict[ActionKey, Action] = field(default_factory=dict)
    """The newest of each key that is Done."""
    done_at: dict[tuple[str, str], float] = field(default_factory=dict)
    """Rule and object to when something was last done there."""
    news: dict[tuple[str, str], int] = field(default_factory=dict)
    """Number of notifications by rule and target: odd: it is bad."""
    holds: dict[tuple[str, str], Holding] = field(default_factory=dict)
    """By rule and the group's object: the current reason."""

    def hear(self, fact: Fact, now: float) -> None:
        """Take a fact."""
        seen = min(second_(fact.observed_at), now)
        if fact.about.startswith("cluster/") and self._is_cloudy(now):
            self.clouded = now
        match fact:
            case Observation():
                self.words.hear(fact, second_(fact.observed_at), now)
            case Route():
                self._route(fact, seen)
            case Cluster():
                self._cluster(fact, seen)
            case Workload() | WorkloadCopy():
                self._workload(fact, seen)
            case Zones():
                self._zones(fact)
            case Pause() | Resume():
                self.orders.append((seen, fact))
            case IsolateZone():
                self.isolate[fact.rule, fact.zone] = fact
            case Outcome():
                self._outcome(fact, seen)
            case _:
                pass  # acquire requests, replies and taints that groups tell each other follow from known facts

    def _is_cloudy(self, now: float) -> bool:
        """True if more than one cluster may be bad."""
        targets = {
            *(one for one in self.words.of if one.startswith("cluster/")),
            *(f"cluster/{one}" for one in self.clusters),
        }
        return sum(not self.words.surely(one, None, now, Health.HEALTHY) for one in targets) > 1

    def paused(self, rule: str) -> bool:
        """True if a pause that matches this rule was ended by no later resume that matches the pause's names."""
        orders = [fact for _, fact in sorted(self.orders, key=itemgetter(0))]
        return any(
            isinstance(fact, Pause)
            and matches(fact.rule, rule)
            and not any(isinstance(later, Resume) and matches(later.rule, fact.rule) for later in orders[number:])
            for number, fact in enumerate(orders)
        )

    def _route(self, fact: Route, seen: float) -> None:
        known = self.routes.get(fact.object)
        if known is not None and seen < known.at:
            return
        weights: dict[str, int] = {}
        for one in fact.backends:
            weights[one.service] = max(one.weight, weights.get(one.service, 0))
        was_there = known is not None and known.route.exists
        since = known.since if known is not None and was_there else seen
        self.routes[fact.object] = KnownRoute(fact, weights, seen, since)

    def _cluster(self, fact: Cluster, seen: float) -> None:
        known = self.clusters.get(fact.name)
        if known is not None and fact.observed_at < known.observed_at:
            return
        self.clusters[fact.name] = fact
        standing = self.taints.setdefault(fact.name, {})
        for key in [key for key in standing if key[0] == ""]:
            if not any((one.key, one.effect) == key[1:] for one in fact.taints):
                del standing[key]
        for one in fact.taints:
            since = second_(one.time_added) if one.time_added is not None else seen
            standing.setdefault(("", one.key, one.effect), (one, since))

    def _workload(self, fact: Workload | WorkloadCopy, seen: float) -> None:
        known = self.copies.get(fact.object)
        copies = known or self.copies.setdefault(fact.object, Copies(fact))
        if seen <= copies.changed_at and copies.changed_at:
            return
        copies.listed, copies.exists = fact, fact.exists
        for name in fact.clusters if isinstance(fact, Workload) else (fact.cluster,):
            copies.known_at.setdefault(name, seen)
        if isinstance(fact, Workload):
            if fact.exists:  # what appears where there was none is new
                first = seen if known is not None else 0.0
                copies.since = {name: copies.since.get(name, first) for name in fact.clusters}
        elif fact.exists:
            placing = self.flying.get((self.placer.get(fact.object, ""), fact.object, "place"))
            new = fact.cluster in copies.gone or (isinstance(placing, Place) and fact.cluster in placing.clusters)
            copies.since.setdefault(fact.cluster, seen if new else 0.0)
        else:
            copies.gone.add(fact.cluster)
            copies.since.pop(fact.cluster, None)
            copies.known_at.pop(fact.cluster, None)
            for (_, object_), leaving in self.leaving.items():
                if object_ == fact.object:
                    leaving.pop(fact.cluster, None)  # taken away by any writer: what appears there later is another one

    def _zones(self, fact: Zones) -> None:
        before = self.zones.get(fact.cluster)
        if before is not None and fact.observed_at < before.observed_at:
            return
        if not fact.api_reachable and before is not None:
            fact = before.model_copy(update={"observed_at": fact.observed_at, "api_reachable": False})
        self.zones[fact.cluster] = fact

    # --- what is asked, and what becomes of it ------------------------------------------------------------------------

    def ask(self, action: Action) -> None:
        """Take an action that is new."""
        self.asked[action.id] = action
        if isinstance(action, Notify):
            return
        self.flying[action.rule, action.object, action.concurrency_key] = action
        match action:
            case Place() | Evict():
                leaving = self.leaving.setdefault((action.rule, action.object), {})
                if isinstance(action, Place):
                    self.placer[action.object] = action.rule
                    for name in action.clusters:
                        leaving.pop(name, None)
                for name in action.leaving if isinstance(action, Place) else (action.from_,):
                    leaving.setdefault(name, False)
            case SetTaints():
                # They may be in effect from now on: what is asked may be done before it is said to be.
                standing = self.taints.setdefault(action.cluster, {})
                for key in [key for key in standing if key[0] == action.rule]:
                    del standing[key]
                for one in action.taints:
                    since = second_(one.time_added or action.decided_at)
                    standing[action.rule, one.key, one.effect] = (one, since)
            case ZoneStep():
                steps = self.touched.setdefault(action.rule, {}).setdefault(action.zone, set())
                if not action.undo and action.step in UNDOABLE:
                    steps.add(action.step)
            case _:
                pass

    def _outcome(self, fact: Outcome, seen: float) -> None:
        action = self.asked.get(fact.action)
        if action is None or isinstance(action, Notify):
            return
        key = (action.rule, action.object, action.concurrency_key)
        if fact.status == "Failed":
            self.failed.add(action.id)
        if self.flying.get(key) is not action or fact.status == "Failed":
            return
        del self.flying[key]
        if fact.status != "Done":
            return
        self.done[key] = action
        self.done_at[action.rule, action.object] = seen
        match action:
            case SetWeights():
                known = self.routes[action.route.object]
                known.weights = {**known.weights, **action.weights}
                known.at = max(known.at, seen)
            case ZoneStep() if action.undo:
                self.touched.setdefault(action.rule, {}).setdefault(action.zone, set()).discard(action.step)
            case Place() | Evict() | Purge() | CancelEviction():
                self._note_move(action, seen)
            case _:
                pass

    def _note_move(self, action: Place | Evict | Purge | CancelEviction, seen: float) -> None:
        copies = self.copies.get(action.object)
        if copies is None:
            return
        copies.changed_at = max(copies.changed_at, seen)
        if isinstance(action, Place):
            for name in action.clusters:
                copies.since.setdefault(name, seen)
        elif isinstance(action, Purge) or (isinstance(action, Evict) and action.purge_mode == "Directly"):
            copies.since.pop(action.from_, None)
            copies.gone.add(action.from_)
        leaving = self.leaving.setdefault((action.rule, action.object), {})
        if isinstance(action, Evict):
            leaving[action.from_] = True
        elif isinstance(action, Purge | CancelEviction):
            leaving.pop(action.from_, None)

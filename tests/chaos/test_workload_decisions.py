"""The decisions alone, played through the patterns of workloads: what the rules decide, the judge finds right.

So the judge and the rules are compared in thousands of seeds, without processes; what is left for chaos is the rest.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from bus.messages import (
    Action,
    CancelEviction,
    Cluster,
    CopyRecord,
    Evict,
    Fact,
    Health,
    Observation,
    Place,
    Purge,
    WorkloadCopy,
)
from reactor.audit.spans import Span
from reactor.audit.verdict import Breach
from rules.core.reasons import Because
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator, at
from tests.chaos import workload_patterns, workloads
from tests.chaos.kubelets import STARTS
from tests.chaos.script import Plan
from tests.chaos.workload_patterns import NAMES
from tests.judge.checker import check
from tests.judge.object_history import Run
from tests.judge.workload_history import CopyWrite, Effect, WorkloadHistory
from tests.unit.rules.builders import rule_set

SEEDS = int(os.environ.get("PATTERN_SEEDS", "2"))
STRIKE = Span(13.0, 29.0)
END = 60.0
TICK = 0.25
EFFECTS: dict[type[Action], Effect] = {Place: "place", Evict: "mark", CancelEviction: "unmark", Purge: "remove"}


@dataclass(slots=True)
class Played:
    """One workload on two clusters, and what its rule did with it."""

    plan: Plan
    blackout: Span | None = None
    """Time in which nothing is observed."""
    wiped: bool = False
    """True if all that the rule has stored is lost with it."""
    placed: dict[str, float] = field(default_factory=lambda: {"one": -inf})
    writes: list[CopyWrite] = field(default_factory=list)
    said: dict[str, Observation] = field(default_factory=dict)
    records: dict[str, CopyRecord] = field(default_factory=lambda: {"one": CopyRecord(created_at=at(-9000))})
    """Records that the copies carry."""

    def history(self) -> WorkloadHistory:
        """Play it."""
        rules = rule_set(workloads.rule(self.plan, 0.0))
        player = Simulator(GroupStore(Routing.of(rules)), outcomes=True)
        for step in range(int(END / TICK)):
            now = step * TICK
            if self.wiped and self.blackout is not None and now == self.blackout.end:
                player = Simulator(GroupStore(Routing.of(rules)), outcomes=True)
            for emitted in player.until(at(now)):
                self._carried_out(emitted.what, emitted.at)
            dark = self.blackout is not None and self.blackout.begin <= now < self.blackout.end
            for emitted in player.take([] if dark else self._facts(now), at(now)):
                self._carried_out(emitted.what, emitted.at)
        blind = () if self.blackout is None else (self.blackout,)
        outages = {name: (*self._script(name), *self._starts(name)) for name in workloads.CLUSTERS}
        return WorkloadHistory(
            self.plan.name, self.plan.toleration, "one", outages, tuple(self.writes), self.plan.blocks, period=TICK,
            blind=blind,
        )  # fmt: skip

    def _script(self, cluster: str) -> tuple[Span, ...]:
        return self.plan.outages if cluster == "one" else self.plan.others[0]

    def _starts(self, cluster: str) -> list[Span]:
        some = [one for one in self.writes if (one.cluster, one.effect) == (cluster, "place")]
        return [Span(one.at, one.at + STARTS) for one in some]

    def _facts(self, now: float) -> list[Fact]:
        """Give what is seen in this moment: clusters are listed once, and all is looked at."""
        out: list[Fact] = []
        for name in workloads.CLUSTERS:
            if now == 0.0 or (self.blackout is not None and now == self.blackout.end):
                out.append(Cluster(name=name, observed_at=at(now)))
            out.append(self._said(f"cluster/{name}", now, healthy=True))
            if name not in self.placed:
                continue
            copy = WorkloadCopy(
                namespace=workloads.NAMESPACE, kind="Deployment", name=self.plan.name, cluster=name, replicas=1,
                record=self.records[name], observed_at=at(now),
            )  # fmt: skip
            out.append(copy)
            bad = any(span.begin <= now < span.end for span in self._script(name)) or now < self.placed[name] + STARTS
            path = f"workload/{name}/{workloads.NAMESPACE}/Deployment/{self.plan.name}"
            out.append(self._said(path, now, healthy=not bad))
        return out

    def _said(self, target: str, now: float, *, healthy: bool) -> Observation:
        """A source that did not look in between does not know since when it is so."""
        status = Health.HEALTHY if healthy else Health.UNHEALTHY
        before = self.said.get(target)
        same = before is not None and before.status is status and before.observed_at == at(now - TICK)
        since = before.since if before is not None and same else at(now)
        said = Observation(
            target=target, status=status, observed_at=at(now), since=since, signal="watch", source="watch",
            stale_seconds=60,
        )  # fmt: skip
        self.said[target] = said
        return said

    def _carried_out(self, action: object, now: float) -> None:
        match action:
            case Place():
                for name in action.clusters.keys() - self.placed.keys():
                    self.placed[name] = now
                    self._wrote(action, name, now, created_at=at(now), placed_for=action.leaving)
            case Purge():
                self._wrote(action, action.from_, now)
                del self.placed[action.from_], self.records[action.from_]
            case Evict():
                self._wrote(action, action.from_, now, leaves=action.because, stays=action.targets)
            case CancelEviction():
                self._wrote(action, action.from_, now, leaves="", stays=())

    def _wrote(self, action: Action, cluster: str, now: float, **says: Any) -> None:
        known = self.records.get(cluster, CopyRecord())
        self.records[cluster] = known.model_copy(update={"rule": action.rule, **says})
        self.writes.append(CopyWrite(now, cluster, EFFECTS[type(action)], action.generation, 1))


def breaches(
    plan: Plan, blackout: Span | None, *, wiped: bool = False
) -> tuple[WorkloadHistory, list[Breach]]:  # fmt: skip
    """Give what the rule does with this workload, and what is wrong with that."""
    history = Played(plan, blackout, wiped).history()
    troubles = () if blackout is None else (blackout,)
    wipes = (blackout.end,) if blackout is not None and wiped else ()
    return history, check(Run((), END, troubles, wipes, workloads=(history,))).breaches


OUTAGES: dict[str, tuple[Span | None, bool]] = {
    "no fault": (None, False), "nothing is observed": (STRIKE, False), "the store is wiped": (STRIKE, True),
}  # fmt: skip


@pytest.mark.parametrize("outage", OUTAGES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_the_rules_decide_is_right(seed: int, outage: str) -> None:
    plans = workload_patterns.plans("decisions", seed, STRIKE, len(NAMES))
    assert {plan.pattern.partition(",")[0] for plan in plans} == {*NAMES}
    blackout, wiped = OUTAGES[outage]
    wrong = [(plan.pattern, *breaches(plan, blackout, wiped=wiped)) for plan in plans]
    assert [one for one in wrong if one[2]] == []


MOMENTS = int(os.environ.get("PATTERN_MOMENTS", "4"))


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_move_goes_on_after_a_wipe_at_any_moment_of_it(moment: int) -> None:
    dark = Span(12.0 + 10 * moment / MOMENTS // TICK * TICK, 13.0 + 10 * moment / MOMENTS // TICK * TICK)
    plans = workload_patterns.plans("decisions", moment, STRIKE, len(NAMES))
    wrong = [(plan.pattern, *breaches(plan, dark, wiped=True)) for plan in plans]
    assert [one for one in wrong if one[2]] == []


MUTANTS = {
    "the old copy goes before the new one is seen Healthy": (
        "rules.kinds.workload.old_copy.purged_because", lambda *_, **__: Because.REPLACEMENT_HEALTHY, "blind"
    ),
    "a window that is too short": (
        "rules.kinds.workload.causes.fails_at", lambda _w, _a, copy: copy.bad and copy.bad.since + timedelta(seconds=1),
        "early",
    ),
    "an eviction is never taken back": ("rules.kinds.workload.old_copy.may_return", lambda *_: False, "lost"),
    "a copy that is too many stays": ("rules.kinds.workload.surplus._too_many", lambda *_: (), "lost"),
    "a cluster that is blocked gets a copy": ("rules.kinds.workload.candidates.blocked", lambda *_: False, "needless"),
    "all clusters are blocked": ("rules.kinds.workload.candidates.blocked", lambda *_: True, "lost"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_rules_that_are_broken_on_purpose_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, instead, promise = MUTANTS[name]
    monkeypatch.setattr(where, instead)
    plans = [plan for seed in range(4) for plan in workload_patterns.plans("decisions", seed, STRIKE, len(NAMES))]
    assert any(breach.promise == promise for plan in plans for breach in breaches(plan, None)[1])


def test_rules_that_forget_moves_with_the_store_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.kinds.workload.lost_moves.taken_up", lambda _rule, _policy, group, _now: group.state)
    plans = workload_patterns.plans("decisions", 0, STRIKE, len(NAMES))
    found = [breach for plan in plans for breach in breaches(plan, Span(14.0, 15.0), wiped=True)[1]]
    assert {breach.promise for breach in found} >= {"lost", "converged"}

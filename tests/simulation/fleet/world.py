"""Lets a scenario happen, and gives what was seen of it from outside."""

from __future__ import annotations

import gc
import hashlib
import random as everybodys
from dataclasses import dataclass, field
from math import inf
from random import Random

from reactor.audit.spans import Span
from tests.judge.object_history import RouteHistory, Run, Write
from tests.simulation.fleet.answers import AnswerSeen
from tests.simulation.fleet.cluster import Cluster
from tests.simulation.fleet.clusters import TAINTED, cluster_target
from tests.simulation.fleet.draw import CALM
from tests.simulation.fleet.faults import Faults
from tests.simulation.fleet.fleet import CommandsSeen, Fleet
from tests.simulation.fleet.listening import Mistakes, listening
from tests.simulation.fleet.loop import START, Stuck, VirtualLoop
from tests.simulation.fleet.orders import OrderSeen
from tests.simulation.fleet.people import PauseSeen
from tests.simulation.fleet.reload import TAKEN, EditedFiles, Version
from tests.simulation.fleet.scenario import Plan, Scenario
from tests.simulation.fleet.server import Heard, Notes
from tests.simulation.fleet.source import target
from tests.simulation.fleet.workloads import SECOND, Workloads
from tests.simulation.fleet.zones import REST, IsolatedZones, zone_target

GRACE = 5.0
LINGER = 3.0
TRACE_MAX = 400


@dataclass(slots=True)
class Seen:
    """Observer's record of one run."""

    run: Run
    notes: Notes
    mistakes: list[str]
    """Errors that the fleet itself logged, or that ended the run."""
    hash: str
    """Of every call that any process made, and when."""
    story: list[str] = field(default_factory=list)
    """Events for people."""
    calls: int = 0
    versions: tuple[Version, ...] = ()
    """Versions of the rule files, one after the other."""
    pauses: tuple[PauseSeen, ...] = ()
    answers: tuple[AnswerSeen, ...] = ()
    expires: float | None = None
    """Seconds for which a request for approval is good; None: no rule asks."""
    orders: tuple[OrderSeen, ...] = ()


class World:
    """One run."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        shuffle = Random(f"shuffle {scenario.seed}") if scenario.shuffled else None
        self.loop = VirtualLoop(shuffle)
        self.story: list[tuple[float, str]] = []
        self._digest = hashlib.blake2b(digest_size=8)
        self._calls = 0
        self.commands = CommandsSeen()
        self._writes: dict[str, list[Write]] = {plan.name: [] for plan in scenario.objects}
        self.cluster = Cluster(
            self.loop, [plan.name for plan in scenario.plans], [one.name for one in scenario.clusters], self._wrote
        )
        self.zones = IsolatedZones(
            self.loop, [zone.name for zone in scenario.zones], lambda: self.cluster.is_down, self._wrote
        )
        self.workloads = Workloads(
            self.loop, [one.name for one in scenario.workloads], lambda: self.cluster.is_down, self._wrote
        )
        plans = {one.name: one for one in scenario.workloads}
        self.workloads.healthy_on_first = lambda name: _is_good(plans[name], self.loop.time() - START)
        self.files = EditedFiles(scenario, self.loop)
        self.fleet = Fleet(
            scenario, self.loop, self.cluster, self.zones, self.workloads, self.traced, self.files, self.healthy
        )
        self.faults = Faults(scenario, self.loop, self.fleet, self.tell)

    def play(self) -> Seen:
        """Let it happen, to its end."""
        state = everybodys.getstate()
        everybodys.seed(self.scenario.seed)  # the retries of actions draw their jitter there
        mistakes = Mistakes()
        gc.disable()  # a run is short and ends whole: searching it for garbage on the way took a tenth of its time
        try:
            with listening(mistakes):
                self.loop.run_until_complete(self._main())
        except Stuck as stuck:
            mistakes.errors.append(str(stuck))
        finally:
            gc.enable()
            self.loop.close()
            everybodys.setstate(state)
        return self._seen([*mistakes.errors, *self.loop.errors])

    async def _main(self) -> None:
        self.fleet.start_all()
        if self.scenario.pauses or self.scenario.answers or self.scenario.orders:
            self.fleet.people(self.commands)
        for pause in self.scenario.pauses:
            self._turn(pause.begin, pause.name, "is being paused")
            self._turn(pause.end, pause.name, "is being resumed")
        self.faults.arm()
        self.files.arm(self.fleet.reload, [*self.fleet.roles])
        for edit in self.scenario.edits:
            said = "is removed" if edit.toleration is None else f"tolerates {edit.toleration:g} s"
            self.loop.later(edit.at, self.tell, f"the rule of {edit.name} {said}")
        for plan in self.scenario.objects:
            for outage in plan.outages:
                self._turn(outage.begin, plan.name, "goes bad")
                if outage.end < inf:
                    self._turn(outage.end, plan.name, "is good again")
        while (left := self._end() - self.loop.time()) > 0:
            await self.fleet.clock.sleep(left)
        await self.fleet.end()

    def _turn(self, at: float, name: str, what: str) -> None:
        self.loop.later(at, self.tell, f"{name} {what}")

    def _end(self) -> float:
        """All that must happen has had its time: the faults are over, and so is the last window."""
        longest = max((edit.toleration or 0.0 for edit in self.scenario.edits), default=0.0)
        spells = [edit.at + TAKEN + longest for edit in self.scenario.edits]
        spells += [pause.end for pause in self.scenario.pauses]
        spells += [
            moment + max(plan.toleration, plan.recovery, longest)
            for plan in self.scenario.objects
            for outage in plan.outages
            for moment in (outage.begin, outage.end)
            if moment < inf
        ]
        run = Run((), 0.0, tuple(self.faults.troubles), grace=GRACE)
        return run.due(max([START + moment for moment in (*spells, CALM)])) + LINGER

    def healthy(self) -> dict[str, bool]:
        """Tell the truth about every target at this moment."""
        now = self.loop.time() - START
        out = {}
        for plan in self.scenario.plans:
            out[target(plan.name)] = _is_good(plan, now)
            out[target(plan.second)] = True
        for zone in self.scenario.zones:
            out[zone_target(zone.name)] = _is_good(zone, now)
        for cluster in self.scenario.clusters:
            out[cluster_target(cluster.name)] = _is_good(cluster, now)
        return out | self.workloads.health()

    def traced(self, who: str, what: str) -> None:
        """Record a call."""
        self._calls += 1
        self._digest.update(f"{self.loop.time():.6f} {who} {what}\n".encode())

    def tell(self, what: str) -> None:
        """Write down what people want to read."""
        self.story.append((self.loop.time(), what))

    def _wrote(self, name: str, write: Write) -> None:
        self._writes[name].append(write)
        self.traced(name, f"{write}")
        self.tell(f"{name} WRITTEN {dict(write.weights)} by generation {write.generation} of epoch {write.epoch}")

    def _seen(self, errors: list[str]) -> Seen:
        routes = tuple(
            RouteHistory(
                plan.name, plan.name, plan.toleration, plan.recovery,
                tuple(Span(START + span.begin, START + span.end) for span in plan.outages),
                tuple(self._writes[plan.name]), {second: ()}, blind=tuple(self.faults.blind), dark=False,
                returns=second != SECOND and not (second == REST and self.scenario.expires is not None),
                stamped=second != REST,
            )
            for second, plan in (
                *((plan.second, plan) for plan in self.scenario.plans), *((REST, zone) for zone in self.scenario.zones),
                *((TAINTED, cluster) for cluster in self.scenario.clusters),
                *((SECOND, workload) for workload in self.scenario.workloads),
            )
        )  # fmt: skip
        slack = 0.01 + 2 * self.scenario.skew
        run = Run(
            routes, self.loop.time(), tuple(self.faults.troubles), tuple(self.faults.wipes), grace=GRACE, slack=slack
        )
        notes = self.fleet.server.notes
        asked = [(one.at, f"action {one.id} is published with epoch {one.epoch}") for one in notes.asked]
        heard = [(one.given, _said(one)) for one in self.commands.answers]
        heard += [(one.given, f"a person orders {one.order.name}: {one.order.what}") for one in self.commands.orders]
        heard += [
            (one.at, f"{one.target} is told as {one.status}, seen {one.seen - START:.3f}") for one in changes(notes)
        ]
        story = [f"{at - START:8.3f}  {what}" for at, what in sorted([*self.story, *asked, *heard])]
        return Seen(
            run, notes, errors, self._digest.hexdigest(), story[:TRACE_MAX], self._calls, self.files.versions(),
            tuple(self.commands.pauses), tuple(self.commands.answers), self.scenario.expires,
            tuple(self.commands.orders),
        )  # fmt: skip


def _said(one: AnswerSeen) -> str:
    what = "approves" if one.yes else "rejects"
    return f"a person {what} what the rule of {one.name} asked for at {one.asked - START:.3f}: {one.request or 'any'}"


def _is_good(plan: Plan, now: float) -> bool:
    return not any(outage.begin <= now < outage.end for outage in plan.outages)


def changes(notes: Notes) -> list[Heard]:
    """Leave out what only says again what was said before."""
    last: dict[str, str] = {}
    out = []
    for heard in notes.heard:
        if last.get(heard.target) != heard.status:
            out.append(heard)
        last[heard.target] = heard.status
    return out

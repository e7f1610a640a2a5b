"""Edited rule files: each process takes them in its own time, and says from when on it uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from random import Random

from reactor.runtime.supervise import ended
from rules.engine.routing import Routing
from rules.loader import load_rules
from tests.simulation.fleet.cluster import CLUSTER, NAMESPACE
from tests.simulation.fleet.clusters import cluster_rule
from tests.simulation.fleet.loop import START, VirtualLoop
from tests.simulation.fleet.process import Process
from tests.simulation.fleet.scenario import Scenario
from tests.simulation.fleet.source import target
from tests.simulation.fleet.workloads import workload_rule
from tests.simulation.fleet.zones import zone_rule

LOOKS = 2.0
"""Interval in seconds at which each process looks at its files."""

TAKEN = LOOKS + 6.0
"""Seconds after which all processes that run go by an edit: each gives its partitions away first."""


@dataclass(frozen=True, slots=True)
class Version:
    """Content of the files for some time."""

    begin: float
    end: float
    """Time of the next edit."""
    used_until: float
    """Time at which the last process stopped using it."""
    tolerations: Mapping[str, float]
    """By the routes that have a rule."""


class EditedFiles:
    """The files on all disks, and which of their versions each process uses."""

    def __init__(self, scenario: Scenario, loop: VirtualLoop) -> None:
        self._scenario, self._loop = scenario, loop
        self._routings = [rules(scenario, at) for at in (0.0, *(edit.at for edit in scenario.edits))]
        self._used: dict[str, int] = {}
        """By place, the version by which it goes now, or went last."""
        self._until: list[float] = [START] * len(self._routings)
        """By version, the last moment at which a process used it."""

    def arm(self, reload: Callable[[str], None], places: list[str]) -> None:
        """Let all processes look at each version in their time."""
        random = Random(f"edits {self._scenario.seed}")
        for edit in self._scenario.edits:
            for who in places:
                self._loop.later(edit.at + random.uniform(0, LOOKS), reload, who)

    def take(self, who: str) -> Routing:
        """Give the rules as they are on the disk now, by which this process goes from now on."""
        if who in self._used:
            self._until[self._used[who]] = self._loop.time()
        version = sum(edit.at <= self._loop.time() - START for edit in self._scenario.edits)
        self._used[who] = version
        return self._routings[version]

    def versions(self) -> tuple[Version, ...]:
        """Give what they said, one after the other, as far as is known now."""
        edges = [0.0, *(edit.at for edit in self._scenario.edits), inf]
        out = []
        for number, (begin, end) in enumerate(pairwise(edges)):
            used_until = inf if number in self._used.values() else max(self._until[number], START + begin)
            out.append(Version(START + begin, START + end, used_until, self._scenario.tolerations(begin)))
        return tuple(out)


Begin = Callable[[Routing], list[asyncio.Task[None]]]
"""Starts what a process runs, by these rules, and gives what has to be stopped before it is started again."""


class RunningRoles:
    """Roles of one process, which it restarts with other rules."""

    def __init__(self, process: Process, take: Callable[[], Routing], begin: Begin) -> None:
        self._process, self._take, self._begin = process, take, begin
        self._one_at_a_time = asyncio.Lock()
        self._tasks = begin(take())

    def reload(self) -> None:
        """Stop in good order, then go on with the rules that are on the disk by then."""
        if not self._process.dead:
            self._process.start(self._again)

    async def _again(self) -> None:
        async with self._one_at_a_time:
            await ended(*self._tasks)
            self._tasks = self._begin(self._take())


def rules(scenario: Scenario, moment: float) -> Routing:
    """Give the rules as a person would write them: of each zone, cluster and workload, and of routes that have one."""
    tolerations = scenario.tolerations(moment)
    some = tolerations or scenario.zones or scenario.clusters or scenario.workloads
    asks = ["  mode: Approve", f"  guards: {{approval: {{expireSeconds: {scenario.expires}}}}}"]
    mode = ["  mode: Enforce"] if scenario.expires is None else asks
    lines = ["apiVersion: reactor/v1", "rules:" if some else "rules: []"]
    for zone in scenario.zones:
        lines += zone_rule(zone, mode)
    for cluster in scenario.clusters:
        lines += cluster_rule(cluster, mode)
    for workload in scenario.workloads:
        lines += workload_rule(workload, mode)
    for plan in scenario.plans:
        if plan.name not in tolerations:
            continue
        lines += [
            f"- name: {plan.name}", "  kind: TrafficFailover", *mode,
            f"  route: {{cluster: {CLUSTER}, kind: TrafficSplit, namespace: {NAMESPACE}, name: {plan.name}}}",
            "  backends:", f"  - {{service: {plan.name}, target: {target(plan.name)}}}",
            f"  - {{service: {plan.second}, target: {target(plan.second)}}}",
            f"  tolerationSeconds: {tolerations[plan.name]}", f"  recoverySeconds: {plan.recovery}",
            "  failback: {backoff: {factor: 1}}",  # the judge measures each way back by recoverySeconds
        ]  # fmt: skip
    return Routing(load_rules([("fleet.yaml", "\n".join(lines))]).rules)

"""Several rules, their guards and a bus between them, on virtual time; the bus may delay, double and lose."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bus.messages import AcquireReply, AcquireRequest, Action, Fact, Hold, Mode, Notify, Outcome
from rules.core.group import Group
from rules.engine.decide import Decision
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at, second
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import Rule
from rules.rulefile.sources import Quorum
from tests.unit.rules.builders import Event, failover, healthy, route, rule_set, unhealthy

Delays = Callable[[Fact, float], Sequence[float]]
"""After how many seconds a fact arrives, once for each time that it does."""
Answers = Callable[[Action, float], Iterable[tuple[float, str]]]
"""Time and status of each outcome of an action."""


def at_once(_fact: Fact, _now: float) -> Sequence[float]:
    return (0.0,)


def done_at_once(_action: Action, now: float) -> Iterable[tuple[float, str]]:
    return [(now, "Done")]


def never(_action: Action, _now: float) -> Iterable[tuple[float, str]]:
    return []


class World:
    """Results of a history."""

    def __init__(
        self, rules: Sequence[Rule], file_guards: Sequence[FileGuard] = (), quorums: Sequence[Quorum] = (), *,
        delays: Delays = at_once, answers: Answers = done_at_once, restarts: bool = False,
    ) -> None:  # fmt: skip
        self.routing = Routing(rules, file_guards, quorums)
        self.group_store = GroupStore(self.routing)
        self.delays, self.answers, self.restarts = delays, answers, restarts
        self.waiting: list[tuple[float, int, Fact]] = []
        self.number = 0
        self.now = 0.0
        self.decisions: list[tuple[float, Decision]] = []
        self.acts: dict[str, tuple[float, Action]] = {}
        """New actions by id, with the second in which they are first published; words to people are left out."""
        self.holds: list[tuple[float, Hold]] = []
        self.heard: list[tuple[float, Fact]] = []

    def play(self, *events: Event, until: float) -> World:
        """Take these facts at their seconds, and all that follows from them."""
        for when, fact in events:
            self._wait(when, fact)
        for _ in range(100_000):
            moments = [self.waiting[0][0]] if self.waiting else []
            alarm = self.group_store.next_alarm()
            moments += [second(alarm)] if alarm is not None else []
            now = min(moments, default=until + 1)
            if now > until:
                return self
            self._step(max(now, self.now))
        raise AssertionError(f"no end at second {self.now}")

    def _step(self, now: float) -> None:
        self.now = now
        facts = []
        while self.waiting and self.waiting[0][0] <= now:
            facts.append(heapq.heappop(self.waiting)[2])
        self.heard += [(now, fact) for fact in facts]
        if self.restarts:
            self.group_store = GroupStore(
                self.routing, [load_group(dump_group(group)) for group in self.group_store.groups.values()]
            )
        decisions = self.group_store.apply(facts, at(now)) if facts else self.group_store.fire_due(at(now))
        for decision in decisions:
            self.decisions.append((now, decision))
            self._follow(decision, now)

    def _follow(self, decision: Decision, now: float) -> None:
        for fact in decision.emits:
            for delay in self.delays(fact, now):
                self._wait(now + delay, fact)
        if decision.held is not None:
            held, group = decision.held, decision.group
            self.holds.append((now, Hold(
                rule=group.rule, object=held.about or group.object, held=held.reason, detail=held.detail,
                decided_at=at(now),
            )))  # fmt: skip
        for action in decision.actions:
            if action.id in self.acts or isinstance(action, Notify):
                continue
            self.acts[action.id] = (now, action)
            if action.mode is not Mode.ENFORCE:
                continue
            told = {"action": action.id, "rule": action.rule, "object": action.object}
            for when, status in self.answers(action, now):
                self._wait(when, Outcome.model_validate({**told, "status": status, "observed_at": at(when)}))

    def _wait(self, when: float, fact: Fact) -> None:
        self.number += 1
        heapq.heappush(self.waiting, (when, self.number, fact))

    @property
    def times(self) -> list[tuple[float, str]]:
        """Second and rule of each act."""
        return [(when, action.rule) for when, action in self.acts.values()]

    @property
    def held(self) -> list[tuple[float, str, str]]:
        """Second, rule and reason of each hold."""
        return [(when, hold.rule, hold.held) for when, hold in self.holds]

    def group(self, rule: str) -> Group:
        return next(group for (name, _), group in self.group_store.groups.items() if name == rule)

    def claims(self) -> list[AcquireRequest]:
        return [fact for _, fact in self.heard if isinstance(fact, AcquireRequest)]

    def verdicts(self) -> list[AcquireReply]:
        return [fact for _, fact in self.heard if isinstance(fact, AcquireReply)]


def web(number: int, **keys: Any) -> dict[str, Any]:
    """A rule for the route `w<number>`, whose primary is `a<number>`."""
    name = f"w{number}"
    return failover(
        name=name, route={"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": name},
        backends=[{"service": f"a{number}"}, {"service": f"b{number}"}], **keys,
    )  # fmt: skip


def webs(count: int, **keys: Any) -> list[Rule]:
    return list(rule_set(*(web(number, **keys) for number in range(count))).rules)


def home(count: int) -> list[Event]:
    """All routes and services as they should be, at second 0."""
    return [
        event
        for number in range(count)
        for event in (
            route({f"a{number}": 1, f"b{number}": 0}, name=f"w{number}"),
            healthy(f"a{number}", at=0),
            healthy(f"b{number}", at=0),
        )
    ]


def down(*numbers: int, at: float) -> list[Event]:
    """These primaries fail."""
    return [unhealthy(f"a{number}", at=at) for number in numbers]


def up(*numbers: int, at: float) -> list[Event]:
    return [healthy(f"a{number}", at=at) for number in numbers]


def shared(rules: Sequence[str] = ("*",), **keys: Any) -> FileGuard:
    """A guard of the file, as its text says it."""
    return FileGuard.model_validate({"name": "all", "rules": list(rules), **keys}, strict=False)

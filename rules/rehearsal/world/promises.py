"""The seven promises, judged from outside: by what was said, ordered and asked, never by what the engine believes.

A finding says that a promise was tested, and what is wrong where it was broken. What each kind of rule has to keep is
in `checkers/`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bus.messages import (
    Action,
    DecisionRecord,
    Fact,
    Health,
    Notify,
    Observation,
    Place,
    SetTaints,
    SetWeights,
    ZoneStep,
)
from rules.catalog import INTERNAL, KINDS, kind_of
from rules.core.reasons import Because, Held
from rules.engine.decide import Decision
from rules.engine.routing import Routing
from rules.rehearsal.decision_replay import Match, recorded, replay
from rules.rehearsal.simulation import second as second_
from rules.rehearsal.world.checkers.founded import founded
from rules.rehearsal.world.checkers.guard_promises import guarded
from rules.rehearsal.world.checkers.promise_finding import GRACE, Promise, Question, Violation, content, kept
from rules.rehearsal.world.checkers.simple import notified, tainted, untold
from rules.rehearsal.world.checkers.traffic_promises import unmoved, weighted
from rules.rehearsal.world.checkers.workload_promises import moved, unplaced
from rules.rehearsal.world.checkers.zone_promises import isolated, unisolated
from rules.rehearsal.world.truth import Truth
from rules.rehearsal.world.world_log import UNDOABLE, WorldLog
from rules.rulefile.model import Rule

SAMPLE = 60.0
"""Every so many seconds it is looked whether something was lost."""
_WORDS = {*Because, *Held}
Checks = tuple[Callable[[Any], Iterable[Violation]], Callable[[WorldLog, Any, float], Iterable[Violation]]]
_CHECKS: dict[type[Action], Checks] = {
    SetWeights: (weighted, unmoved),
    Place: (moved, unplaced),
    ZoneStep: (isolated, unisolated),
    SetTaints: (tainted, untold),
    Notify: (notified, untold),
}
"""Checkers of rules by the action that they ask for: one for wrong actions, one for missing ones."""


def checks_of(rule: type[Rule]) -> Checks:
    """Checkers of rules of this kind, by the actions that they ask for. Raises LookupError: a world checks none of
    them."""
    kind = KINDS[rule]
    for action in (Notify,) if kind.tells else kind.actions:
        if action in _CHECKS:
            return _CHECKS[action]
    msg = f"{rule.__name__}: rules/rehearsal/world/promises.py, _CHECKS has no action that it asks for"
    raise LookupError(msg)


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was not kept."""

    promise: Promise
    at: float
    rule: str
    object: str
    what: str


class Checker:
    """Looks on while a world is played."""

    def __init__(self, routing: Routing, truth: Truth) -> None:
        self.routing, self.truth = routing, truth
        self.told = WorldLog()
        self.tested: Counter[Promise] = Counter()
        self.judged: set[str] = set()
        """Names of the rules of which a promise was tested."""
        self.broken: list[Broken] = []
        self._looked_at = 0.0
        self._over: dict[tuple[str, str], float] = {}
        """Since when the hold of a rule and object is over: what waited for it may still ask for a look."""

    def heard(self, facts: Iterable[Fact], now: datetime) -> None:
        """Take what is said in one instant, before anything is decided of it."""
        second = second_(now)
        self._look_up_to(second)
        # Of one moment the worst counts: clocks that are ahead put what was said one after the other into one moment.
        for fact in sorted(facts, key=lambda fact: (min(fact.observed_at, now), _mildness(fact))):
            self.told.hear(fact, second)

    def decided(self, decisions: Sequence[Decision], now: datetime) -> None:
        """Judge the result."""
        self._look_up_to(second_(now))
        for decision in decisions:
            group, rule = decision.group, self.routing.rules.get(decision.group.rule)
            if rule is None or rule.name.startswith("@"):
                continue
            if group.held is not None:
                self.told.holds[group.rule, group.object] = group.held
                self._over.pop((group.rule, group.object), None)
            else:
                self._over.setdefault((group.rule, group.object), second_(now))
            fresh = [action for action in decision.actions if action.id not in self.told.asked]
            for action in decision.actions:
                if action.id in self.told.asked:
                    same = self.told.asked[action.id] == action
                    why = "" if same else f"{action.id} was asked before with another content"
                    self._note([Violation(Promise.DOUBLED, why)], action, now)
            for action in fresh:
                question = Question(self.told, rule, self.routing, action, decision, second_(now), self.truth)
                self._note(_doubled(question), action, now)
                self._note(_named(question), action, now)
                if not isinstance(action, Notify) or kind_of(rule).tells:
                    self._note(guarded(question), action, now)
                    self._note(checks_of(type(rule))[0](question), action, now)
                    self._note(founded(question), action, now)
                self.told.ask(action)
            if fresh:
                self._note([self._explained(decision, now)], fresh[0], now)

    def _look_up_to(self, second: float) -> None:
        """Look for what was lost, in the moments up to this one."""
        while self._looked_at + SAMPLE < second:
            self._looked_at += SAMPLE
            for key in [key for key, over in self._over.items() if over + GRACE < self._looked_at]:
                del self._over[key]
                self.told.holds.pop(key, None)
            for rule in self.routing.rules.values():
                if type(rule) in INTERNAL or self.told.paused(rule.name):
                    continue
                for finding in checks_of(type(rule))[1](self.told, rule, self._looked_at):
                    self.note(finding, self._looked_at, rule.name, finding.about)

    def _explained(self, decision: Decision, now: datetime) -> Violation:
        """The record, as the audit keeps it, decides the same again."""
        digest = self.routing.digest(decision.group.rule)
        body = recorded(decision, digest, now).model_dump_json()
        again = replay(DecisionRecord.model_validate_json(body), self.routing)
        why = "" if again.match is Match.SAME else f"its record replays as {again.match}: {again.why}"
        return Violation(Promise.EXPLAINED, why)

    def _note(self, findings: Iterable[Violation], action: Action, now: datetime) -> None:
        for finding in findings:
            self.note(finding, second_(now), action.rule, finding.about or action.object)

    def note(self, finding: Violation, second: float, rule: str, object_: str) -> None:
        """Count a finding."""
        self.tested[finding.promise] += 1
        self.judged.add(rule)
        if finding.wrong:
            self.broken.append(Broken(finding.promise, second, rule, object_, finding.wrong))


def _mildness(fact: Fact) -> int:
    return (Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY).index(fact.status) if isinstance(fact, Observation) else 0


def _doubled(question: Question) -> Iterator[Violation]:
    """No act is asked again, under another id, while it is on its way or when it is already done."""
    told, action = question.told, question.action
    if isinstance(action, Notify):
        return
    key = (action.rule, action.object, action.concurrency_key)
    flying = told.flying.get(key)
    if flying is not None:
        # One that has failed is forgotten once no rule wants it, and is asked again when one does.
        again = content(flying) == content(action) and flying.id not in told.failed
        yield kept(Promise.DOUBLED, not again, f"{action.id} asks for what is on its way as {flying.id}")
        return
    match action:
        case SetWeights():
            known = told.routes.get(action.route.object)
            entries = [(one.service, one.weight) for one in known.route.backends] if known is not None else []
            uneven = known is None or known.at == 0 or any(
                action.weights.get(name, weight) != known.weights.get(name) for name, weight in known.weights.items()
            )  # fmt: skip
            twice = len({name for name, _ in entries}) < len(entries)
            yield Violation(Promise.DOUBLED, "" if uneven or twice else f"{action.object} is so already")
        case SetTaints():
            last = told.done.get(key)
            is_same = isinstance(last, SetTaints) and last.taints == action.taints
            yield Violation(Promise.DOUBLED, f"{action.object} has these taints already" if is_same else "")
        case ZoneStep() if action.step in UNDOABLE and action.because != Because.NODES_JOINED:
            last = told.done.get(key)
            is_same = isinstance(last, ZoneStep) and content(last) == content(action)
            yield Violation(Promise.DOUBLED, f"{action.step} was just done" if is_same else "")
        case _:
            pass


def _named(question: Question) -> Iterator[Violation]:
    """Every action has a reason that is in the book, and each target that it rests on has its sentence."""
    action = question.action
    known, members = action.because in _WORDS, question.decision.group.members
    yield kept(Promise.EXPLAINED, known, f"{action.id}: {action.because!r} is no reason that people know")
    lines = question.decision.because
    missing = [target for target in members if not any(line.startswith(f"{target} ") for line in lines)]
    yield kept(Promise.EXPLAINED, not missing, f"{action.id}: no word about {', '.join(missing)}")

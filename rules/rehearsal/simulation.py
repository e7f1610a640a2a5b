"""The one loop that everything that rehearses shares: a history played through a book on virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from bus.messages import Action, Backend, Fact, Hold, Mode, Outcome, Route, ZoneStep
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.quorum.kind import judge_of
from rules.kinds.quorum.model import QUORUM, QuorumRule
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_interests import named_ref
from rules.kinds.traffic.route_state import sum_of
from rules.rehearsal.karmada_carrier import RehearsedKarmada
from rules.rehearsal.timeline import START as START
from rules.rehearsal.timeline import Emitted as Emitted
from rules.rehearsal.timeline import at as at
from rules.rehearsal.timeline import second as second
from rules.rehearsal.workload_defaults import completed
from rules.rulefile.model import Rule

if TYPE_CHECKING:
    from rules.rehearsal.given_outcomes import GivenOutcomes

ROUNDS_MAX = 100_000
"""Largest number of rounds in which outcomes may lead to new actions within one instant. More is a
programming error."""


def play(
    routing: Routing | Sequence[Rule], history: Iterable[tuple[float, Fact]], *, until: float, outcomes: bool = True,
    answers: GivenOutcomes | None = None, store: GroupStore | None = None,
) -> Iterator[Emitted]:  # fmt: skip
    """Play a history, sorted by second, and give what comes out of it. Rules alone have no guards of their files.

    Facts of one instant are taken together. With `outcomes`, each action is Done at once and the routes follow it, but
    for those that `answers` are meant for: they wait for them. `store`: of this routing, as new; None: a new one.
    """
    routing = routing if isinstance(routing, Routing) else Routing(routing)
    history = completed(history, routing.rules.values())
    player = Simulator(store or GroupStore(routing), outcomes=outcomes, answers=answers)
    first = min((when for when, _ in history), default=0.0)
    facts = [fact for _, fact in history]
    routes = assumed_routes(routing.rules.values(), facts, first, _routes_concerned(routing, facts))
    assumed = [(first, route) for route in routes]
    events = {when: [fact for _, fact in facts] for when, facts in groupby([*assumed, *history], key=lambda e: e[0])}
    moments = events.keys() | {answer.second for answer in answers.given} if answers else events.keys()
    for when in sorted(moments):
        if when > until:
            break
        yield from player.until(at(when))
        if when in events:
            yield from player.take(events[when], at(when))
        yield from player.answer(at(when))
    yield from player.until(at(until))
    yield from player.ring(at(until))


def _is_a_look(action: Action) -> bool:
    """True for a check of a complete isolation (step Verify, status Done): in a rehearsal no observation can have come
    late."""
    return isinstance(action, ZoneStep) and (action.step, action.status) == ("Verify", "Done")


class Simulator:
    """A book on virtual time, with the outcomes of its actions."""

    def __init__(self, group_store: GroupStore, *, outcomes: bool, answers: GivenOutcomes | None = None) -> None:
        self._group_store = group_store
        self._outcomes = outcomes
        self._answers = answers
        self._karmada = RehearsedKarmada(group_store)
        self._said: set[str] = set()
        self._quorums: dict[str, datetime | None] = {
            name.removeprefix(QUORUM): None for name in group_store.rules if name.startswith(QUORUM)
        }
        """Time of the last look of each quorum source; None: none yet."""

    def until(self, moment: datetime) -> Iterator[Emitted]:
        """Everything that happens by itself before this moment."""
        while (alarm := self._group_store.next_alarm()) is not None and alarm < moment:
            yield from self.ring(alarm)

    def ring(self, now: datetime) -> Iterator[Emitted]:
        yield from self._follow(self._group_store.fire_due(now), now)

    def take(self, facts: Sequence[Fact], now: datetime) -> Iterator[Emitted]:
        known = [self._completed(fact) for fact in facts]
        self._karmada.heard(known)
        yield from self._follow(self._group_store.apply(known, now), now)

    def answer(self, now: datetime) -> Iterator[Emitted]:
        """Take the outcomes that are given for this moment, also of what is asked for in it."""
        if self._answers is not None and second(now) in (answer.second for answer in self._answers.given):
            yield from self.ring(now)
            given = [*self._answers.due(second(now))]
            done = {one.action for one in given if one.status == "Done"}
            owed = [entry.action for group in self._group_store.groups.values() for entry in group.outbox]
            seen = self._seen([action for action in owed if action.id in done], now)
            yield from self._follow(self._group_store.apply(given, now), now, seen)

    def _completed(self, fact: Fact) -> Fact:
        """An outcome in a history names its action only: find whose it is."""
        if isinstance(fact, Outcome) and not fact.rule:
            for group in self._group_store.groups.values():
                if any(entry.action.id == fact.action for entry in group.outbox):
                    return fact.model_copy(update={"rule": group.rule, "object": group.object})
        return fact

    def _seen(self, done: Sequence[Action], now: datetime) -> list[Fact]:
        """Give what is seen when these actions are done, besides their outcomes."""
        return [fact for action in done for fact in self._karmada.carried_out(action, now)]

    def _follow(self, decisions: Sequence[Decision], now: datetime, seen: Sequence[Fact] = ()) -> Iterator[Emitted]:
        for _ in range(ROUNDS_MAX):
            fresh: list[Action] = []
            for decision in decisions:
                for action in decision.actions:
                    if action.id not in self._said:
                        self._said.add(action.id)
                        fresh.append(action)
                        if not _is_a_look(action):
                            yield Emitted(second(now), action, decision.because)
                if decision.held is not None:
                    group, held = decision.group, decision.held
                    hold = Hold(
                        rule=group.rule, object=held.about or group.object, held=held.reason, detail=held.detail,
                        decided_at=now,
                    )  # fmt: skip
                    yield Emitted(second(now), hold, decision.because)
            self._ask_quorums(decisions, now)
            done = [action for action in fresh if self._is_done_at_once(action, now)]
            facts: list[Fact] = [self._done(action, now) for action in done]
            facts += [*(fact for decision in decisions for fact in decision.emits), *seen]
            if not facts:
                return
            seen = self._seen(done, now)
            decisions = self._group_store.apply(facts, now)
        msg = f"actions and outcomes chase each other at second {second(now)}"
        raise AssertionError(msg)

    def _ask_quorums(self, decisions: Sequence[Decision], now: datetime) -> None:
        """A Quorum is asked for its judgement as any source is, once in a moment; it says it when it is rung."""
        for lack in (lack for decision in decisions for lack in decision.lacks):
            if lack.source in self._quorums and lack.since <= now and self._quorums[lack.source] != now:
                self._quorums[lack.source] = now
                self._group_store.ask(judge_of(lack.source), lack.since, now)

    def _is_done_at_once(self, action: Action, now: datetime) -> bool:
        if action.mode is not Mode.ENFORCE:  # a rehearsal has no outcome
            return False
        waits = self._answers is not None and self._answers.asked(Emitted(second(now), action, ()))
        return self._outcomes and not waits

    def _done(self, action: Action, now: datetime) -> Outcome:
        return Outcome(action=action.id, rule=action.rule, object=action.object, status="Done", observed_at=now)


def _routes_concerned(routing: Routing, facts: Iterable[Fact]) -> Set[str] | None:
    """The routes, by object, of the rules that any of the facts concerns. The others get nothing, and want nothing.

    None: of all rules, as Quorum sources say what is in none of the facts.
    """
    if any(isinstance(rule, QuorumRule) for rule in routing.rules.values()):
        return None
    names = {name for fact in facts for name, _ in routing.addresses(fact)}
    refs = (named_ref(rule) for name in names if isinstance(rule := routing.rules[name], TrafficFailover))
    return {ref.object for ref in refs if ref is not None}


def assumed_routes(
    rules: Iterable[Rule], facts: Iterable[Fact], first: float, wanted: Set[str] | None = None
) -> Iterator[Route]:
    """A route that the history does not list is taken to be in its healthy state: the primary has everything.

    `wanted`: only these, by object; None: all.
    """
    listed = {fact.object for fact in facts if isinstance(fact, Route)}
    for rule in rules:
        if not isinstance(rule, TrafficFailover) or not rule.backends or (ref := named_ref(rule)) is None:
            continue
        object_ = ref.object
        if object_ in listed or (wanted is not None and object_ not in wanted):
            continue
        listed.add(object_)
        services = [backend.service for backend in rule.backends]
        primary = rule.primary if rule.primary in services else services[0]
        backends = tuple(
            Backend(service=b.service, weight=(sum_of(ref) or b.weight or 1) if b.service == primary else 0)
            for b in rule.backends
        )
        yield Route(**ref.model_dump(by_alias=False), backends=backends, observed_at=at(first))

"""Plays a world through the same book as everything else, with a witness beside it."""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from bus.messages import Fact, Hold
from rules.engine.decide import Decision
from rules.engine.evidence import Lack
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.engine.subscriptions import RuleObject
from rules.loader import RuleSet
from rules.rehearsal.simulation import Emitted, Simulator, assumed_routes
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.simulation import second as second_
from rules.rehearsal.world.checkers.promise_finding import Promise
from rules.rehearsal.world.dry_run import TimedAction, rehearsed
from rules.rehearsal.world.faulty_executor import (
    FaultyExecutor,
    ForeignWrite,
    Resync,
    Try,
    Vanish,
    WorldChange,
    WorldEvent,
)
from rules.rehearsal.world.promises import Broken, Checker
from rules.rehearsal.world.seeded_random import SeededRandom
from rules.rehearsal.world.source_views import FreshLook, SourceViews
from rules.rehearsal.world.truth import Truth
from rules.rehearsal.world.world import world
from rules.rehearsal.world.world_topology import cast, enforced

Heard = tuple[float, Fact]


@dataclass(slots=True)
class WorldResult:
    """The result of a world."""

    history: list[Heard] = field(default_factory=list)
    """All that was heard, outcomes included: played again it gives the same, byte for byte."""
    tested: Counter[Promise] = field(default_factory=Counter)
    broken: list[Broken] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)
    """True health of the targets, whatever was observed of it."""
    judged: frozenset[str] = frozenset()
    """Names of the rules of which a promise was tested."""


class WitnessedGroupStore(GroupStore):
    """A book with a witness beside it."""

    def __init__(
        self, witness: Checker, hands: FaultyExecutor | None, asked: Callable[[Sequence[Lack], float], None]
    ) -> None:
        super().__init__(witness.routing)
        self._witness, self._hands, self._asked = witness, hands, asked

    def apply(
        self, facts: Sequence[Fact], now: datetime, positions: Sequence[int] = (), *, known: bool = True
    ) -> list[Decision]:
        """Decide, and let the witness judge."""
        self._witness.heard(facts, now)
        return self._shown(super().apply(facts, now, positions, known=known), now)

    def fire_due(self, now: datetime, *, at_most: int = sys.maxsize) -> list[Decision]:
        """Decide, and let the witness judge."""
        return self._shown(super().fire_due(now, at_most=at_most), now)

    def ask(self, key: RuleObject, since: datetime, now: datetime) -> list[Lack]:
        """Have its members asked."""
        lacks = super().ask(key, since, now)
        self._asked(lacks, second_(now))
        return lacks

    def _shown(self, decisions: list[Decision], now: datetime) -> list[Decision]:
        self._witness.decided(decisions, now)
        self._asked([lack for decision in decisions for lack in decision.lacks], second_(now))
        for action in (action for decision in decisions for action in decision.actions):
            if self._hands is not None:
                self._hands.published(action, second_(now))
        return decisions


def play_world(rules: RuleSet, seed: int, hours: float) -> WorldResult:
    """Play the world of this seed, and judge it."""
    acting = enforced(rules)
    who, until = cast(acting), hours * 3600
    made = world(who, seed, until)
    hands = FaultyExecutor(who, SeededRandom(seed, "hands"))
    truth = Truth(made.views.lines(), hands.starts)
    return _Run(acting, made.events, until, truth, hands, made.views).played()


def play_history(rules: RuleSet, history: Sequence[Heard], until: float, truth: Truth | None = None) -> WorldResult:
    """Play what was once heard, and judge it. Nothing answers but what the history has."""
    acting = enforced(rules)
    first = min((second for second, _ in history), default=0.0)
    routes = [(first, route) for route in assumed_routes(acting.rules, (fact for _, fact in history), first)]
    return _Run(acting, [*routes, *history], until, truth or Truth()).played()


class _Run:
    """One run of one world."""

    def __init__(
        self, rules: RuleSet, events: Sequence[WorldEvent], until: float, truth: Truth,
        hands: FaultyExecutor | None = None, views: SourceViews | None = None,
    ) -> None:  # fmt: skip
        self._rules, self._until, self._truth, self._hands, self._views = rules, until, truth, hands, views
        self._witness = Checker(Routing.of(rules), truth)
        self._group_store = WitnessedGroupStore(self._witness, hands, self._ask)
        self._player = Simulator(self._group_store, outcomes=False)
        self._number = count()
        self._queue: list[tuple[float, int, Fact | WorldChange | FreshLook]] = [
            (second, next(self._number), what) for second, what in events
        ]
        heapq.heapify(self._queue)
        self._history: list[Heard] = []
        self._acts: list[TimedAction] = []
        if hands is not None:
            hands.later = self._later

    def _later(self, second: float, what: Fact | WorldChange | FreshLook) -> None:
        heapq.heappush(self._queue, (second, next(self._number), what))

    def _ask(self, lacks: Sequence[Lack], now: float) -> None:
        for second, look in self._views.asked(lacks, now) if self._views is not None else ():
            self._later(second, look)

    def played(self) -> WorldResult:
        """Play it to its end."""
        while True:
            alarm = self._group_store.next_alarm()
            moments = [self._queue[0][0]] if self._queue else []
            moments += [second_(alarm)] if alarm is not None else []
            now = min(moments, default=self._until + 1)
            if now > self._until:
                break
            facts = self._due(now)
            self._follow(self._player.take(facts, at_(now)) if facts else self._player.ring(at_(now)), now)
        self._witness.heard((), at_(self._until))
        for finding, at, act in rehearsed(self._rules, self._history, self._acts):
            self._witness.note(finding, at, act.rule, act.object)
        return WorldResult(
            self._history, self._witness.tested, self._witness.broken, self._truth, frozenset(self._witness.judged)
        )

    def _due(self, now: float) -> list[Fact]:
        facts: list[Fact] = []
        while self._queue and self._queue[0][0] <= now:
            what = heapq.heappop(self._queue)[2]
            if self._hands is None or self._views is None:
                facts.append(what)  # type: ignore[arg-type]  # a history has facts only
            elif isinstance(what, FreshLook):
                if (answer := self._views.answered(what, now)) is not None:
                    self._later(*answer)
            elif isinstance(what, Resync | ForeignWrite | Vanish | Try):
                facts += self._hands.happens(what, now)
            elif (seen := self._hands.sees(what)) is not None:
                facts.append(seen)
        self._history += [(now, fact) for fact in facts]
        return facts

    def _follow(self, said: Iterable[Emitted], now: float) -> None:
        for one in said:
            if not isinstance(one.what, Hold):
                self._acts.append((now, one.what))
            elif self._hands is not None:
                self._hands.held(one.what, now)

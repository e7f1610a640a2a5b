"""Plays a world through the same book as everything else, with a witness beside it."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count, groupby
from typing import get_args

from bus.messages import Action, Fact, Hold, Mode
from rules.bench.play import Player, Said, assumed_routes
from rules.bench.play import at as at_
from rules.bench.play import second as second_
from rules.bench.world import script
from rules.bench.world_cast import cast, enforced
from rules.bench.world_dice import Dice
from rules.bench.world_finding import Finding, Promise
from rules.bench.world_hands import Event, Hands, Happening
from rules.bench.world_promises import Broken, Witness
from rules.engine.actors import limits_of
from rules.engine.book import Book
from rules.engine.decide import Decision
from rules.engine.routing import Routing
from rules.language.loader import RuleSet
from rules.language.model import Notification, Rule
from rules.language.workload import ClusterTaint

Heard = tuple[float, Fact]


@dataclass(slots=True)
class Result:
    """What came of a world."""

    history: list[Heard] = field(default_factory=list)
    """All that was heard, outcomes included: played again it gives the same, byte for byte."""
    tested: Counter[Promise] = field(default_factory=Counter)
    broken: list[Broken] = field(default_factory=list)


class WitnessedBook(Book):
    """A book with a witness beside it."""

    def __init__(self, routing: Routing, witness: Witness) -> None:
        super().__init__(routing)
        self._witness = witness

    def take(self, facts: Sequence[Fact], now: datetime, positions: Sequence[int] = ()) -> list[Decision]:
        """Decide, and let the witness judge."""
        self._witness.heard(facts, now)
        decisions = super().take(facts, now, positions)
        self._witness.decided(decisions, now)
        return decisions

    def ring(self, now: datetime) -> list[Decision]:
        """Decide, and let the witness judge."""
        decisions = super().ring(now)
        self._witness.decided(decisions, now)
        return decisions


def play_world(rules: RuleSet, seed: int, hours: float) -> Result:
    """Play the world of this seed, and judge it."""
    acting = enforced(rules)
    who = cast(acting)
    return _Run(acting, script(who, seed, hours * 3600), hours * 3600, Hands(who, Dice(seed, "hands"))).played()


def play_history(rules: RuleSet, history: Iterable[Heard], until: float) -> Result:
    """Play what was once heard, and judge it. Nothing answers but what the history has."""
    return _Run(enforced(rules), list(history), until, None).played()


class _Run:
    """One run of one world."""

    def __init__(self, rules: RuleSet, events: Iterable[Event], until: float, hands: Hands | None) -> None:
        self._rules, self._until, self._hands = rules, until, hands
        routing = Routing.of(rules)
        self._witness = Witness(routing)
        self._book = WitnessedBook(routing, self._witness)
        self._player = Player(self._book, outcomes=False)
        self._number = count()
        self._queue = [(second, next(self._number), what) for second, what in events]
        self._first: dict[str, tuple[float, Action]] = {}
        if hands is not None:
            hands.later = self._later
        heapq.heapify(self._queue)
        self._result = Result()

    def _later(self, second: float, what: Fact | Happening) -> None:
        heapq.heappush(self._queue, (second, next(self._number), what))

    def played(self) -> Result:
        result = self._result
        if self._hands is None:
            facts = [what for _, _, what in self._queue if not isinstance(what, get_args(Happening))]
            first = min((second for second, _, _ in self._queue), default=0.0)
            for route in assumed_routes(self._book.rules, facts, first):
                self._queue.append((first, -1, route))
            heapq.heapify(self._queue)
        while True:
            alarm = self._book.next_alarm()
            ring = second_(alarm) if alarm is not None else None
            due = self._queue[0][0] if self._queue else None
            now = min((moment for moment in (ring, due) if moment is not None), default=None)
            if now is None or now > self._until:
                break
            self._follow(self._player.take(self._due(now), at_(now)) if now == due else self._player.ring(at_(now)), now)
        self._witness.heard((), at_(self._until))
        self._rehearsed()
        result.tested, result.broken = self._witness.tested, self._witness.broken
        return result

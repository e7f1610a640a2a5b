"""Any history that can happen to one rule, and a driver that plays it through `decide` alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from bus.messages import Action, Fact, Health, Mode, Observation, Outcome
from rules.core.group import Group
from rules.engine.decide import Decision, decide
from rules.kinds.traffic.state import TrafficState
from rules.rehearsal.simulation import at, second
from rules.rulefile.model import Rule
from tests.unit.rules.builders import OBJECT, Event, paused, resumed, route, target, the_rule
from tests.unit.rules.oracle import Heard

SERVICES = ("a", "b", "c")
BACKENDS = [{"service": service} for service in SERVICES]
HOME = {"a": 1, "b": 0, "c": 0}
QUIET = 200
"""Seconds after the last event in which all windows run out."""


def words(*, delays: bool = True, unknown: bool = True, signals: Sequence[str] = ("x", "x", "y")) -> Any:
    """Observations of three services; those of all at second 0 come first, so that most histories get somewhere."""
    statuses = [health.value for health in Health if unknown or health is not Health.UNKNOWN]
    word = st.tuples(
        st.integers(0, 8), st.sampled_from(("a", *SERVICES)), st.sampled_from(["Unhealthy", *statuses]),
        st.sampled_from(signals), st.integers(0, 6) if delays else st.just(0),
        st.sampled_from([None, None, 6, 25]) if unknown else st.none(),
    )  # fmt: skip
    return st.tuples(st.lists(st.sampled_from(SERVICES), unique=True), st.lists(word, max_size=25)).map(_history)


def _history(drawn: tuple[list[str], list[tuple[int, str, str, str, int, int | None]]]) -> list[Heard]:
    history = [Heard(service, "Healthy", 0, 0) for service in sorted(drawn[0])]
    now = 0
    for pause, service, status, signal, delay, stale in drawn[1]:
        now += pause
        history.append(Heard(service, status, max(now - delay, 0), now, signal, stale))
    # What a source says of one moment, it says once.
    return list({(word.service, word.signal, word.seen): word for word in reversed(history)}.values())[::-1]


def events(history: Iterable[Heard]) -> list[Event]:
    """The history as facts."""
    return [
        (
            float(word.heard),
            Observation(
                target=target(word.service), status=Health(word.status), signal=word.signal,
                observed_at=at(word.seen), stale_seconds=word.stale,
            ),
        )
        for word in history
    ]  # fmt: skip


def end(history: Sequence[Heard]) -> int:
    return max((word.heard for word in history), default=0)


MEDDLING = st.lists(
    st.one_of(
        st.builds(
            lambda when, a, b, c: route({"a": a, "b": b, "c": c}, at=when),
            st.integers(1, 80), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2),
        ),
        st.builds(lambda when: route({}, at=when, exists=False), st.integers(1, 80)),
        st.builds(lambda when: paused(at=when), st.integers(1, 80)),
        st.builds(lambda when: resumed(at=when), st.integers(1, 80)),
    ),
    max_size=4, unique_by=lambda event: event[0],
)  # fmt: skip
"""Hand edits, deletions, pauses."""

RULES = st.fixed_dictionaries(
    {
        "tolerationSeconds": st.sampled_from([0, 5, 10]),
        "recoverySeconds": st.sampled_from([0, 7]),
        "treatUnknownAs": st.sampled_from(["Hold", "Hold", "Unhealthy"]),
        "onAllDown": st.sampled_from(["Hold", "Primary", "Spread", "Zero"]),
        "distribution": st.sampled_from(["Equal", "Proportional"]),
        "steps": st.sampled_from([[], [{"percent": 10, "pauseSeconds": 5}, {"percent": 60, "pauseSeconds": 3}]]),
        "notify": st.sampled_from([[], ["oncall"]]),
        "backends": st.sampled_from(
            [BACKENDS, [{"service": "a", "weight": 5}, {"service": "b"}, {"service": "c", "tier": 2}]]
        ),
    }
).map(lambda keys: the_rule(**keys))

Answer = Callable[[Action, float], Event | None]


def done(action: Action, now: float) -> Event | None:
    """Every action is carried out at once."""
    outcome = Outcome(action=action.id, rule=action.rule, object=action.object, status="Done", observed_at=at(now))
    return (now, outcome) if action.mode is Mode.ENFORCE else None


def soon(action: Action, now: float) -> Event | None:
    """Every action is carried out a little later."""
    return done(action, now + 0.5)


def silence(action: Action, now: float) -> Event | None:
    """No outcome ever arrives."""


def trouble(action: Action, now: float) -> Event | None:
    """Some actions fail, some are refused, some get no outcome: by their ids, so always the same ones."""
    status = ("Done", "Failed", "Refused", None)[sum(action.id.encode()) % 4]
    if status is None or action.mode is not Mode.ENFORCE:
        return None
    told = {"action": action.id, "rule": action.rule, "object": action.object, "status": status}
    return now + 2, Outcome.model_validate({**told, "observed_at": at(now + 2)})


@dataclass
class Run:
    """Course of one group through a history."""

    rule: Rule
    answer: Answer = done
    between: Callable[[Group], Group] = lambda group: group
    looks: Sequence[int] = ()
    """Seconds in which it is looked at although nothing happens."""
    group: Group = field(default_factory=lambda: Group("web", OBJECT, TrafficState()))
    decisions: list[tuple[float, Decision]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def play(self, given: Iterable[Event], until: float) -> Run:
        """Decide at every event, at every wake-up, and for every outcome, in the order of time."""
        waiting = sorted(given, key=lambda event: event[0])
        looks = sorted(set(self.looks))
        while True:
            moments = [waiting[0][0]] if waiting else []
            moments += [second(self.group.next_deadline)] if self.group.next_deadline is not None else []
            now = min([*moments, *looks[:1]], default=until + 1)
            looks = [look for look in looks if look > now]
            if now > until:
                return self
            together = [fact for when, fact in waiting if when <= now]
            waiting = [event for event in waiting if event[0] > now]
            waiting = sorted([*waiting, *self.take(together, now)], key=lambda event: event[0])
            assert len(self.decisions) < 5000, "no progress"

    def take(self, facts: Sequence[Fact], now: float) -> list[Event]:
        """One decision, and the outcomes that follow from it."""
        decision = decide(self.rule, self.between(self.group), facts, at(now))
        assert decision.group.next_deadline is None or decision.group.next_deadline > at(now)
        self.group = decision.group
        self.decisions.append((now, decision))
        fresh = [action for action in decision.actions if action.id not in self.ids]
        self.ids |= {action.id for action in fresh}
        return [event for action in fresh if (event := self.answer(action, now)) is not None]

    @property
    def actions(self) -> list[tuple[float, Action]]:
        return [(now, action) for now, decision in self.decisions for action in decision.actions]

    @property
    def moves(self) -> list[tuple[float, dict[str, int]]]:
        """Weights that were asked for, each once."""
        seen: dict[str, tuple[float, dict[str, int]]] = {}
        for now, action in self.actions:
            if action.type.endswith("set-weights.v1"):
                seen.setdefault(action.id, (now, dict(getattr(action, "weights", {}))))
        return list(seen.values())


def instants(given: Sequence[Event]) -> list[tuple[float, list[Fact]]]:
    """The events by the instants in which they are heard."""
    ordered = sorted(given, key=lambda event: event[0])
    return [(when, [fact for _, fact in together]) for when, together in groupby(ordered, key=lambda event: event[0])]

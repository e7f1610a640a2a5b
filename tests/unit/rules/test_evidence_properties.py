"""Against a model of a perfect reactor: outages of the bus and of the sources, with whatever happens inside them.

Time goes in steps of one second. A source that is alive looks in each of them, tells what has changed, and answers
requests; while the bus is away it goes on looking, and tells its last word when it is back; one that restarts knows
only what it has seen since. No weight may move but by what is so at that moment, and has been for its whole window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hypothesis import example, given
from hypothesis import strategies as st

from bus.messages import Fact, Health, Observation, Outcome, SetWeights
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.examples import many
from tests.unit.rules.builders import backends, failover, route, rule_set, target

T, R, STEPS, CALM = 6, 4, 60, 40
AT_ONCE = {"backoff": {"factor": 1}}  # each way back takes recoverySeconds, also soon after another
HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}
Spans = Sequence[tuple[int, int]]


def spells(least: int, most: int) -> st.SearchStrategy[Spans]:
    """Some stretches of time: begin and length."""
    span = st.tuples(st.integers(3, STEPS - 1), st.integers(least, most))
    return st.lists(span, max_size=4)


def inside(spans: Spans, now: int, *, lasting: bool = False) -> bool:
    """True if `now` is in one of the spans. From the step STEPS on all is calm, but for a `lasting` span."""
    return (now < STEPS or lasting) and any(begin <= now < begin + length for begin, length in spans)


@dataclass
class Source:
    """Looks at one service."""

    service: str
    down: Spans
    dead: Spans
    lasting: bool = False
    signal: str = "probe"
    since: int | None = None
    status: Health | None = None
    said: tuple[Health, int] | None = None
    asked: int | None = None

    @property
    def name(self) -> str:
        return f"{self.service}/{self.signal}"

    def look(self, now: int, *, bus: bool) -> list[Fact]:
        if inside(self.dead, now):
            self.since = self.status = self.said = None
            return []
        status = Health.UNHEALTHY if self.is_down(now) else Health.HEALTHY
        if status is not self.status:
            self.since, self.status = now, status
        assert self.since is not None
        news = self.said != (status, self.since) or (self.asked is not None and self.asked <= now)
        if not bus or not news:
            return []
        self.said, self.asked = (status, self.since), None
        word = Observation(
            target=target(self.service), status=status, signal=self.signal, source=self.name, observed_at=at(now),
            since=at(self.since), stale_seconds=30,
        )  # fmt: skip
        return [word]

    def been(self, now: int, *, down: bool, length: int) -> bool:
        """True if it has been down, or up, for this many seconds up to now."""
        return now >= length and all(self.is_down(then) is down for then in range(now - length, now + 1))

    def is_down(self, now: int) -> bool:
        return inside(self.down, now, lasting=self.lasting)


@dataclass
class World:
    sources: Sequence[Source]
    bus: Spans
    group_store: GroupStore = field(init=False)
    weights: dict[str, int] = field(default_factory=lambda: dict(HOME))

    def __post_init__(self) -> None:
        rule = failover(backends=backends("a", "b"), tolerationSeconds=T, recoverySeconds=R, failback=AT_ONCE)
        self.group_store = GroupStore(Routing.of(rule_set(rule)))
        self.follow(0, self.group_store.apply([route(HOME)[1]], at(0)))

    def step(self, now: int) -> None:
        bus = not inside(self.bus, now)
        facts = [word for source in self.sources for word in source.look(now, bus=bus)]
        if bus:
            # A source is not heard in the order in which things happened, nor all at once.
            for fact in facts:
                self.follow(now, self.group_store.apply([fact], at(now)))
            self.follow(now, self.group_store.fire_due(at(now)))
            for source in self.sources:  # what was asked for in this second is answered in it
                for fact in source.look(now, bus=True) if source.asked is not None else ():
                    self.follow(now, self.group_store.apply([fact], at(now)))

    def follow(self, now: int, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            for lack in decision.lacks:
                source = next((one for one in self.sources if one.name == lack.source), None)
                if source is None:  # it is still to come: there is no source to ask
                    continue
                source.asked = max(source.asked or 0, int((lack.since - at(0)).total_seconds()))
            for action in decision.actions:
                assert isinstance(action, SetWeights)
                self.judge(now, dict(action.weights), action.proven_at)
                done = Outcome(
                    action=action.id, rule=action.rule, object=action.object, status="Done", observed_at=at(now)
                )  # fmt: skip
                self.follow(now, self.group_store.apply([done], at(now)))

    def judge(self, now: int, weights: dict[str, int], proven_at: datetime | None) -> None:
        # What an act rests on is no older than five seconds, and executors ask where it is older than one.
        assert proven_at is not None
        seen = range(max(now - 5, int((proven_at - at(0)).total_seconds())), now + 1)
        a, *_, b = self.sources
        if weights == AWAY:
            assert any(a.been(then, down=True, length=T) for then in seen), f"at {now}: left a healthy one"
            assert not all(b.is_down(then) for then in seen), f"at {now}: went to a secondary that is down"
        else:
            assert weights == HOME
            assert not all(a.is_down(then) for then in seen), f"at {now}: went back to a primary that is down"
        self.weights = weights


def play(down_a: Spans, down_b: Spans, dead_a: Spans, dead_b: Spans, bus: Spans) -> World:
    world = World([Source("a", down_a, dead_a), Source("b", down_b, dead_b)], bus)
    for now in range(1, STEPS + CALM):
        world.step(now)
    return world


outages = given(spells(1, 30), spells(1, 15), spells(1, 15), spells(1, 10), spells(1, 20))


@many(300)
@outages
def test_nothing_moves_but_by_what_is_so_now_and_was_for_its_whole_window(
    down_a: Spans, down_b: Spans, dead_a: Spans, dead_b: Spans, bus: Spans
) -> None:
    assert play(down_a, down_b, dead_a, dead_b, bus).weights == HOME, "all is well for long, and traffic is away"


@many(300)
@given(st.integers(1, STEPS), spells(1, 15), spells(1, 15), spells(1, 10), spells(1, 20))
def test_what_stays_down_is_left_when_all_is_heard_again(
    begin: int, down_b: Spans, dead_a: Spans, dead_b: Spans, bus: Spans
) -> None:
    world = World([Source("a", [(begin, STEPS + CALM)], dead_a, lasting=True), Source("b", down_b, dead_b)], bus)
    for now in range(1, STEPS + T + 2):
        world.step(now)
    assert world.weights == AWAY


@many(300)
@example([(3, 5), (12, 10)], [], [(6, 20)], [], [], [])
@example([(3, 1), (32, 1)], [], [(4, 7)], [(3, 8), (17, 15)], [], [(11, 20)])
@example([(3, 21), (34, 1)], [], [], [(19, 15)], [(23, 10)], [(4, 19)])
@example([(13, 7), (22, 1)], [(19, 1)], [], [(18, 5)], [], [])
@given(spells(1, 30), spells(1, 15), spells(1, 15), spells(1, 15), spells(1, 10), spells(1, 20))
def test_what_two_sources_see_of_one_target_moves_nothing_that_one_alone_would_not(
    down_a: Spans, down_b: Spans, dead_probe: Spans, dead_ready: Spans, dead_b: Spans, bus: Spans
) -> None:
    """Either may be silent while the target recovers."""
    seen_twice = [Source("a", down_a, dead_probe), Source("a", down_a, dead_ready, signal="ready")]
    world = World([*seen_twice, Source("b", down_b, dead_b)], bus)
    for now in range(1, STEPS + CALM):
        world.step(now)
    assert world.weights == HOME, "all is well for long, and traffic is away"

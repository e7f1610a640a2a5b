"""Plays a past through rules as they would have decided, and tells what each of them would have done.

The past comes as a stream and is not kept: how long it is costs time, not memory. A rule in mode DryRun decides as it
would in Enforce. Actions are Done at once; the time that a real one takes is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from bus.messages import Fact, Mode
from rules.engine.routing import Routing
from rules.kinds.traffic import return_checks
from rules.kinds.traffic.model import TrafficFailover
from rules.limits.limiters import limits_of
from rules.loader import RuleSet
from rules.rehearsal.backtest.backtest_watch import BacktestWatch, Recorder
from rules.rehearsal.backtest.rule_story import Played
from rules.rehearsal.simulation import Emitted, Simulator, assumed_routes, at
from rules.rulefile.model import Rule

Past = Callable[[], Iterable[tuple[float, Fact]]]
"""Gives the facts from the beginning, sorted by second, each time that it is called."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A key of the rules and the values that it is given, one after the other."""

    key: str
    """`tolerationSeconds` or `recoverySeconds`."""
    values: tuple[float, ...]

    @property
    def field(self) -> str:
        """The key as the model calls it."""
        return SWEEPABLE[self.key]


SWEEPABLE: Mapping[str, str] = {"tolerationSeconds": "toleration_seconds", "recoverySeconds": "recovery_seconds"}


def backtest(rules: RuleSet, past: Iterable[tuple[float, Fact]], *, first: float, until: float) -> Played:
    """Play facts, sorted by second and from `first` on, until a second that belongs to the range."""
    needs_traffic = {rule.name: blind(rule, rules) for rule in rules.rules}
    asking = {rule.name for rule in rules.rules if asks_people(rule, rules)}
    watch = BacktestWatch(rules.rules, first, until, needs_traffic, asking)
    heard = 0

    def counted() -> Iterator[tuple[float, Fact]]:
        nonlocal heard
        for event in past:
            heard += 1
            yield event

    played = unasked(rules)
    group_store = Recorder(Routing.of(played), watch)
    for said in said_of(played.rules, counted(), first=first, until=until, group_store=group_store):
        watch.said(said)
    watch.finish()
    return Played(first, until, watch.stories, heard)


def asks_people(rule: Rule, rules: RuleSet) -> bool:
    """True if the rule asks a person to approve before it begins something."""
    guarded = any(guards.approval is not None for guards in limits_of(rule, rules.guards).own)
    return rule.mode is Mode.APPROVE or (guarded and rule.mode is Mode.ENFORCE)


def unasked(rules: RuleSet) -> RuleSet:
    """Give the rules as if each yes that they ask people for came at once: what people would say is not in the past."""
    return replace(
        rules, rules=tuple(_unasked(rule) for rule in rules.rules),
        guards=tuple(guard.model_copy(update={"approval": None}) for guard in rules.guards),
    )  # fmt: skip


def _unasked(rule: Rule) -> Rule:
    mode = Mode.ENFORCE if rule.mode is Mode.APPROVE else rule.mode
    guards = rule.guards.model_copy(update={"approval": None}) if rule.guards is not None else None
    return rule.model_copy(update={"mode": mode, "guards": guards})


def blind(rule: Rule, rules: RuleSet) -> Mapping[str, str]:
    """Give the signals of a rule that need the traffic which it moves, and why."""
    return return_checks.blind_signals(rule, rules.sources) if isinstance(rule, TrafficFailover) else {}


def said_of(
    rules: Sequence[Rule],
    past: Iterable[tuple[float, Fact]],
    *,
    first: float,
    until: float,
    group_store: Recorder,
) -> Iterator[Emitted]:
    """Give what comes out of a stream. `play` does the same with a history that it holds in its hands."""
    player = Simulator(group_store, outcomes=True)
    routes = [(first, route) for route in assumed_routes(rules, (), first)]
    for when, facts in groupby(chain(routes, past), key=lambda event: event[0]):
        if when > until:
            break
        yield from player.until(at(when))
        yield from player.take([fact for _, fact in facts], at(when))
    yield from player.until(at(until))
    yield from player.ring(at(until))


def sweep(rules: RuleSet, past: Past, wanted: Sweep, *, first: float, until: float) -> Iterator[tuple[float, Played]]:
    """Play the same past once for each value, given to every rule."""
    for value in wanted.values:
        changed = tuple(rule.model_copy(update={wanted.field: value}) for rule in rules.rules)
        yield value, backtest(replace(rules, rules=changed), past(), first=first, until=until)

"""Rehearsed: in mode DryRun a rule asks for the same first act in the same moment. After that the worlds differ,
because what is only rehearsed does not happen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from bus.messages import Action, Fact, Hold, Mode, Notify
from rules.catalog import kind_of
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.workload.model import WorkloadFailover
from rules.limits.limiters import limits_of
from rules.loader import RuleSet
from rules.rehearsal.simulation import Emitted, Simulator
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.world.checkers.promise_finding import Promise, Violation, content
from rules.rulefile.model import Rule

TimedAction = tuple[float, Action]
"""Second, and what was asked for."""


def rehearsed(
    rules: RuleSet, history: Sequence[tuple[float, Fact]], acts: Iterable[TimedAction]
) -> Iterator[tuple[Violation, float, Action]]:
    """Play the history again in mode DryRun up to the last first act, and compare."""
    live = _first(rules.rules, acts)
    alone = [rule for rule in rules.rules if rule.name in live and _alone(rule, rules, live)]
    if not alone:
        return
    until = max(live[rule.name][0] for rule in alone)
    dry = replace(rules, rules=tuple(_dry(rule) for rule in rules.rules))
    practised = _first(rules.rules, _played(dry, history, until))
    for rule in alone:
        at, act = live[rule.name]
        then, same = practised.get(rule.name, (at, None))
        wrong = f"DryRun does not ask for {act.id}" if same is None else ""
        if same is not None and (then, content(same)) != (at, content(act)):
            wrong = f"DryRun asks for {same.id} at second {then:g}, Enforce for {act.id} at {at:g}"
        yield Violation(Promise.REHEARSED, wrong), at, act


def _dry(rule: Rule) -> Rule:
    return rule.model_copy(update={"mode": Mode.DRY_RUN}) if rule.mode is Mode.ENFORCE else rule


def _first(rules: Iterable[Rule], acts: Iterable[TimedAction]) -> dict[str, TimedAction]:
    tells = {rule.name for rule in rules if kind_of(rule).tells}
    out: dict[str, TimedAction] = {}
    for at, act in acts:
        if act.rule in tells or not isinstance(act, Notify):
            out.setdefault(act.rule, (at, act))
    return out


def _alone(rule: Rule, rules: RuleSet, live: dict[str, TimedAction]) -> bool:
    """True if nothing that really happened before could have changed its first act: a grant taken, a taint put."""
    limits = limits_of(rule, rules.guards)
    if rule.mode is not Mode.ENFORCE or any(one.approval is not None for one in limits.own):
        return False
    for other in rules.rules:
        if other.name == rule.name or other.name not in live or live[other.name][0] > live[rule.name][0]:
            continue
        if limits.shared.keys() & limits_of(other, rules.guards).shared.keys():
            return False
        if isinstance(other, ClusterTaint) and isinstance(rule, WorkloadFailover):
            return False
    return True


def _played(rules: RuleSet, history: Sequence[tuple[float, Fact]], until: float) -> Iterator[TimedAction]:
    player = Simulator(GroupStore(Routing.of(rules)), outcomes=False)
    for when, together in groupby(history, key=lambda event: event[0]):
        if when > until:
            break
        yield from _asked(player.until(at_(when)))
        yield from _asked(player.take([fact for _, fact in together], at_(when)))
    yield from _asked(player.until(at_(until)))
    yield from _asked(player.ring(at_(until)))


def _asked(said: Iterable[Emitted]) -> Iterator[TimedAction]:
    return ((one.at, one.what) for one in said if not isinstance(one.what, Hold))

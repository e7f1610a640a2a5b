"""The one door. Live service, rule tests, simulation and backtest all come in here.

    observe → debounce → desire → guard → owe

The same group, facts and moment always give the same decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bus.messages import Action, Fact, Health, Mode, Observation, Outcome, Pause, Resume, Route
from rules.engine.debounce import deadline, debounce
from rules.engine.guard import guard
from rules.engine.observe import observe
from rules.engine.owe import owe, route_ref, tell
from rules.group import Group, Holding, updated
from rules.kinds import notification, traffic
from rules.kinds.wish import Wish
from rules.language.loader import LoadedRule
from rules.language.model import TrafficFailover
from rules.reasons import Held


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from the facts."""

    group: Group
    actions: tuple[Action, ...] = ()
    """To be published, after the group is stored: new ones, and owed ones whose time has come again."""
    held: Holding | None = None
    """A hold that begins now."""
    because: tuple[str, ...] = ()
    """One sentence for each member."""

    @property
    def wake_at(self) -> datetime | None:
        """When to decide again although nothing was heard."""
        return self.group.wake_at


def decide(rule: LoadedRule, group: Group, facts: Sequence[Fact], now: datetime) -> Decision:
    """Decide for one group. Facts that share an instant are one step, so that half a picture moves nothing.

    `now` must not be before the moment of the last decision; facts may be late, doubled, and in any order.
    """
    before = group
    for fact in in_order(facts, now):
        group = observe(rule, group, fact, now)
    group = debounce(rule, _in_mode(rule, group), now)
    if rule.mode is Mode.OFF:
        return Decision(replace(group, owed=(), held=None, wake_at=_wake(rule, group, None, now)))
    wish = desire(rule, group, now)
    refusal = guard(rule, group, wish) if _wants(group, wish) else None
    if refusal is not None:
        wish = Wish(held=refusal, look_again=wish.look_again)
    asked, actions = owe(rule, group, wish, now)
    if asked.step_at != group.step_at:
        # A step of a gradual return stands from now on, so only now is it known when the next one is due.
        wish = replace(wish, look_again=desire(rule, asked, now).look_again)
    group = asked
    held = _holding(group, wish, now)
    group = updated(group, held=held)
    begins = held if held is not None and not _same(before.held, held) else None
    news: list[Action] = []
    known = {owed.action.id for owed in before.owed}
    for why in [*(action for action in actions if action.id not in known), *([begins] if begins else [])]:
        group, told = tell(rule, group, why, now)
        news += told
    group = updated(group, wake_at=_wake(rule, group, wish.look_again, now))
    return Decision(group, (*actions, *news), begins, _sentences(group) if actions or begins else ())


_KINDS: Sequence[type[Fact]] = (Route, Observation, Outcome, Pause, Resume)
_WORST_FIRST = (Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY)


def in_order(facts: Sequence[Fact], now: datetime) -> Sequence[Fact]:
    """Give facts that were read together in one order, however they came: by kind, then by when they were seen.

    Of one moment the worst comes first: one signal that takes over from another leaves no gap in which all was well.
    What a signal says twice of one moment counts as it said it last.
    """
    if len(facts) < 2:
        return facts
    last: dict[object, Fact] = {}
    for number, fact in enumerate(facts):
        key = (fact.target, fact.signal, fact.observed_at) if isinstance(fact, Observation) else number
        last[key] = fact

    def place(fact: Fact) -> tuple[int, datetime, int]:
        severity = _WORST_FIRST.index(fact.status) if isinstance(fact, Observation) else 0
        return _KINDS.index(type(fact)), min(fact.observed_at, now), severity

    return sorted(last.values(), key=place)


def _in_mode(rule: LoadedRule, group: Group) -> Group:
    """What was only rehearsed has not happened: a rule that is let off the leash begins from what stands."""
    if group.mode is rule.mode:
        return group
    rehearsed = group.mode is Mode.DRY_RUN
    return replace(group, mode=rule.mode, asked=None, told=None if rehearsed else group.told)


def desire(rule: LoadedRule, group: Group, now: datetime) -> Wish:
    """Third verb: the absolute desired state, per rule kind."""
    if isinstance(rule, TrafficFailover):
        return traffic.desire(rule, group, route_ref(rule, group.object), now)
    return notification.desire(rule, group)


def _wants(group: Group, wish: Wish) -> bool:
    if wish.weights is not None:
        return traffic.uneven(group, wish.weights)
    return wish.told is not None


def _holding(group: Group, wish: Wish, now: datetime) -> Holding | None:
    reason = wish.held
    if reason is None:
        failed = next((owed.failed for owed in group.owed if owed.failed and owed.wanted), None)
        reason = (Held.ACTION_FAILED, failed) if failed else None
    if reason is None:
        return None
    if group.held is not None and group.held.reason == reason[0]:
        return group.held if group.held.detail == reason[1] else replace(group.held, detail=reason[1])
    return Holding(reason[0], reason[1], now)


def _same(before: Holding | None, held: Holding) -> bool:
    """A hold is reported once, not every time that its detail changes."""
    return before is not None and before.reason == held.reason


def _wake(rule: LoadedRule, group: Group, look_again: datetime | None, now: datetime) -> datetime | None:
    moments = [at for member in group.members.values() if (at := deadline(member, rule)) is not None]
    moments += [owed.retry_at for owed in group.owed if owed.wanted]
    if look_again is not None:
        moments.append(look_again)
    return min((at for at in moments if at > now), default=None)


def _sentences(group: Group) -> tuple[str, ...]:
    return tuple(
        f"{target} is {member.status} since {member.since.isoformat()}"
        + (f" ({member.detail})" if member.detail else "")
        for target, member in group.members.items()
    )

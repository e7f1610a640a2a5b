"""The one door. Live service, rule tests, simulation and backtest all come in here.

    observe → debounce → desire → present → guard → owe

The same group, facts and moment always give the same decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import get_args

from bus.messages import Action, AnyCommand, Claim, Fact, Health, Mode, Observation, Outcome, Verdict
from rules.catalog import kind_of
from rules.core.desired import DesiredState, cut
from rules.core.group import Group, Holding, OutboxEntry, updated
from rules.core.reader import ALWAYS, Reader
from rules.core.reasons import Held
from rules.engine.debounce import deadline, debounce, touched, window_end
from rules.engine.evidence import Lack, ended, look_again, outdated, present, silent
from rules.engine.guard import guard
from rules.engine.notifications import tell
from rules.engine.observe import NON_FAILURES, observe_all
from rules.engine.outbox import owe
from rules.engine.pauses import ended as pause_ended
from rules.limits.approvals import asked_anew
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import STEPS_MAX, Rule


@dataclass(frozen=True, slots=True)
class DecisionInput:
    """All that a decision rests on besides its rule: the same again gives the same decision."""

    before: Group
    facts: Sequence[Fact]
    now: datetime
    around: Group | None
    reader: Reader


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
    says: tuple[Fact, ...] = ()
    """Facts for other groups, to be published after the group is stored. Lost ones are said again."""
    lacks: tuple[Lack, ...] = ()
    """The looks that it waits for: their sources are to be asked, and it is decided again when they come."""
    seen: DecisionInput | None = field(default=None, compare=False, repr=False)
    """What it was decided from."""

    @property
    def wake_at(self) -> datetime | None:
        """When to decide again although nothing was heard."""
        return self.group.wake_at


def decide(
    rule: Rule, group: Group, facts: Sequence[Fact], now: datetime, around: Group | None = None,
    file_guards: Sequence[FileGuard] = (), *, known: bool = True, reader: Reader = ALWAYS,
) -> Decision:  # fmt: skip
    """Decide for one group. Facts that share an instant are one step, so that half a picture moves nothing.

    `now` must not be before the moment of the last decision; facts may be late, doubled, and in any order. `around`:
    what groups of this rule know together, where its kind has such a thing. `file_guards`: those of all rule files.
    `known`: whether all is known that came in before `now`; otherwise nothing is asked for, only taken note of, and
    the group is to be decided again as soon as it is. `reader`: who has read the facts.
    """
    before = group
    kind = kind_of(rule)
    # Before the facts, so that no command is refused for a pause that is over; after them, for one that is heard late.
    group = pause_ended(observe_all(rule, pause_ended(group, now), in_order(facts, now), now, reader), now)
    group = kind.advance(rule, debounce(rule, _in_mode(rule, group), now, before, reader), around, now)
    if rule.mode is Mode.OFF:
        return Decision(replace(group, owed=(), held=None, wake_at=_wake(rule, group, None, now, before, reader)))
    if not known:
        return Decision(replace(group, wake_at=now), says=tuple(kind.says(rule, before, group, facts, now)))
    lacks = () if group.rule.startswith("@") else tuple(ended(rule, group, now, reader))
    group, desired, actions, says, missing = _asked(rule, group, around, now, file_guards, reader)
    if desired.held is None:
        desired = replace(desired, held=silent(lacks, now))
    lacks = tuple(sorted({*lacks, *missing}))
    desired = replace(desired, look_again=_first(desired.look_again, look_again(lacks, now)))
    held = _holding(group, desired, now)
    if held is not None and held.reason == Held.AWAITING_APPROVAL and asked_anew(before, group):
        held = replace(held, since=now)  # what is shown is what is approved: another desired state is another hold
        begins: Holding | None = held
    else:
        begins = held if held is not None and not _same(before.held, held) else None
    group = updated(group, held=held)
    news: list[Action] = []
    asked = {owed.action.id for owed in before.owed}
    for why in [*(action for action in actions if action.id not in asked), *([begins] if begins else [])]:
        group, told = tell(rule, group, why, now)
        news += told
    group = updated(group, wake_at=_wake(rule, group, desired.look_again, now, before, reader))
    because = _sentences(group) if actions or begins else ()
    says = (*says, *kind.says(rule, before, group, facts, now))
    return Decision(
        group, (*actions, *news), begins, because, says, lacks, DecisionInput(before, facts, now, around, reader)
    )


def _asked(
    rule: Rule, group: Group, around: Group | None, now: datetime, file_guards: Sequence[FileGuard], reader: Reader
) -> tuple[Group, DesiredState, tuple[Action, ...], tuple[Fact, ...], tuple[Lack, ...]]:
    """Desire, agree with the present, guard, owe.

    In a dry run nobody answers: what follows from an action being done is rehearsed at once.
    """
    desire = kind_of(rule).desire
    actions: tuple[Action, ...] = ()
    says: tuple[Fact, ...] = ()
    for _ in range(ROUNDS_MAX):
        step_at = group.step_at
        desired, lacks = present(rule, group, around, desire(rule, group, around, now), now, reader)
        late = outdated(rule, group, around, desired, now, reader)
        leave = guard(rule, group, desired, now, file_guards, fresh=not late, waits=bool(lacks))
        lacks = (*lacks, *late) if leave.outdated else lacks
        group, more = owe(rule, leave.group, leave.desired, now)
        actions, says = (*actions, *more), (*says, *leave.says)
        desired = leave.desired
        if group.step_at != step_at:
            # A step of a gradual return stands from now on, so only now is it known when the next one is due.
            desired = replace(desired, look_again=desire(rule, group, around, now).look_again)
        if not more or rule.mode is not Mode.DRY_RUN:
            return group, desired, actions, says, lacks
    msg = f"{group.rule}: rehearsed actions follow one another without end on {group.object}"
    raise AssertionError(msg)


ROUNDS_MAX = 2 * STEPS_MAX
"""How many actions may follow from one another within one step of a dry run before it is an error of ours: all steps of
a gradual return do where none of them pauses."""
_COMMANDS: Sequence[type[Fact]] = get_args(AnyCommand)
_PLACES: Mapping[type[Fact], int] = {
    Observation: 1, Outcome: 2, **dict.fromkeys(_COMMANDS, 3), Claim: 4, Verdict: 5,
}  # fmt: skip
"""Inventory comes before these. Commands have one place: what people say counts in the order in which they say it."""
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
        return _PLACES.get(type(fact), 0), min(fact.observed_at, now), _within_a_moment(fact)

    return sorted(last.values(), key=place)


def _within_a_moment(fact: Fact) -> int:
    if isinstance(fact, Observation):
        return _WORST_FIRST.index(fact.status)
    return _COMMANDS.index(type(fact)) if type(fact) in _COMMANDS else 0


def _in_mode(rule: Rule, group: Group) -> Group:
    """What was only rehearsed has not happened: a rule that is let off the leash begins from what stands."""
    if group.mode is rule.mode:
        return group
    if group.mode is Mode.DRY_RUN:
        group = kind_of(rule).reset(rule, replace(group, told=None, leave=None, acted_at=None))
    return replace(group, mode=rule.mode, asked=None)


def _holding(group: Group, desired: DesiredState, now: datetime) -> Holding | None:
    reason, about = desired.held, desired.about
    if reason is None:
        owed = next((owed for owed in group.owed if owed.wanted and _has_failed(owed)), None)
        if owed is None:
            return None
        reason = (Held.ACTION_FAILED, owed.failed)
        about = owed.action.object if owed.action.object != group.object else None
    hold = Holding(reason[0], cut(reason[1]), now, about)
    return replace(hold, since=group.held.since) if group.held is not None and _same(group.held, hold) else hold


def _has_failed(owed: OutboxEntry) -> bool:
    """What goes on has not failed: nobody is told of a hold, and `reactor status` shows how far it is."""
    return bool(owed.failed) and owed.failed.partition(":")[0] not in NON_FAILURES


def _same(before: Holding | None, held: Holding) -> bool:
    """A hold is reported once, not every time that its detail changes."""
    return before is not None and (before.reason, before.about) == (held.reason, held.about)


def _wake(
    rule: Rule, group: Group, look_again: datetime | None, now: datetime, before: Group, reader: Reader
) -> datetime | None:
    members = [group.members[name] for name in touched(group, now, before)]
    moments = [
        at
        for member in members
        for at in (deadline(member, rule, reader), window_end(member, rule, reader))
        if at is not None
    ]
    if before.wake_at is not None:
        moments += [before.wake_at] if now < before.wake_at and group.rule.startswith("@") else []
    moments += [owed.retry_at for owed in group.owed if owed.wanted]
    if group.paused is not None and group.paused.until is not None:
        moments.append(group.paused.until)
    if look_again is not None:
        moments.append(look_again)
    return min((at for at in moments if at > now), default=None)


def _first(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _sentences(group: Group) -> tuple[str, ...]:
    return tuple(
        f"{target} is {member.status} since {member.since.isoformat()}"
        + (f" ({member.detail})" if member.detail else "")
        for target, member in group.members.items()
    )

"""The one door. Live service, rule tests, simulation and backtest all come in here.

    observe → debounce → desire → present → guard → owe

The same group, facts and moment always give the same decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args

from bus.messages import AcquireReply, AcquireRequest, Action, AnyCommand, Fact, Health, Mode, Observation, Outcome
from rules.core.desired import DesiredState, Evidence, cut
from rules.core.group import Group, Holding, OutboxEntry, updated
from rules.core.member import WindowRestart
from rules.core.reader import ALWAYS, Reader
from rules.core.reasons import Held
from rules.core.timers import first_of
from rules.core.values import replace
from rules.engine.deadlines import Outlook, of_members, outlook
from rules.engine.debounce import debounce, touched
from rules.engine.evidence import Lack, ended, outdated, present, requeue_at, silent, unseen
from rules.engine.guard import guard
from rules.engine.known_kinds import kind_of
from rules.engine.news import is_news
from rules.engine.notifications import notify
from rules.engine.observe import NON_FAILURES, observe_all
from rules.engine.outbox import enqueue
from rules.engine.pauses import ended as pause_ended
from rules.engine.unbroken import restarts
from rules.limits.approvals import is_asked_again
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import STEPS_MAX, Rule


@dataclass(frozen=True, slots=True)
class DecisionInput:
    """All that a decision rests on besides its rule: the same again gives the same decision."""

    before: Group
    facts: Sequence[Fact]
    now: datetime
    shared_group: Group | None
    reader: Reader


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of deciding on facts: the new group, actions and facts to publish, and the hold."""

    group: Group
    actions: tuple[Action, ...] = ()
    """To be published, after the group is stored: new ones, and owed ones whose time has come again."""
    held: Holding | None = None
    """A hold that begins now."""
    because: tuple[str, ...] = ()
    """One sentence for each member."""
    emits: tuple[Fact, ...] = ()
    """Facts for other groups, to be published after the group is stored. Lost ones are said again."""
    lacks: tuple[Lack, ...] = ()
    """The looks that it waits for: their sources are to be asked, and it is decided again when they come."""
    restarts: Mapping[str, WindowRestart] = field(default_factory=dict, compare=False, repr=False)
    """Windows that have restarted by it, by target, for the log."""
    needs: tuple[Evidence, ...] = field(default=(), compare=False, repr=False)
    """Evidence that its new actions need, for the audit record."""
    seen: DecisionInput | None = field(default=None, compare=False, repr=False)
    """Input of the decision, for the audit record."""
    news: bool = field(default=True, compare=False, repr=False)
    """True if it changed more than the dates of observations (news.py)."""


def decide(
    rule: Rule, group: Group, facts: Sequence[Fact], now: datetime, shared_group: Group | None = None,
    file_guards: Sequence[FileGuard] = (), *, known: bool = True, reader: Reader = ALWAYS, digest: str | None = None,
    position: int = 0,
) -> Decision:  # fmt: skip
    """Decide for one group. Facts that share an instant are one step, so that half a picture moves nothing.

    `now` must not be before the moment of the last decision; facts may be late, doubled, and in any order. `around`:
    what groups of this rule know together, where its kind has such a thing. `file_guards`: those of all rule files.
    `known`: whether all is known that came in before `now`; otherwise nothing is asked for, only taken note of, and
    the group is to be decided again as soon as it is. `reader`: who has read the facts; from here on, all windows of
    the rule are longer by what clocks may differ. `digest`, `position`: of the rule and the newest fact, to be kept
    with the group; without them, those that it has stay.
    """
    before, rule = group, rule.seen_with(reader.skew)
    digest, position = group.digest if digest is None else digest, max(position, group.position)
    kind = kind_of(rule)
    own = group.rule.startswith("@")
    # Before the facts, so that no command is refused for a pause that is over; after them, for one that is heard late.
    group = pause_ended(observe_all(rule, pause_ended(group, now), in_order(facts, now), now, reader), now)
    ahead = outlook(group, touched(group, now, before), rule, reader)
    group = kind.advance(rule, debounce(rule, _in_mode(rule, group), now, before, reader, ahead), shared_group, now)
    if rule.mode is Mode.OFF:
        moment = _next_deadline(rule, group, None, now, before, reader, ahead)
        group = replace(group, outbox=(), held=None, next_deadline=moment, digest=digest, position=position)
        return Decision(group, news=is_news(before, group, kind.without_dates))
    if not known:
        group = replace(group, next_deadline=now, digest=digest, position=position)
        emits = tuple(kind.emits(rule, before, group, facts, now))
        changed = is_news(before, group, kind.without_dates)
        return Decision(group, emits=emits, restarts=restarts(before, group), news=changed)
    quiet = group.members is ahead.members and ahead.is_quiet(now) and not ahead.unheard
    lacks = () if own or quiet else tuple(ended(rule, group, now, reader))
    group, desired, actions, emits, missing, needs = _asked(rule, group, shared_group, now, file_guards, reader)
    if lacks and desired.held is None:
        desired = updated(desired, held=silent(lacks, now))
    missing = (*missing, *unseen(rule, group, shared_group, desired, now, reader)) if desired.unseen else missing
    if lacks or missing:
        lacks = tuple(sorted({*lacks, *missing}))
        desired = updated(desired, requeue_at=first_of(desired.requeue_at, requeue_at(lacks, now)))
    held = _holding(group, desired, now)
    if held is not None and held.reason == Held.AWAITING_APPROVAL and is_asked_again(before, group):
        held = replace(held, since=now)  # what is shown is what is approved: another desired state is another hold
        begins: Holding | None = held
    else:
        begins = held if held is not None and not _same(before.held, held) else None
    group = updated(group, held=held)
    news: list[Action] = []
    asked = {entry.action.id for entry in before.outbox}
    for why in [*(action for action in actions if action.id not in asked), *([begins] if begins else [])]:
        group, told = notify(rule, group, why, now)
        news += told
    moment = _next_deadline(rule, group, desired.requeue_at, now, before, reader, ahead)
    group = updated(group, next_deadline=moment, digest=digest, position=position)
    because = _sentences(group) if actions or begins else ()
    emits = (*emits, *kind.emits(rule, before, group, facts, now))
    seen = DecisionInput(before, facts, now, shared_group, reader)
    changed = is_news(before, group, kind.without_dates)
    restarted = restarts(before, group)
    return Decision(group, (*actions, *news), begins, because, emits, lacks, restarted, needs, seen, changed)


def _asked(
    rule: Rule,
    group: Group,
    shared_group: Group | None,
    now: datetime,
    file_guards: Sequence[FileGuard],
    reader: Reader,
) -> tuple[Group, DesiredState, tuple[Action, ...], tuple[Fact, ...], tuple[Lack, ...], tuple[Evidence, ...]]:
    """Desire, agree with the present, guard, owe.

    In a dry run there is no outcome: what follows from an action being done is rehearsed at once.
    """
    desire = kind_of(rule).desire
    actions: tuple[Action, ...] = ()
    emits: tuple[Fact, ...] = ()
    needs: tuple[Evidence, ...] = ()
    for _ in range(CASCADE_MAX):
        earlier = group
        desired, lacks = present(rule, group, shared_group, desire(rule, group, shared_group, now), now, reader)
        late = outdated(rule, group, shared_group, desired, now, reader)
        answer = guard(rule, group, desired, now, file_guards, fresh=not late, waits=bool(lacks))
        lacks = (*lacks, *late) if answer.outdated else lacks
        group, more = enqueue(rule, answer.group, answer.desired, now)
        actions, emits = (*actions, *more), (*emits, *answer.emits)
        desired = answer.desired
        needs = (*needs, *(need for act in desired.acts if more for need in act.needs))
        if kind_of(rule).reschedules(earlier, group):
            desired = replace(desired, requeue_at=desire(rule, group, shared_group, now).requeue_at)
        if not more or rule.mode is not Mode.DRY_RUN:
            return group, desired, actions, emits, lacks, needs
    msg = f"{group.rule}: rehearsed actions follow one another without end on {group.object}"
    raise AssertionError(msg)


CASCADE_MAX = 2 * STEPS_MAX
"""Largest number of actions that may follow from one another in one step of a dry run: all steps of a gradual return
without pauses. More is a programming error."""
_COMMANDS: Sequence[type[Fact]] = get_args(AnyCommand)
FACT_ORDER: Mapping[type[Fact], int] = {
    Observation: 1, Outcome: 2, **dict.fromkeys(_COMMANDS, 3), AcquireRequest: 4, AcquireReply: 5,
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
        return FACT_ORDER.get(type(fact), 0), min(fact.observed_at, now), _within_a_moment(fact)

    return sorted(last.values(), key=place)


def _within_a_moment(fact: Fact) -> int:
    if isinstance(fact, Observation):
        return _WORST_FIRST.index(fact.status)
    return _COMMANDS.index(type(fact)) if type(fact) in _COMMANDS else 0


def _in_mode(rule: Rule, group: Group) -> Group:
    """Apply the rule's current mode: leaving DryRun resets what was only rehearsed, so the rule begins from the real
    state."""
    if group.mode is rule.mode:
        return group
    if group.mode is Mode.DRY_RUN:
        group = kind_of(rule).reset(rule, replace(group, grants=None, acted_at=None))
    return replace(group, mode=rule.mode)


def _holding(group: Group, desired: DesiredState, now: datetime) -> Holding | None:
    reason, about = desired.held, desired.about
    if reason is None:
        entry = next((entry for entry in group.outbox if entry.wanted and _has_failed(entry)), None)
        if entry is None:
            return None
        reason = (Held.ACTION_FAILED, entry.failed)
        about = entry.action.object if entry.action.object != group.object else None
    hold = Holding(reason[0], cut(reason[1]), now, about)
    return replace(hold, since=group.held.since) if group.held is not None and _same(group.held, hold) else hold


def _has_failed(entry: OutboxEntry) -> bool:
    """True if the last try failed. An action still in progress has not failed: no notification of a hold, and `reactor
    status` shows its progress."""
    return bool(entry.failed) and entry.failed.partition(":")[0] not in NON_FAILURES


def _same(before: Holding | None, held: Holding) -> bool:
    """A hold is reported once, not every time that its detail changes."""
    return before is not None and (before.reason, before.about) == (held.reason, held.about)


def _next_deadline(
    rule: Rule, group: Group, requeue_at: datetime | None, now: datetime, before: Group, reader: Reader, ahead: Outlook
) -> datetime | None:
    if group.members is ahead.members and ahead.is_quiet(now):
        moments = [at for at in (ahead.deadline, ahead.window_end) if at is not None]
    else:
        moments = [
            at
            for _, _, one in of_members(group, touched(group, now, before), rule, reader)
            for at in (one.deadline, one.window_end)
            if at is not None
        ]
    if before.next_deadline is not None:
        moments += [before.next_deadline] if now < before.next_deadline and group.rule.startswith("@") else []
    moments += [entry.retry_at for entry in group.outbox if entry.wanted]
    if group.paused is not None and group.paused.until is not None:
        moments.append(group.paused.until)
    if requeue_at is not None:
        moments.append(requeue_at)
    return min((at for at in moments if at > now), default=None)


def _sentences(group: Group) -> tuple[str, ...]:
    return tuple(
        f"{target} is {member.status.value} since {member.since.isoformat()}"
        + (f" ({member.detail})" if member.detail else "")
        + (f", {member.restart.words}" if member.restart is not None else "")
        for target, member in group.members.items()
    )

"""A guard as an actor: the limits that several groups share, kept in one group that they all ask.

A claim waits in the queue, is granted with a slot and a token, and keeps its slot until the group gives it back. The
go-ahead of one that has not been used yet is suspended while too many peers are bad; its slot and token stay its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from bus.messages import Claim, Cluster, Fact, Health, Mode, Observation, Verdict
from rules.core.desired import Wish
from rules.core.expiry import forget, next_end
from rules.core.group import Group, updated
from rules.core.reasons import Held
from rules.limits.admission_queue import answered, queued
from rules.limits.rates import Bucket, Census, rate
from rules.limits.state import BudgetState, Claimed, Listed
from rules.rulefile.guards import Guards
from rules.rulefile.model import Rule
from rules.rulefile.targets import encode_segment, matches

FORGOTTEN = timedelta(minutes=10)
"""A claim that its group has not said again for so long is dropped: the group is no more."""


class BudgetRule(Rule):
    """A guard in the form of a rule. Nobody writes it: it follows from the guards in rule files."""

    name: str
    """`@` and the guard's name."""
    mode: Mode = Mode.ENFORCE
    guards: Guards
    guarded: tuple[str, ...]
    """The rules whose groups ask it."""
    peers: tuple[str, ...] = ()
    """Patterns of the targets that it counts; none: it counts nobody."""
    at_least: int = 0
    """With fewer peers than this, bad peers are no reason to hold."""

    @property
    def guard(self) -> str:
        """The name that claims and verdicts carry."""
        return self.name.removeprefix("@")


def objects(rule: BudgetRule, fact: Fact) -> Iterable[str]:
    """The one group there is, where the fact concerns it."""
    match fact:
        case Claim():
            concerned = fact.guard == rule.guard and fact.rule in rule.guarded
        case Observation():
            concerned = _is_peer(rule, fact.target)
        case Cluster():
            concerned = _is_peer(rule, _target(fact))
        case _:
            concerned = False
    return ("*",) if concerned else ()


def covers(_rule: BudgetRule, object_: str) -> bool:
    """Whether the guard has this group."""
    return object_ == "*"


def observe(_rule: BudgetRule, group: Group, fact: Fact, now: datetime) -> Group:
    """Fold a claim or a cluster of the inventory in."""
    state = group.budget or BudgetState()
    if isinstance(fact, Claim):
        return replace(group, budget=replace(state, inbox=(*state.inbox, fact)))
    if isinstance(fact, Cluster):
        target, at = _target(fact), min(fact.observed_at, now)
        known = state.listed.get(target)
        if known is None or known.observed_at < at:
            listed = dict(sorted({**state.listed, target: Listed(fact.exists, at)}.items()))
            return replace(group, budget=replace(state, listed=listed))
    return group


def advance(rule: BudgetRule, group: Group, _around: Group | None, now: datetime) -> Group:
    """Forget who is silent, fill the bucket, and answer all claims in the order of the queue."""
    state = group.budget or BudgetState()
    group = forget(group, now, _listed(state))
    peers = census(rule, group)
    speed = rate(rule.guards, peers)
    bucket = Bucket(state.tokens, state.tokens_at)
    filled = bucket.filled(state.rate, now)
    if filled.at is None or speed != state.rate:
        bucket = filled  # else it stays as it was written down: looking at it more often changes nothing
    queue = queued(state.claims, state.inbox, now) if state.inbox else state.claims
    alive = [one for one in queue if now < one.said_at + FORGOTTEN]
    claims, bucket = answered(rule.guards, peers, alive, bucket, now)
    state = updated(state, claims=claims, inbox=(), tokens=bucket.tokens, tokens_at=bucket.at, rate=speed)
    return updated(group, budget=state)


def census(rule: BudgetRule, group: Group) -> Census:
    """Count the peers: those heard of, and those that only the inventory knows, which are not bad.

    Too few for `at_least` count as none, so that a limit on bad ones means nothing.
    """
    listed = (group.budget or BudgetState()).listed
    total = bad = 0
    for target, member in group.members.items():
        if _is_peer(rule, target) and (target not in listed or listed[target].exists):
            total += 1
            bad += member.status is not Health.HEALTHY
    for target, one in listed.items():
        total += one.exists and target not in group.members and _is_peer(rule, target)
    return Census(total, bad) if total >= rule.at_least else Census(0, 0)


def _listed(state: BudgetState) -> Callable[[str], bool]:
    """Who is not forgotten, however silent: what the inventory says exists is Unknown, and counts as bad."""
    return lambda target: target in state.listed and state.listed[target].exists


def desire(_rule: BudgetRule, group: Group, _around: Group | None, now: datetime) -> Wish:
    """Give when to look again: when the next token is due, or somebody is to be forgotten."""
    state = group.budget or BudgetState()
    moments = [one.said_at + FORGOTTEN for one in state.claims]
    moments += [end] if (end := next_end(group, now, _listed(state))) is not None else []
    if any(one.wanted and one.reason in (Held.RATE_LIMITED, Held.DISRUPTED) for one in state.claims):
        due = Bucket(state.tokens, state.tokens_at).due(state.rate)
        moments += [due] if due is not None else []
    return Wish(look_again=min(moments, default=None))


def says(rule: BudgetRule, before: Group, after: Group, facts: Sequence[Fact], now: datetime) -> tuple[Fact, ...]:
    """Give the answers: to whoever asks, also again, and to those whose answer has changed."""
    asking = {(fact.rule, fact.object) for fact in facts if isinstance(fact, Claim)}
    known = {one.key: one for one in (before.budget or BudgetState()).claims}
    claims = [one for one in (after.budget or BudgetState()).claims if one.wanted]
    return tuple(
        Verdict(
            guard=rule.guard, rule=one.rule, object=one.object, generation=one.generation, granted=one.granted,
            reason=one.reason, detail=one.detail, observed_at=now,
        )
        for one in claims
        if one.key in asking or _answer(one) != _answer(known.get(one.key))
    )  # fmt: skip


def _answer(claim: Claimed | None) -> tuple[int, bool, str] | None:
    return (claim.generation, claim.granted, claim.reason) if claim is not None else None


def _is_peer(rule: BudgetRule, target: str) -> bool:
    return _matches(rule.peers, target)


@lru_cache(maxsize=100_000)
def _matches(patterns: tuple[str, ...], target: str) -> bool:
    # Asked for every peer at every look; matching again each time took half of all time.
    return any(matches(pattern, target) for pattern in patterns)


def _target(fact: Cluster) -> str:
    return f"cluster/{encode_segment(fact.name)}"

"""A guard as an actor: the limits that several groups share, kept in one group that they all ask.

A request waits in the queue, is granted with a slot and a token, and keeps its slot until the group gives it back. The
go-ahead of one that has not been used yet is suspended while too many peers are bad; its slot and token stay its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from pydantic import PrivateAttr

from bus.messages import AcquireReply, AcquireRequest, Cluster, Fact, Health, Mode, Observation
from rules.core.desired import DesiredState
from rules.core.expiry import forget, next_end
from rules.core.group import updated
from rules.core.index import Index, pattern_of
from rules.core.interests import Interest, listed, observed
from rules.core.reasons import Held
from rules.core.values import replace
from rules.limits.admission_queue import answered, queued
from rules.limits.rates import PeerHealth, RateBucket, rate
from rules.limits.state import LimiterGroup, LimiterState, Listed, QueuedRequest
from rules.rulefile.guards import Guards
from rules.rulefile.model import Rule
from rules.rulefile.targets import encode_segment, matches

FORGOTTEN = timedelta(minutes=10)
"""A request that its group has not said again for so long is dropped: the group is no more."""
PEERS_MAX = 100_000
"""Of how many targets it is kept whether they are peers."""


class LimiterRule(Rule):
    """A guard in the form of a rule. No file has it: it follows from the guards in rule files."""

    name: str
    """`@` and the guard's name."""
    mode: Mode = Mode.ENFORCE
    guards: Guards
    guarded: tuple[str, ...]
    """The rules whose groups ask it."""
    peers: tuple[str, ...] = ()
    """Patterns of the targets that it counts; empty: it counts none."""
    at_least: int = 0
    """With fewer peers than this, bad peers are no reason to hold."""

    _index: Index[str] = PrivateAttr(default_factory=Index)
    _guarded: frozenset[str] = PrivateAttr(default=frozenset())
    _is_peer: dict[str, bool] = PrivateAttr(default_factory=dict)
    """Asked for every peer at every look; matching again each time took half of all time."""

    def model_post_init(self, _context: object) -> None:
        """Know its peers by an index: a guard of many rules may have a pattern for each."""
        self._index = Index((pattern_of(pattern), pattern) for pattern in self.peers)
        self._guarded = frozenset(self.guarded)

    def is_peer(self, target: str) -> bool:
        """True if the target is one of the peers that the guard counts."""
        known = self._is_peer.get(target)
        if known is None:
            if len(self._is_peer) >= PEERS_MAX:
                self._is_peer.clear()
            known = any(matches(pattern, target) for pattern in self._index.find(target.split("/")))
            self._is_peer[target] = known
        return known

    def is_asked_by(self, rule: str) -> bool:
        """True if this rule's groups ask the guard."""
        return rule in self._guarded

    @property
    def default_peers(self) -> tuple[str, ...]:
        """Empty: a limiter is a guard and has none itself."""
        return ()

    @property
    def guard(self) -> str:
        """The name that requests and replies carry."""
        return self.name.removeprefix("@")


def interests(rule: LimiterRule) -> Iterable[Interest]:
    """Requests, and how the peers are."""
    yield Interest(("AcquireRequest", rule.guard))
    for pattern in rule.peers:
        yield Interest(observed(pattern))
        yield Interest(listed(pattern))


def objects(rule: LimiterRule, fact: Fact) -> Iterable[str]:
    """The one group there is, where the fact concerns it."""
    match fact:
        case AcquireRequest():
            concerned = fact.guard == rule.guard and rule.is_asked_by(fact.rule)
        case Observation():
            concerned = rule.is_peer(fact.target)
        case Cluster():
            concerned = rule.is_peer(_target(fact))
        case _:
            concerned = False
    return ("*",) if concerned else ()


def covers(_rule: LimiterRule, object_: str) -> bool:
    """True for the limiter's only group, `*`."""
    return object_ == "*"


def observe(_rule: LimiterRule, group: LimiterGroup, fact: Fact, now: datetime) -> LimiterGroup:
    """Fold a request or a cluster of the inventory in."""
    state = group.state
    if isinstance(fact, AcquireRequest):
        return replace(group, state=replace(state, inbox=(*state.inbox, fact)))
    if isinstance(fact, Cluster):
        target, at = _target(fact), min(fact.observed_at, now)
        known = state.listed.get(target)
        if known is None or known.observed_at < at:
            listed = dict(sorted({**state.listed, target: Listed(fact.exists, at)}.items()))
            return replace(group, state=replace(state, listed=listed))
    return group


def advance(rule: LimiterRule, group: LimiterGroup, _shared_group: LimiterGroup | None, now: datetime) -> LimiterGroup:
    """Forget who is silent, fill the bucket, and answer all requests in the order of the queue."""
    state = group.state
    group = forget(group, now, _listed(state))
    peers = peer_health(rule, group)
    speed = rate(rule.guards, peers)
    bucket = RateBucket(state.tokens, state.tokens_at)
    filled = bucket.filled(state.rate, now)
    if filled.at is None or speed != state.rate:
        bucket = filled  # else it stays as it was written down: looking at it more often changes nothing
    queue = queued(state.queue, state.inbox, now) if state.inbox else state.queue
    alive = [one for one in queue if now < one.said_at + FORGOTTEN]
    requests, bucket = answered(rule.guards, peers, alive, bucket, now)
    state = updated(state, queue=requests, inbox=(), tokens=bucket.tokens, tokens_at=bucket.at, rate=speed)
    return updated(group, state=state)


def peer_health(rule: LimiterRule, group: LimiterGroup) -> PeerHealth:
    """Count the peers: those observed, and those that only the inventory knows, which are not bad.

    Too few for `at_least` count as none, so that a limit on bad ones means nothing.
    """
    listed = group.state.listed
    total = bad = 0
    for target, member in group.members.items():
        if rule.is_peer(target) and (target not in listed or listed[target].exists):
            total += 1
            bad += member.status is not Health.HEALTHY
    for target, one in listed.items():
        total += one.exists and target not in group.members and rule.is_peer(target)
    return PeerHealth(total, bad) if total >= rule.at_least else PeerHealth(0, 0)


def _listed(state: LimiterState) -> Callable[[str], bool]:
    """Predicate of peers that are kept, however silent: the inventory lists them, so they are Unknown and
    count as bad."""
    return lambda target: target in state.listed and state.listed[target].exists


def desire(_rule: LimiterRule, group: LimiterGroup, _shared_group: LimiterGroup | None, now: datetime) -> DesiredState:
    """Give when to look again: when the next token is due, or a group is to be forgotten."""
    state = group.state
    moments = [one.said_at + FORGOTTEN for one in state.queue]
    moments += [end] if (end := next_end(group, now, _listed(state))) is not None else []
    if any(one.wanted and one.reason in (Held.RATE_LIMITED, Held.DISRUPTED) for one in state.queue):
        due = RateBucket(state.tokens, state.tokens_at).due(state.rate)
        moments += [due] if due is not None else []
    return DesiredState(requeue_at=min(moments, default=None))


def emits(
    rule: LimiterRule, before: LimiterGroup, after: LimiterGroup, facts: Sequence[Fact], now: datetime
) -> tuple[Fact, ...]:
    """Give the replies: to each group that asks, also again, and to those whose reply has changed."""
    asking = {(fact.rule, fact.object) for fact in facts if isinstance(fact, AcquireRequest)}
    known = {one.key: one for one in before.state.queue}
    requests = [one for one in after.state.queue if one.wanted]
    return tuple(
        AcquireReply(
            guard=rule.guard, rule=one.rule, object=one.object, generation=one.generation, granted=one.granted,
            reason=one.reason, detail=one.detail, observed_at=now,
        )
        for one in requests
        if one.key in asking or _reply(one) != _reply(known.get(one.key))
    )  # fmt: skip


def _reply(request: QueuedRequest | None) -> tuple[int, bool, str] | None:
    return (request.generation, request.granted, request.reason) if request is not None else None


def _target(fact: Cluster) -> str:
    return f"cluster/{encode_segment(fact.name)}"

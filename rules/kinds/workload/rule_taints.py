"""Taints that ClusterTaint rules have put on clusters, and what these say of why.

A taint is on for some moments longer than its rule wants it, and after an outage of the bus for longer than that: until
the rule has heard that its cause is over, and the taint is taken off. Nothing leaves for such a taint (decision 35).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from bus.messages import ClusterTaints, Health, Taint
from rules.core.member import LONG_AGO, Member, Signal
from rules.kinds.workload.state import ClusterState

FRESH = timedelta(seconds=5)
"""Greatest age of a word beside another look that an act rests on."""


def as_seen(fact: ClusterTaints) -> Member | None:
    """Give the cluster as the rule that says this knows it; None: it says nothing of that."""
    if fact.health is None or not fact.taints:
        return None
    signals = {
        look.signal: Signal(fact.health, look.until or fact.observed_at, source=look.source, valid_until=look.until)
        for look in fact.looks
    }
    return Member(fact.health, fact.observed_at, signals=signals)


def still_listed(state: ClusterState, rule: str, taints: Sequence[Taint], at: datetime) -> tuple[Taint, ...]:
    """Give the taints of an inventory that is older than this word of a rule, without those that it has taken off.

    Karmada's objects show the time that the rule says: a taint of another time is another writer's.
    """
    if state.observed_at is None or state.observed_at > at:
        return state.taints
    kept = {(one.key, one.effect) for one in taints}
    off = [one for one in state.by_rule.get(rule, ()) if (one.key, one.effect) not in kept]
    return tuple(one for one in state.taints if not any(_is_same(one, other) for other in off))


def lasting(state: ClusterState) -> Iterator[Taint]:
    """Give all taints but those that none of the rules that have put them on wants any more."""
    for taint in state.taints:
        owners = [*_owners(state, taint)]
        if not owners or any(_is_wanted(state, name) for name in owners):
            yield taint
    for name, taints in state.by_rule.items():
        yield from taints if _is_wanted(state, name) else ()


def word_for(
    cluster: ClusterState, others: Sequence[Taint], leaves_at: Callable[[Iterable[Taint]], datetime | None],
    now: datetime,
) -> Member | None:  # fmt: skip
    """Give what the rule says by whose taint a workload has to leave now. None: no rule's word is needed.

    `others`: the taints by which the cluster is left, without those of its own health. Where the time of one is over
    that no rule has put there, or one that does not say what it uses, it is left for that. Of several rules the one
    counts that has seen it last.
    """
    over = [taint for taint in others if (at := leaves_at([taint])) is not None and at <= now]
    owners = [[*_owners(cluster, taint)] for taint in over]
    if any(not names or any(name not in cluster.seen_by_rule for name in names) for names in owners):
        return None
    words = [cluster.seen_by_rule[name] for names in owners for name in names]
    return max(words, key=_seen_until, default=None)


def is_fresh(word: Member, at: datetime, now: datetime) -> bool:
    """True if the word reaches to the end of a toleration, and nearly to this moment."""
    return word.status is Health.UNHEALTHY and _seen_until(word)[1] >= max(at, now - FRESH)


def _owners(state: ClusterState, taint: Taint) -> Iterator[str]:
    """Rules that have put on a taint of this key and effect."""
    for name, taints in state.by_rule.items():
        if any((one.key, one.effect) == (taint.key, taint.effect) for one in taints):
            yield name


def _is_same(one: Taint, other: Taint) -> bool:
    if (one.key, one.effect) != (other.key, other.effect) or one.time_added is None or other.time_added is None:
        return False
    return abs(one.time_added - other.time_added) <= timedelta(seconds=1)  # objects show whole seconds


def _is_wanted(state: ClusterState, name: str) -> bool:
    seen = state.seen_by_rule.get(name)
    return seen is None or seen.status is not Health.HEALTHY


def _seen_until(seen: Member) -> tuple[bool, datetime]:
    return seen.status is Health.UNHEALTHY, max((one.lasts_until for one in seen.signals.values()), default=LONG_AGO)

"""The queue of a shared guard: whose turn it is, and what the others are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bus.messages import AcquireRequest
from rules.core.group import updated
from rules.core.reasons import Held
from rules.core.values import replace
from rules.limits.rates import DisruptionBudget, PeerHealth, RateBucket, disrupted, rate, widespread
from rules.limits.state import QueuedRequest
from rules.rulefile.guards import Guards

HoldReason = tuple[Held, str]


def queued(
    requests: Iterable[QueuedRequest], facts: Iterable[AcquireRequest], now: datetime
) -> tuple[QueuedRequest, ...]:
    """Give the requests with what groups say of their own folded in, in the order in which they are served.

    All that was read together at once: ten thousand workloads may ask in the same moment.
    """
    known = {one.key: one for one in requests}
    for fact in facts:
        known[fact.rule, fact.object] = _said(known.get((fact.rule, fact.object)), fact, min(fact.observed_at, now))
    return tuple(sorted(known.values(), key=lambda one: (one.since, one.key)))


def _said(known: QueuedRequest | None, fact: AcquireRequest, at: datetime) -> QueuedRequest:
    new = QueuedRequest(fact.rule, fact.object, fact.generation, at, at, wanted=fact.wanted)
    if known is None:
        return new
    # Of one moment the newer generation counts, and that a request is given back counts more than that it is made.
    if (at, fact.generation, not fact.wanted) <= (known.said_at, known.generation, not known.wanted):
        return known  # late, or the same again
    if not (known.wanted and fact.wanted):
        return new
    if known.generation == fact.generation:
        return replace(known, said_at=at, reason="")  # it is answered again
    # It goes on: with its slot while that is in use, else in its place in the queue.
    return replace(new, since=at if known.paid else known.since, slot=known.slot)


def answered(
    guards: Guards, peers: PeerHealth, requests: Sequence[QueuedRequest], bucket: RateBucket, now: datetime
) -> tuple[tuple[QueuedRequest, ...], RateBucket]:
    """Give the requests with their answers, and what is left in the bucket."""
    speed, gate = rate(guards, peers), _gate(guards, peers)
    out: list[QueuedRequest] = []
    flying = [one for one in requests if one.slot]
    waiting = 0
    for one in requests:
        refusal = None
        if one.wanted:
            refusal = gate or (None if one.paid else _refusal(guards, peers, one, flying, bucket, waiting))
        if one.wanted and refusal is None and not one.paid:
            flying += [] if one.slot else [one]
            bucket = bucket.taken(now).filled(speed, now)
            one = replace(one, slot=True, paid=True)
        waiting += refusal is not None and not one.paid
        reason, detail = refusal or ("", "")
        if reason and reason == one.reason and not one.granted:
            # A group learns its new place in the queue when it asks again: ten thousand are not written again.
            out.append(one)
        else:
            out.append(updated(one, granted=one.wanted and refusal is None, reason=reason, detail=detail))
    return tuple(out), bucket


def _gate(guards: Guards, peers: PeerHealth) -> HoldReason | None:
    """Reason why no group may act, not even admitted ones that have not acted yet; None: they may."""
    if (reason := widespread(guards, peers)) is not None:
        return reason
    if rate(guards, peers) == 0:
        return Held.DISRUPTED, f"{_disruption(guards, peers)}: nothing is done"
    return None


def _refusal(
    guards: Guards,
    peers: PeerHealth,
    request: QueuedRequest,
    flying: Sequence[QueuedRequest],
    bucket: RateBucket,
    waiting: int,
) -> HoldReason | None:
    """Reason why this request has to wait; None: it may be granted."""
    most = guards.max_concurrent
    if most is not None and not request.slot and len(flying) >= most:
        who = ", ".join(f"{one.rule} on {one.object}" for one in flying[:3])
        return Held.MAX_CONCURRENT, f"{len(flying)} of {most} in flight: {who}{', …' if flying[3:] else ''}"
    if bucket.at is None:
        return None
    pace = f"{rate(guards, peers):g} per second, {waiting} waiting before it"
    if disrupted(guards, peers) is not DisruptionBudget.NORMAL:
        return Held.DISRUPTED, f"{_disruption(guards, peers)}: {pace}"
    return Held.RATE_LIMITED, pace


def _disruption(guards: Guards, peers: PeerHealth) -> str:
    return f"{disrupted(guards, peers)}, {peers.bad} of {peers.total} peers are bad"

"""The part of a route's traffic that each tier and each backend gets, by how much of them is healthy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bus.messages import Health
from rules.core.member import Member, Signal
from rules.core.values import replace
from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic.apportion import apportion
from rules.kinds.traffic.backends import BackendView, serving, shares_of
from rules.kinds.traffic.failback import Way
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import TrafficGroup
from rules.rulefile.model import UnknownAs


def loads(health: Sequence[float], factor: int, first_at_most: int = 100) -> list[int] | None:
    """Give what each tier gets of 100, by its healthy percent; `factor` in percent.

    `first_at_most`: what the first tier does not get beyond, the others have among themselves. None: who could get it
    bears nothing.
    """
    bears = [min(100, int(factor * percent // 100)) for percent in health]
    if not any(bears):
        return None
    out = _shared(100, bears)
    if out[0] <= first_at_most:
        return out
    return [first_at_most, *_shared(100 - first_at_most, bears[1:])] if any(bears[1:]) else None


def _shared(load: int, bears: Sequence[int]) -> list[int]:
    if sum(bears) < load:
        return apportion(load, bears)
    left, out = load, []
    for most in bears:
        out.append(min(left, most))
        left -= out[-1]
    return out


def healthy_percent(rule: TrafficFailover, backend: BackendView) -> float | None:
    """Give how much of a backend is healthy by the worst of its signals: what each says, else 100 or 0 by its status.

    Who does not know now counts with what it said last, and by then the backend is no better than it was settled; one
    that does not serve and of which a signal does not know gets nothing. None: it was never known.
    """
    member = backend.member
    if backend.assumed is not None:
        return 100.0 if backend.assumed else 0.0
    if member is None:
        return None
    signals = [signal for name, signal in member.signals.items() if rule.signals is None or name in rule.signals]
    unseen = member.status is Health.UNKNOWN or any(
        signal.status is Health.UNKNOWN and not _is_replaced(rule, member, signal) for signal in signals
    )
    if not backend.weight and (backend.waits_until is not None or unseen):
        return None if member.settled is None else 0.0
    said = [_said(rule, member, signal) for signal in signals]
    if not said or any(signal.status is Health.UNKNOWN for signal in signals):
        said.append(None if member.settled is None else 100.0 * member.settled)
    return min((percent for percent in said if percent is not None), default=None)


def _said(rule: TrafficFailover, member: Member, signal: Signal) -> float | None:
    if signal.status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.UNHEALTHY:
        return 0.0
    if _is_replaced(rule, member, signal):
        return _by_way_back(rule, member)
    if signal.healthy_percent is not None or signal.status is Health.UNKNOWN:
        return signal.healthy_percent
    return 100.0 if signal.status is Health.HEALTHY else 0.0


def way_of(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> Way | None:
    """Give how far a primary that is away is on its way back by signals of its own; None: it is not, or has no such."""
    flap = traffic_failback.is_away(group, primary.service)
    if flap is None or rule.failback.signals is None:
        return None
    # A backend that no other waits for does not wait for having failed again.
    flap = flap if serving(secondaries) else replace(flap, failures=0)
    return traffic_failback.way_back(rule, primary, flap, now)


def _is_replaced(rule: TrafficFailover, member: Member, signal: Signal) -> bool:
    """True if the signal fell silent without traffic, and the signals of the way back have found the backend healthy
    since."""
    since = member.settled_at if member.settled else None
    if rule.failback.signals is None or since is None or signal.status is not Health.UNKNOWN:
        return False
    healthy = {name for name, one in member.signals.items() if one.status is Health.HEALTHY}
    return signal.observed_at < since and healthy.issuperset(rule.failback.signals)


def wanted(
    rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView], standing: Mapping[str, int],
    way: Way | None,
) -> dict[str, int] | None:  # fmt: skip
    """Give each backend's percent as the health is at this moment; None: none bears anything.

    `standing`: the weights now. The primary gets no more than its part of them by itself where it comes back by hand
    alone, or is away and `way` is not due yet; once that is due, its signals say how much of the primary is healthy.
    """
    if rule.overflow is None:
        return None
    tiers = [[primary], *([one for one in secondaries if one.tier == tier] for tier in _tiers(secondaries))]
    health = {one.service: healthy_percent(rule, one) or 0.0 for tier in tiers for one in tier}
    waits = rule.failback.mode is FailbackMode.MANUAL or (way is not None and not way.due)
    if way is not None and way.due:
        health[primary.service] = _by_way_back(rule, primary.member)
    most = int(in_percent({one: standing.get(one, 0) for one in health})[primary.service]) if waits else 100
    shared = loads([_of_tier(tier, health) for tier in tiers], rule.overflow.overprovisioning_factor, most)
    if shared is None:
        return None
    out = dict.fromkeys(health, 0)
    for tier, load in zip(tiers, shared, strict=True):
        bearing = [one for one in tier if health[one.service]]
        parts = apportion(load, [*shares_of(rule, bearing).values()])
        out |= {one.service: part for one, part in zip(bearing, parts, strict=True)}
    return out


def _by_way_back(rule: TrafficFailover, member: Member | None) -> float:
    """Healthy percent of a backend by the signals of the way back, where the others are silent without traffic."""
    signals = member.signals if member is not None else {}
    percents = [signals[name].healthy_percent for name in rule.failback.signals or () if name in signals]
    return min((percent for percent in percents if percent is not None), default=100.0)


def _tiers(secondaries: Sequence[BackendView]) -> list[int]:
    return sorted({one.tier for one in secondaries})


def _of_tier(tier: Sequence[BackendView], health: Mapping[str, float]) -> float:
    shares = [one.share or 1 for one in tier]
    return sum(health[one.service] * share for one, share in zip(tier, shares, strict=True)) / sum(shares)


def in_percent(weights: Mapping[str, int]) -> dict[str, float]:
    """Give each one's share of all weights, in percent."""
    whole = sum(weights.values())
    return {service: 100 * weight / whole if whole else 0.0 for service, weight in weights.items()}

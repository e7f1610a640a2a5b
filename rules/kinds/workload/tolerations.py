"""Taints and tolerations of clusters: who may come, who has to leave, and when.

Karmada's way (pkg/util/helper/taint.go): of each taint's matching tolerations the first one is used, and the earliest
moment of all that are used counts. But where that one ends, the shortest of those that match counts and not the first:
the order of a list should not say how long a dead cluster is tolerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from bus.messages import Health, Taint
from rules.kinds.workload.placement import Toleration

NOT_READY, UNREACHABLE = "cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable"
WindowOf = Callable[[float], timedelta]
"""`Rule.window`."""
AT_ONCE = datetime.min.replace(tzinfo=UTC)
DEFAULT_SECONDS = 300  # as Kubernetes' DefaultTolerationSeconds, and Karmada's webhook up to 1.14


def system_taint(ready: Health | None) -> str | None:
    """Give the key of the taint that a cluster gets by its own health. None, not known yet, is not ready."""
    if ready is Health.HEALTHY:
        return None
    return UNREACHABLE if ready is Health.UNKNOWN else NOT_READY


def with_defaults(tolerations: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """Add the two default tolerations, each where nothing here is about its key."""
    missing = [
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=DEFAULT_SECONDS)
        for key in (NOT_READY, UNREACHABLE)
        if not any(one.key in ("", key) and one.effect in ("", "NoExecute") for one in tolerations)
    ]
    return (*tolerations, *missing)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """True if the toleration matches the taint. An empty key or effect matches any, an empty operator is Equal."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def used(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> tuple[Toleration, ...] | None:
    """Give the first matching toleration of each taint; None: one of the taints has none."""
    out: list[Toleration] = []
    for taint in taints:
        first = next((one for one in tolerations if tolerates(one, taint)), None)
        if first is None:
            return None
        out.append(first)
    return tuple(out)


def earliest(taints: Sequence[Taint], tolerations: Sequence[Toleration], window: WindowOf) -> datetime | None:
    """Give the moment in which the first of these tolerations ends; None: never. No tolerations: at once.

    `window`: of the rule, how long so many seconds have to be seen.

    A taint without a time is tolerated without end; the first reader of one puts a time on it.
    """
    if not taints:
        return None
    if not tolerations:
        return AT_ONCE
    moments = [
        taint.time_added + window(one.toleration_seconds)
        for one in tolerations
        for taint in taints
        if one.toleration_seconds is not None and taint.time_added is not None and tolerates(one, taint)
    ]
    return min(moments, default=None)


def leaves_at(taints: Iterable[Taint], tolerations: Sequence[Toleration], window: WindowOf) -> datetime | None:
    """Give the moment from which a workload has to leave a cluster with these taints; None: it stays."""
    acute = [taint for taint in taints if taint.effect == "NoExecute"]
    if not acute:
        return None
    borne = used(acute, tolerations)
    if borne is None:
        return AT_ONCE
    timed = [taint for taint, first in zip(acute, borne, strict=True) if first.toleration_seconds is not None]
    others = (one for one in tolerations if any(tolerates(one, taint) for taint in timed))
    return earliest(acute, (*borne, *others), window)


def has_to_leave(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    """True if a workload has to leave a cluster with these taints, at once or in time."""
    return leaves_at(taints, tolerations, lambda _: timedelta()) is not None


def may_come(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    """True if a new copy may be placed there. The seconds of a toleration have no meaning here."""
    return used((taint for taint in taints if taint.effect != "PreferNoSchedule"), tolerations) is not None


def added(have: Iterable[Taint], want: Iterable[Taint], now: datetime) -> tuple[Taint, ...]:
    """Give `have` with what is not among it by key and effect. The new ones are from now, unless they say since when.

    One that was there keeps its time: a toleration does not begin again.
    """
    out = list(have)
    for taint in want:
        if not any((one.key, one.effect) == (taint.key, taint.effect) for one in out):
            out.append(taint if taint.time_added else taint.model_copy(update={"time_added": now}))
    return tuple(out)

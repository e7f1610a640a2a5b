"""A copy that replaces a bad one and is bad itself waits before it leaves, where bad copies leave at once.

Else a workload that is bad everywhere would go from cluster to cluster as fast as it is seen. And one that flaps would
leave and come back each time: a copy whose eviction is taken back counts as one that replaces itself. The waits are
those of containers that crash: 10 s, twice as long each time, begun again after ten minutes without trouble.
Source: Kubernetes pkg/kubelet, CrashLoopBackOff.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.kinds.workload.state import Copy
from rules.limits.backoff import times

BASE_SECONDS, MAX_SECONDS, RESET_SECONDS = 10, 320, 600
_FAILURES_MAX = 6


def replaced(copy: Copy) -> int:
    """Number of bad copies in a row that this one replaces; 0: it was healthy for long enough, or it replaces none."""
    begun = [moment for moment in (copy.placed_at, copy.returned_at) if moment is not None]
    if copy.bad is None or not begun:
        return copy.replaces
    return 0 if copy.bad.since - max(begun) >= timedelta(seconds=RESET_SECONDS) else copy.replaces


def with_this(copy: Copy) -> int:
    """Number of bad copies in a row that its replacement will replace."""
    return min(replaced(copy) + 1, _FAILURES_MAX)


def waits(copy: Copy) -> float:
    """For how many seconds it has to be bad, at least, where no toleration says more."""
    count = replaced(copy)
    return min(BASE_SECONDS * 2 ** (count - 1), MAX_SECONDS) if count else 0


def why(name: str, copy: Copy, until: datetime) -> str:
    """Until when it waits, and why."""
    return f"{name} keeps its copy until {until.isoformat()}: a bad copy was replaced {times(replaced(copy))} in a row"

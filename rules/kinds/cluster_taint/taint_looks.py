"""Evidence of the taints on a cluster: the rule tells it with them, so that nothing leaves for what is over.

The rules that place workloads do not hear the signals of another rule. Without its word they would go by a taint that
is still on, though the bus was away while its cause passed (decision 21).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from bus.messages import Health, TaintLook
from rules.core.member import Member, Signal
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.cluster_taint.state import TaintGroup
from rules.rulefile.model import UnknownAs


def last_change(rule: ClusterTaint, group: TaintGroup) -> datetime | None:
    """Give when the rule last had something to say: by what was seen, by silence, or by its own taints."""
    member = group.members.get(group.object)
    moments = [one.observed_at for one in counting(rule, group).values()]
    moments += [member.since, member.settled_at or member.since] if member is not None else []
    moments += [one.time_added for one in group.state.taints or () if one.time_added is not None]
    return max(moments, default=None)


def counting(rule: ClusterTaint, group: TaintGroup) -> Mapping[str, Signal]:
    """The signals of the cluster that the rule uses, by name."""
    member = group.members.get(group.object)
    signals = member.signals if member is not None else {}
    return {name: one for name, one in signals.items() if rule.signals is None or name in rule.signals}


def evidence(rule: ClusterTaint, group: TaintGroup, now: datetime) -> tuple[Health | None, tuple[TaintLook, ...]]:
    """Give whether the rule keeps its taints on, and what shows that. Healthy: it wants none. Unknown: nothing shows it
    now. None: it uses silence, or nothing, and they count as long as they are on."""
    member = group.members.get(group.object)
    if member is None or member.settled is None:
        return None, ()
    if member.settled:
        return Health.HEALTHY, ()
    if member.status is Health.HEALTHY:
        end = _recovered_at(rule, member)
        looks = (TaintLook(signal=name, source=one.source, until=end) for name, one in counting(rule, group).items())
        return (Health.HEALTHY, ()) if end <= now else (Health.UNHEALTHY, tuple(looks))
    if member.status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.UNHEALTHY:
        return None, ()
    return member.status, tuple(_saying(counting(rule, group), member.status))


def _recovered_at(rule: ClusterTaint, member: Member) -> datetime:
    """The end of its recovery: whatever is seen until then, the taints stay on."""
    since = member.window.since if member.window is not None else member.since
    return since + rule.window(rule.recovery_seconds)


def _saying(signals: Mapping[str, Signal], status: Health) -> Iterator[TaintLook]:
    for name, one in signals.items():
        if one.status is status:
            yield TaintLook(signal=name, source=one.source, until=one.proven_until or one.stale_at)

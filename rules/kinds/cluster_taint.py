"""ClusterTaint: a cluster that is bad by any signal gets taints, and loses them when it is good again.

What the taints lead to is the business of the WorkloadFailover rules and their tolerations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bus.messages import Action, ClusterTaints, Fact, Health, Mode, Observation, SetTaints, Taint
from rules.group import Group
from rules.kinds.wish import Act, Wish
from rules.language.model import UnknownAs
from rules.language.targets import matches
from rules.language.workload import ClusterTaint
from rules.reasons import Because, Held
from rules.states.workload import WorkloadState


def objects(rule: ClusterTaint, fact: Fact) -> Iterable[str]:
    """One group for each cluster that is matched."""
    if isinstance(fact, Observation) and fact.target.startswith("cluster/") and matches(rule.match, fact.target):
        return (fact.target,)
    return ()


def covers(rule: ClusterTaint, object_: str) -> bool:
    """Whether the rule still speaks of this cluster."""
    return matches(rule.match, object_)


def advance(rule: ClusterTaint, group: Group, _around: Group | None, now: datetime) -> Group:
    """Keep the moment from which the cluster is to have the taints: it is their time, also when they come late."""
    member, state = group.members.get(group.object), group.workload or WorkloadState()
    if member is None or member.settled is None:
        return group
    since = None
    if not member.settled:
        due = member.since + timedelta(seconds=rule.toleration_seconds)
        since = state.tainted_since or (due if member.status is Health.UNHEALTHY and due <= now else now)
    return group if since == state.tainted_since else replace(group, workload=replace(state, tainted_since=since))


def desire(rule: ClusterTaint, group: Group, _around: Group | None, _now: datetime) -> Wish:
    """Give the taints that are to be put on the cluster, or taken off."""
    member, state = group.members.get(group.object), group.workload or WorkloadState()
    if member is None:
        return Wish()
    held = None
    waits = member.status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.HOLD
    if waits and (member.window is not None or not member.settled):
        held = (Held.TARGET_UNKNOWN, f"{group.object}: {member.detail or 'Unknown'}")
    if member.settled is None:
        return Wish(held=held)
    want = tuple(
        Taint(key=taint.key, value=taint.value, effect=taint.effect, time_added=state.tainted_since)
        for taint in (rule.taints if state.tainted_since is not None else ())
    )
    if want == (state.taints or ()):
        return Wish(held=held)
    fields = {
        "cluster": group.object.partition("/")[2], "taints": want, "before": state.taints or (),
        "carrier": rule.carrier,
    }  # fmt: skip
    detail = f"{group.object} is {member.status}" + (f" ({member.detail})" if member.detail else "")
    act = Act(SetTaints, fields, Because.TARGET_CHANGED, detail, lane="taints", safe=not want)
    return Wish(acts=(act,), held=held)


def done(_rule: ClusterTaint, group: Group, action: Action, _at: datetime) -> Group:
    """The taints stand as asked."""
    if not isinstance(action, SetTaints):
        return group
    return replace(group, workload=replace(group.workload or WorkloadState(), taints=action.taints))


def reset(_rule: ClusterTaint, group: Group) -> Group:
    """What was only rehearsed stands on no cluster."""
    return group if group.workload is None else replace(group, workload=replace(group.workload, taints=None))


def says(rule: ClusterTaint, before: Group, after: Group, facts: Sequence[Fact], now: datetime) -> tuple[Fact, ...]:
    """Tell the rules that place workloads: when it changes, and again with each observation, as words can be lost."""
    taints = after.workload.taints if after.workload is not None else None
    earlier = before.workload.taints if before.workload is not None else None
    if taints is None or rule.mode in (Mode.DRY_RUN, Mode.OFF):
        return ()
    if taints == earlier and not any(isinstance(fact, Observation) for fact in facts):
        return ()
    cluster = after.object.partition("/")[2]
    return (ClusterTaints(cluster=cluster, rule=rule.name, taints=taints, observed_at=now),)

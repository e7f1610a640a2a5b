"""Divided replicas that are too many go, when each copy that stays is seen Healthy; until then they all stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from bus.messages import Health, Place
from rules.core.desired import Evidence, PlannedAction
from rules.core.reasons import Because, Held
from rules.core.values import replace
from rules.kinds.workload.candidates import is_bad
from rules.kinds.workload.causes import member_of
from rules.kinds.workload.eviction import behaviour_of, bound
from rules.kinds.workload.old_copy import serves
from rules.kinds.workload.placement_inputs import HoldReason, Inputs
from rules.kinds.workload.replica_surplus import too_many, without_them
from rules.kinds.workload.state import UNHEARD, WorkloadGroup, WorkloadState
from rules.kinds.workload.surplus import cause_of_surplus
from rules.rulefile.targets import encode_segment


def shrinking(view: Inputs) -> Iterator[PlannedAction | HoldReason | datetime]:
    """Take away what is too many, or say that it stays for longer than the grace period, or when to look."""
    since, count = view.state.too_many_since, too_many(view.rule, view.policy, view.state)
    if since is None or not count:
        return
    sizes = without_them(view.state, count)
    told = {name: _seen(view, name, since) for name in sizes}
    if not view.dues and all(status is Health.HEALTHY for status in told.values()):
        if any(size != view.state.copies[name].replicas for name, size in sizes.items()):
            yield _smaller(view, sizes, since)
        return
    grace = behaviour_of(view.policy, cause_of_surplus(view.policy) or "Cluster").grace_seconds
    until = since + view.rule.window(grace or 0)
    if until > view.now:
        yield until
    else:
        words = ", ".join(f"{name}: {status or 'without an observation'}" for name, status in told.items())
        yield Held.GRACE_EXPIRED, f"{count} replicas are too many and stay; {words}"


def _seen(view: Inputs, name: str, since: datetime) -> Health | None:
    """Health of a copy by observations since there is a surplus: it has to serve with no more replicas than it had.
    None: none."""
    if is_bad(view.clusters.get(name, UNHEARD)):
        return Health.UNKNOWN
    return serves(view, name) if view.heard_since(name, since) else None


def _smaller(view: Inputs, sizes: Mapping[str, int], since: datetime) -> PlannedAction:
    for flying in _on_their_way(view.group):
        # What is as good is not asked for again with other numbers because some of it is done.
        if flying.keys() == sizes.keys() and sum(flying.values()) == sum(sizes.values()):
            sizes = flying
    was = {name: copy.replicas or 0 for name, copy in bound(view.state.copies, view.state.moves).items()}
    fewer = {name: was[name] - size for name, size in sizes.items() if size < was[name]}
    # Each of these is its own source before any other is: what came back may have missed a rollout.
    sources = (*fewer, *(name for name in sizes if name not in fewer))
    told = ", ".join(f"{name}: {count} replicas fewer" for name, count in fewer.items())
    needs = []
    for name in sizes:
        member = member_of(view.group, name, view.state.copies[name])
        target = f"workload/{encode_segment(name)}/{view.group.object}"
        needs.append(Evidence(target, healthy=True, since=max(since, member.since if member else since)))
    return PlannedAction(
        Place, view.fields() | {"clusters": dict(sizes), "leaving": (), "sources": sources}, Because.RECOVERED,
        f"{told}, what it took them over from has come back", concurrency_key="place", follows=True, needs=tuple(needs),
    )  # fmt: skip


def _on_their_way(group: WorkloadGroup) -> Iterator[Mapping[str, int]]:
    """Give the placements that make copies smaller and whose outcome is not known."""
    for entry in group.outbox:
        if isinstance(entry.action, Place) and not entry.action.leaving:
            yield entry.action.clusters


def as_it_may_be(group: WorkloadGroup) -> WorkloadState:
    """Give the state as if each placement that makes copies smaller, and whose outcome is not known, were done."""
    copies = dict(group.state.copies)
    for flying in _on_their_way(group):
        for name in flying.keys() & copies.keys():
            copies[name] = replace(copies[name], replicas=min(copies[name].replicas or 0, flying[name]))
    return replace(group.state, copies=copies)

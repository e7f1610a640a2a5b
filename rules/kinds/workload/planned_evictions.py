"""Evictions: what they carry, what has to be seen for them, and which one is taken back for another copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from bus.messages import CancelEviction, Evict, Eviction
from rules.core.desired import Evidence, PlannedAction
from rules.core.reasons import Because
from rules.kinds.workload.constraints import constraint_limits
from rules.kinds.workload.eviction import behaviour_of, bound
from rules.kinds.workload.placement_inputs import Inputs
from rules.kinds.workload.state import UNHEARD, Relocation
from rules.kinds.workload.surplus import needed_again
from rules.rulefile.targets import encode_segment


def evictions(view: Inputs, leaving: Iterable[str]) -> Iterator[Eviction]:
    """Evictions that are sent to Karmada together with the placement. Evict follows, and has the outcome of
    the Place."""
    for name in leaving:
        move = view.state.moves[name]
        if view.rule.carrier == "Karmada" and move.evicted_at is None:
            yield Eviction.model_validate({"from_": name, **_manner(view, move)})


def _manner(view: Inputs, move: Relocation) -> dict[str, Any]:
    behaviour = behaviour_of(view.policy, move.cause)
    return {
        "purge_mode": behaviour.purge_mode.value, "grace_period_seconds": behaviour.grace_seconds,
        "on_grace_expired": (behaviour.on_grace_expired or view.rule.on_grace_expired).value,
    }  # fmt: skip


def left_evidence(view: Inputs, names: Iterable[str]) -> Iterator[Evidence]:
    """Evidence for clusters that are left: bad now, unless they are left for taints that no rule of ours wants."""
    for name in names:
        due = view.dues.get(name)
        if due is not None and due.word is not None:
            whole, seen = f"cluster/{encode_segment(name)}", due.word
            yield Evidence(whole, healthy=False, since=due.at, names=tuple(seen.signals), member=seen)
        if due is not None and due.because in (Because.CLUSTER_UNHEALTHY, Because.WORKLOAD_UNHEALTHY):
            target = encode_segment(name)
            whole = f"cluster/{target}" if due.cause == "Cluster" else f"workload/{target}/{view.group.object}"
            yield Evidence(whole, healthy=False, since=due.at, unknown=True)


def taking_evidence(view: Inputs, names: Iterable[str], leaving: Iterable[str]) -> Iterator[Evidence]:
    """Evidence for clusters that get a copy: healthy now, where anything is known of their health."""
    since = max((due.at for name in leaving if (due := view.dues.get(name)) is not None), default=view.now)
    for name in sorted(names):
        if view.clusters.get(name, UNHEARD).status is None:
            continue  # none of the signals that the rule uses has ever spoken of it
        yield Evidence(f"cluster/{encode_segment(name)}", healthy=True, since=since)


def evict_action(
    view: Inputs, name: str, move: Relocation, *, follows: bool, labels: Mapping[str, str] | None = None,
    plan: Mapping[str, int] | None = None,
) -> PlannedAction:  # fmt: skip
    """`plan`: where the workload is to be, where this is the first that is observed of it."""
    stay = bound(view.state.copies, view.state.moves)
    plan = {other: copy.replicas or 0 for other, copy in stay.items()} if plan is None else plan
    for entry in view.group.outbox:
        # On its way: it is not asked for again because the status goes on, or because rooms have changed.
        if isinstance(entry.action, Evict) and entry.action.from_ == name:
            labels = entry.action.preserved or labels
            plan = entry.action.clusters if entry.action.clusters.keys() == plan.keys() else plan
    fields = view.fields(name) | _manner(view, move) | {
        "replicas": move.replicas, "targets": tuple(stay), "preserved": dict(labels or {}),
        "clusters": dict(plan) if view.rule.carrier == "Karmada" else {},
    }  # fmt: skip
    detail = f"{move.because}: {move.detail}"
    needs = tuple(left_evidence(view, [name])) if not move.surplus else ()
    because = Because.RECOVERED if move.surplus else Because.TOLERATION_ELAPSED
    return PlannedAction(Evict, fields, because, detail, concurrency_key=f"evict/{name}", follows=follows, needs=needs)


def wanted_again(view: Inputs, pending: list[str]) -> frozenset[str]:
    if not pending:
        return frozenset()
    sick = [name for name in view.state.moves if view.due(name)]
    limits = partial(constraint_limits, view.policy, view.clusters, view.state.wanted_on)
    return needed_again(view.state, pending, sick, limits)


def stays_after_all(view: Inputs, name: str) -> PlannedAction:
    """A copy that was too many stays after all: it takes the place of one that has to leave now."""
    why = next(move for move in view.state.moves.values() if not move.placed and not move.surplus)
    detail = f"{name}: it stays for what has to leave: {why.detail}"
    return PlannedAction(
        CancelEviction, view.fields(name), why.because, detail, concurrency_key=f"evict/{name}", safe=True
    )


def unmarked(view: Inputs, name: str) -> PlannedAction:
    """A copy is marked by an eviction whose outcome never came, and which is not wanted any more."""
    detail = f"{name}: it is marked, and does not leave: the outcome of its eviction never came"
    because, key = Because.RECOVERED, f"evict/{name}"
    return PlannedAction(CancelEviction, view.fields(name), because, detail, concurrency_key=key, safe=True)

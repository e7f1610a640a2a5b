"""Surplus copies of a workload that moves: without this, each outage would leave one more.

When a cluster returns before its copy is purged, that copy stays, and the one placed for it is surplus. Until the
others are seen Healthy both stay; then the newest one leaves that breaks no spread constraint by it. A copy that is
needed again meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice

from rules.core.reasons import Because
from rules.core.values import replace
from rules.kinds.workload.constraints import LOOKS_MAX, Limit
from rules.kinds.workload.model import Behaviour, Failover, Policy, PurgeMode, WorkloadFailover
from rules.kinds.workload.state import Cause, Copy, Relocation, WorkloadState

LimitsOf = Callable[[Collection[str], Collection[str]], Sequence[Limit]]
"""Constraints for copies that are on the first clusters now, and may be on the others."""


def counted(policy: Policy, state: WorkloadState, moves: Mapping[str, Relocation], *, placing: bool) -> WorkloadState:
    """Remember how many copies, and replicas, there were when the first of them had to leave; until they are again.

    Replicas that are divided may be on more clusters then. `placing`: a copy is being made.
    """
    total = sum(copy.replicas or 0 for copy in state.copies.values())
    if state.wanted_copies is None:
        if not moves or state.moves:
            return state
        sizes = {name: copy.replicas or 0 for name, copy in state.copies.items()}
        if policy.strategy != "duplicated":
            total = max(total, state.replicas or 0)  # some may have been missing
        return replace(
            state, wanted_copies=len(sizes), wanted_replicas=total, wanted_on=tuple(sorted(sizes)), wanted_sizes=sizes
        )
    fits = len(state.copies) <= state.wanted_copies or (policy.strategy != "duplicated" and total > 0)
    over = not moves and not placing and fits and total <= (state.wanted_replicas or 0)
    return forgotten(state) if over else state


def forgotten(state: WorkloadState) -> WorkloadState:
    """Give the state of a workload that does not move, and of which nothing is too many."""
    return replace(
        state, wanted_copies=None, wanted_replicas=None, wanted_on=(), wanted_sizes={}, too_many_since=None
    )  # fmt: skip


def changed(before: WorkloadState, after: WorkloadState, ours: Collection[str]) -> WorkloadState:
    """Count what people add or remove while it moves. `ours`: where copies are being made.

    What goes while there are too many was one of those: a Karmada policy had no room for it, or people were quicker.
    """
    if after.wanted_copies is None:
        return after
    old = {name: copy.replicas or 0 for name, copy in before.copies.items() if name not in before.moves}
    new = {name: copy.replicas or 0 for name, copy in after.copies.items() if name not in before.moves}
    mine = {name for name in ours if name not in old}
    copies = sum(name not in mine for name in new) - len(old)
    replicas = sum(count for name, count in new.items() if name not in ours) - sum(
        count for name, count in old.items() if name not in ours
    )
    wanted, total = after.wanted_copies, after.wanted_replicas or 0
    copies = min(copies + max(len(old) - wanted, 0), 0) if copies < 0 else copies
    replicas = min(replicas + max(sum(old.values()) - total, 0), 0) if replicas < 0 else replicas
    sizes = {**after.wanted_sizes}
    for name in new.keys() - {*ours}:
        sizes[name] = max(sizes.get(name, 0) + new[name] - old.get(name, 0), 0)
    return replace(
        after, wanted_copies=max(wanted + copies, 1), wanted_replicas=max(total + replicas, 0), wanted_sizes=sizes
    )  # fmt: skip


def with_surplus(
    rule: WorkloadFailover, policy: Policy, state: WorkloadState, moves: Mapping[str, Relocation], limits: LimitsOf,
    *, in_doubt: bool,
) -> dict[str, Relocation]:  # fmt: skip
    """Give the moves with those of copies that are too many; one that is needed again and has not begun is none.

    `limits`: what the spread constraints ask of the copies that stay, by where they are. `in_doubt`: an eviction that
    is no longer wanted may have been carried out. Its copy has to be known to stay before another one leaves for it.
    """
    out = {name: move for name, move in moves.items() if not (move.surplus and move.evicted_at is None)}
    wanted, cause = state.wanted_copies, cause_of_surplus(policy)
    if in_doubt or is_needed(out) or wanted is None or rule.carrier != "Kubernetes" or cause is None:
        return out
    stay = {name: copy for name, copy in state.copies.items() if name not in out}
    for name in _too_many(policy, state, stay, limits([*stay], [])):
        detail = "what it was placed for has come back"
        new = Relocation(cause, Because.RECOVERED, detail, state.copies[name].replicas, placed=True, surplus=True)
        out[name] = moves.get(name, new)
    return out


def cause_of_surplus(policy: Policy) -> Cause | None:
    """By which failover's keys a copy that is too many leaves: one that removes Gracefully. None: neither does."""
    failover = policy.failover or Failover()
    found: dict[Cause, Behaviour | None] = {"Cluster": failover.cluster, "Application": failover.application}
    modes = {cause: behaviour.purge_mode for cause, behaviour in found.items() if behaviour is not None}
    return next((cause for cause, mode in modes.items() if mode is PurgeMode.GRACEFULLY), None if modes else "Cluster")


def may_return(rule: WorkloadFailover, policy: Policy, state: WorkloadState, name: str, limits: LimitsOf) -> bool:
    """True if a copy that is leaving can stay: some choice of surplus copies leaves each constraint met
    that was met."""
    if rule.carrier != "Kubernetes" or state.wanted_copies is None:
        return True
    back = {other: copy for other, copy in state.copies.items() if other not in state.moves or other == name}
    standing = limits([*back], [])
    return any(
        all(limit.holds(back.keys() - {*chosen}) for limit in standing) for chosen in _choices(policy, state, back)
    )


def needed_again(
    state: WorkloadState, pending: Collection[str], sick: Collection[str], limits: LimitsOf
) -> frozenset[str]:
    """Surplus copies that are leaving and now take the place of the `pending` ones, which have to leave.

    As many as are missing, and no constraint that held may break by it. `sick`: clusters that have to be left as well.
    A copy that had to leave, and does not at the moment, stays where it is.
    """
    begun = {name for name, move in state.moves.items() if move.placed or move.surplus or move.evicted_at}
    spare = [name for name, move in state.moves.items() if move.surplus and move.evicted_at and name not in sick]
    stay = state.copies.keys() - begun - {*pending}
    missing = len(pending) if state.wanted_copies is None else min(state.wanted_copies - len(stay), len(pending))
    standing = limits([*stay, *pending], spare)
    for count in range(min(missing, len(spare)), 0, -1):
        for chosen in islice(combinations(sorted(spare), count), LOOKS_MAX):
            if all(limit.can_hold({*stay, *chosen}, missing - count) for limit in standing):
                return frozenset(chosen)
    return frozenset()


def _too_many(
    policy: Policy, state: WorkloadState, stay: Mapping[str, Copy], limits: Sequence[Limit]
) -> Sequence[str]:  # fmt: skip
    """The first choice without which the constraints that held still hold; where there is none, the first."""
    first: Sequence[str] | None = None
    for chosen in _choices(policy, state, stay):
        if all(limit.holds(stay.keys() - {*chosen}) for limit in limits):
            return chosen
        first = chosen if first is None else first
    return first or ()


def _choices(policy: Policy, state: WorkloadState, stay: Mapping[str, Copy]) -> Iterator[Sequence[str]]:
    """Choices of surplus copies, the newest first: as many as there are too many.

    Divided replicas may be on more clusters than before, and on fewer: any choice is possible that leaves as many
    replicas as there were.
    """
    over = max(len(stay) - (state.wanted_copies or 0), 0)
    placed = sorted(((copy.placed_at, name) for name, copy in stay.items() if copy.placed_at is not None), reverse=True)
    newest = [name for _, name in placed]
    divided, total = policy.strategy != "duplicated", sum(copy.replicas or 0 for copy in stay.values())
    most = min(over, len(newest))
    sizes = [*range(most, -1, -1), *range(most + 1, len(newest) + 1)] if divided else [most]
    spare = total - (state.wanted_replicas or 0)
    looks = islice(chain.from_iterable(combinations(newest, size) for size in sizes), LOOKS_MAX)
    return (one for one in looks if not divided or not one or sum(stay[name].replicas or 0 for name in one) <= spare)


def is_needed(moves: Mapping[str, Relocation]) -> bool:
    """True if a copy has to leave and nothing is placed for it yet."""
    return any(not move.placed and not move.surplus for move in moves.values())

"""Scheduling of a workload that leaves clusters: filter, order, spread, assign. Copies that stay are never taken away.
Copies that stay are never taken away.

As Karmada's scheduler does it (pkg/scheduler/core), with five differences: a new copy only goes where the cluster is
Healthy now; what is replaced is what is lost, never more; what holds a copy keeps it; nothing is evicted before this
has found a place; and no spread constraint that held is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rules.core.values import replace
from rules.kinds.workload.candidates import (
    Candidates,
    SchedulingRequest,
    affine_to,
    candidates,
    each_of,
    group_of,
    strategy_of,
    total_of,
)
from rules.kinds.workload.constraints import broken, choices, words
from rules.kinds.workload.division import NotEnoughRoom, backwards, by_room, by_static_weight, by_tiers
from rules.kinds.workload.placement import AffinityTerm, ClusterAffinity, OnInsufficient, SpreadConstraint, Strategy
from rules.kinds.workload.spread import Bounds, Insufficient, Option, by_cluster, by_group, group_score
from rules.kinds.workload.state import UNHEARD

NAMED_MAX = 10
"""Largest number of clusters that the reason for finding none names."""
STAYS = 1_000_000
"""A region that holds a copy comes before any that does not."""


def land(question: SchedulingRequest) -> dict[str, int]:
    """Give the whole placement without the clusters that are left: cluster to replicas. Raises Insufficient.

    Clusters that flap are taken where there is no place without them.
    """
    try:
        return _landed(question)
    except Insufficient:
        if question.anyone or not any(cluster.waits_until for cluster in question.clusters.values()):
            raise
    return _landed(replace(question, anyone=True))


def _landed(question: SchedulingRequest) -> dict[str, int]:
    placement = question.policy.placement
    terms: Sequence[AffinityTerm | ClusterAffinity | None] = placement.cluster_affinities or [
        placement.cluster_affinity
    ]
    refused: list[str] = []
    for term in terms:
        found = candidates(question, term)
        try:
            return _kept(question, found, _assigned(question, found))
        except Insufficient as error:
            why = "; ".join(found.refused[:NAMED_MAX])
            refused.append(f"{error} ({why})" if why else str(error))
            reason = error.reason
    raise Insufficient(reason, ", and then ".join(refused))


def _kept(question: SchedulingRequest, found: Candidates, plan: dict[str, int]) -> dict[str, int]:
    """Give the plan where it breaks no spread constraint, else the best one that does not. Raises Insufficient."""
    constraint = broken(question, plan)
    if constraint is None:
        return plan
    new = [option.name for option in found.options if option.name not in question.stay]
    for count in _counts(question, len(plan.keys() - question.stay.keys()), len(new)):
        for chosen in choices(question, new, count):
            try:
                other = _assigned_to(question, found, chosen)
            except Insufficient:
                continue  # these have too little room
            if broken(question, other) is None:
                return other
    raise Insufficient("constraint_broken", f"no choice of clusters keeps the current placement ({words(constraint)})")


def _counts(question: SchedulingRequest, planned: int, most: int) -> Iterator[int]:
    """Numbers of new clusters to try, the best first. A divided workload may use fewer, or more."""
    first = min(question.missing, most)
    if strategy_of(question) == "duplicated":
        yield from range(planned, -1 if question.on_insufficient is OnInsufficient.PARTIAL else planned - 1, -1)
    else:
        yield from range(first, -1, -1)
        yield from range(first + 1, most + 1)


def _assigned_to(question: SchedulingRequest, found: Candidates, chosen: Sequence[str]) -> dict[str, int]:
    """Give the placement on just these clusters and those that stay: a copy on each of them."""
    if strategy_of(question) == "duplicated":
        return dict(sorted({**question.stay, **dict.fromkeys(chosen, each_of(question))}.items()))
    names = {*chosen, *question.stay}
    tiers = tuple(tuple(option for option in tier if option.name in names) for tier in found.tiers)
    only = replace(found, tiers=tiers)
    plan = _assigned(question, only)
    if missing := [name for name in chosen if not plan.get(name)]:
        plan = _shared(question, only, plan, missing)
    return plan


def _shared(
    question: SchedulingRequest, found: Candidates, plan: Mapping[str, int], missing: Sequence[str]
) -> dict[str, int]:
    """Give the plan with one replica for each of those that would have none, from those that have most."""
    out = dict(plan)
    giving = {option.name for option in found.options} & plan.keys()
    weighted = strategy_of(question) == "static"
    for name in missing:
        richest = max(giving, key=lambda other: (out[other], other), default=None)
        if richest is None or out[richest] < 2 or not found.free[name] or (weighted and not _weight(question, name)):
            raise Insufficient("not_enough_replicas", "there are too few replicas for the clusters that are needed")
        out[richest] -= 1
        out[name] = 1
    return dict(sorted(out.items()))


def _assigned(question: SchedulingRequest, found: Candidates) -> dict[str, int]:
    stay = question.stay
    if not stay and not found.options:
        raise Insufficient("no_cluster_fits", "no cluster fits")
    strategy = strategy_of(question)
    out = dict(stay)
    if strategy == "duplicated":
        if question.missing or not stay:
            new = [one.name for one in _spread(question, found, stay) if one.name not in stay]
            out |= dict.fromkeys(new[: question.missing], each_of(question))
    elif stay and sum(stay.values()) >= total_of(question):
        pass  # enough stays: nothing is placed, and nothing is taken from a copy that stays
    elif found.options or question.on_insufficient is OnInsufficient.KEEP:
        free = {option.name for option in found.options}
        frozen = sum(count for name, count in stay.items() if name not in free)
        held = {name: count for name, count in stay.items() if name in free}
        wanted = max(total_of(question) - frozen, 0)
        out |= _divided(question, found, held, wanted, strategy) if wanted else {}
    if not out:
        raise Insufficient("not_enough_room", "no cluster that fits has room for a single replica")
    return dict(sorted(out.items()))


def _divided(
    question: SchedulingRequest, found: Candidates, held: Mapping[str, int], wanted: int, strategy: Strategy
) -> dict[str, int]:
    if not found.options:
        raise Insufficient("no_cluster_fits", "no cluster fits besides those that hold it and are bad themselves")
    descending = backwards(question.state.uid)
    if strategy == "static":
        weights = {option.name: _weight(question, option.name) for option in found.options}
        return _by_weight(wanted, weights, held, descending=descending)
    room = sum(option.available for option in found.options)
    if question.on_insufficient is OnInsufficient.PARTIAL:
        wanted = min(wanted, room)
    chosen = {option.name for option in _spread(question, found, held, wanted)} | held.keys()
    aggregated = strategy == "aggregated"
    tiers = [{one.name: found.free[one.name] for one in tier if one.name in chosen} for tier in found.tiers]
    try:
        if len(tiers) > 1:
            return by_tiers(wanted, tiers, held, aggregated=aggregated, descending=descending)
        return by_room(wanted, tiers[0], held, aggregated=aggregated, descending=descending)
    except NotEnoughRoom as error:
        raise Insufficient("not_enough_room", str(error)) from error


def _by_weight(wanted: int, weights: Mapping[str, int], held: Mapping[str, int], *, descending: bool) -> dict[str, int]:
    """Divide all of it by weight. Who holds a copy and would have no share keeps what it holds, and takes no part."""
    kept: dict[str, int] = {}
    while True:
        taking = {name: weight for name, weight in weights.items() if name not in kept}
        shares = by_static_weight(max(wanted - sum(kept.values()), 0), taking, taking, descending=descending)
        found = {name: count for name, count in shares.items() if count}
        without = {name: count for name, count in held.items() if count and name in taking and name not in found}
        if not without:
            return {**kept, **found}
        kept |= without


def _weight(question: SchedulingRequest, name: str) -> int:
    scheduling = question.policy.placement.replica_scheduling
    preference = scheduling.weight_preference if scheduling is not None else None
    cluster = question.clusters.get(name, UNHEARD)
    rules = preference.static_weight_list if preference is not None else ()
    return max((one.weight for one in rules if affine_to(one.target_cluster, name, cluster)), default=0)


def _spread(
    question: SchedulingRequest, found: Candidates, stay: Mapping[str, int], needs: int | None = None
) -> list[Option]:
    """Choose clusters within the policy's bounds. `needs` None: every copy is a full one, so it is their number."""
    constraints = question.policy.placement.spread_constraints
    bounds = _bounds(next((one for one in constraints if one.field == "cluster"), None))
    if needs is None:
        count = bounds.cut(len(stay) + question.missing)
        bounds = Bounds(count if question.on_insufficient is OnInsufficient.KEEP else bounds.least, count)
    # Copies that stay on clusters that are bad themselves take no part, and count.
    bad = len(question.stay) - sum(option.name in question.stay for option in found.options)
    bounds = Bounds(max(bounds.least - bad, 0), None if bounds.most is None else max(bounds.most - bad, 0))
    by = next((one for one in constraints if one.field != "cluster"), None)
    if by is None:
        return by_cluster(found.options, bounds, needs)
    groups: dict[str, list[Option]] = {}
    for option in found.options:
        name = group_of(by, option.name, question.clusters.get(option.name, UNHEARD))
        groups.setdefault(name, []).append(option)
    scores = {name: group_score(options, needs or 0) for name, options in groups.items()}
    for name, options in groups.items():
        scores[name] += STAYS * any(option.name in stay for option in options)
    return by_group(groups, scores, _bounds(by), bounds)


def _bounds(constraint: SpreadConstraint | None) -> Bounds:
    if constraint is None:
        return Bounds()
    return Bounds(max(constraint.min_groups, 1), constraint.max_groups or None)

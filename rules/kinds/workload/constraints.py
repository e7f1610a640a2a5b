"""Spread constraints that were met before a workload leaves a cluster are met afterwards: by cluster, region, zone,
provider or label.

One that was broken already is not broken further. Karmada's scheduler looks at clusters and regions only, and skips
both for static weights; a failover must not undo what a person has arranged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rules.kinds.workload.candidates import SchedulingRequest, group_of
from rules.kinds.workload.model import Policy
from rules.kinds.workload.placement import SpreadConstraint
from rules.kinds.workload.state import UNHEARD, ClusterState

LOOKS_MAX = 20_000
"""Largest number of choices of clusters that are tried."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One constraint, as it holds for this failover."""

    constraint: SpreadConstraint
    least: int
    most: float
    groups: dict[str, str]
    """Cluster to group; empty: not known."""

    def lack(self, names: Collection[str]) -> int:
        """Number of groups that are missing. A cluster whose group is not known may be one of its own."""
        return max(self.least - len(self._known(names)) - sum(not self.groups[name] for name in names), 0)

    def holds(self, names: Collection[str]) -> bool:
        """True if copies on these clusters meet the constraint."""
        return len(self._known(names)) <= self.most and not self.lack(names)

    def can_hold(self, names: Collection[str], more: int) -> bool:
        """True if copies on these clusters can meet the constraint with at most `more` further copies, well chosen."""
        return len(self._known(names)) <= self.most and self.lack(names) <= more

    def _known(self, names: Collection[str]) -> set[str]:
        return {self.groups[name] for name in names} - {""}


def limits_of(question: SchedulingRequest, options: Collection[str]) -> list[Limit]:
    """Give what each constraint asks of copies on these clusters, and on those that hold one now."""
    now = {*question.stay, *question.leaving}
    return constraint_limits(question.policy, question.clusters, question.state.wanted_on, now, options)


def constraint_limits(
    policy: Policy, clusters: Mapping[str, ClusterState], began: Collection[str], now: Collection[str],
    options: Collection[str],
) -> list[Limit]:  # fmt: skip
    """Give what each constraint asks of copies on these clusters.

    `began`: where the copies were when the first of them had to leave. With copies that come back there may be more for
    a while, and what they break then was met all the same. `now`: where they are, which counts where none moves.
    """
    out, before = [], began or now
    for one in policy.placement.spread_constraints:
        names = sorted({*before, *now, *options})
        groups = {name: group_of(one, name, clusters.get(name, UNHEARD)) for name in names}
        known = {groups[name] for name in before} - {""}
        possible = len(known) + sum(not groups[name] for name in before)
        most = max(one.max_groups or float("inf"), len(known))
        out.append(Limit(one, min(one.min_groups, possible), most, groups))
    return out


def broken(question: SchedulingRequest, plan: Collection[str]) -> SpreadConstraint | None:
    """Give a constraint that this placement would break; None: it breaks none.

    What stays is there already: a placement without anything new breaks no upper bound.
    """
    adds = any(name not in question.stay for name in plan)
    limits = limits_of(question, plan)
    return next((one.constraint for one in limits if one.lack(plan) or (adds and not one.holds(plan))), None)


def choices(question: SchedulingRequest, options: Sequence[str], count: int) -> Iterator[tuple[str, ...]]:
    """Give the choices of so many new clusters that break no constraint, in the order in which they are preferred."""
    limits = limits_of(question, options)
    stay = tuple(question.stay)
    alike = {name: tuple(one.groups[name] for one in limits if one.constraint.field != "cluster") for name in options}
    looks = 0

    def search(chosen: tuple[str, ...], rest: Sequence[str]) -> Iterator[tuple[str, ...]]:
        nonlocal looks
        looks += 1
        names = (*stay, *chosen)
        left = count - len(chosen)
        if looks > LOOKS_MAX or any(one.lack(names) > left for one in limits):
            return
        if not left:
            yield chosen
            return
        if any(len({one.groups[name] for name in names} - {""}) > one.most for one in limits):
            return
        seen = set()
        for index, name in enumerate(rest):
            if alike[name] not in seen:  # another one of the same groups is as good, and less liked
                seen.add(alike[name])
                yield from search((*chosen, name), rest[index + 1 :])

    for found in search((), options):
        if all(one.holds((*stay, *found)) for one in limits):
            yield found


def words(constraint: SpreadConstraint) -> str:
    """A constraint, for people."""
    what = constraint.field or constraint.spread_by_label
    most = f" and at most {constraint.max_groups}" if constraint.max_groups else ""
    return f"spread by {what}: at least {max(constraint.min_groups, 1)}{most}"

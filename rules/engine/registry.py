"""Which functions a rule kind brings. A new kind is one module in rules/kinds/, one entry here, one in the models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bus.messages import Action, Fact, Outcome
from rules.core.desired import Wish
from rules.core.group import Group
from rules.core.interests import Interest
from rules.kinds.cluster_taint import kind as cluster_taint
from rules.kinds.notification import kind as notification
from rules.kinds.quorum import kind as quorum
from rules.kinds.quorum.kind import QuorumRule
from rules.kinds.traffic import interests as traffic_interests
from rules.kinds.traffic import kind as traffic
from rules.kinds.workload import kind as workload
from rules.kinds.zone import kind as zone
from rules.limits import limiter as budget
from rules.limits.limiter import BudgetRule
from rules.rulefile.model import Notification, Rule, TrafficFailover
from rules.rulefile.workload import ClusterTaint, WorkloadFailover
from rules.rulefile.zone import ZoneIsolation

# Every function takes the rule first: each kind its own model, which is why it is Any here.


def _says_nothing(*_: object) -> tuple[Fact, ...]:
    return ()


def _none(*_: object) -> Iterable[str]:
    return ()


def _itself(_rule: Any, object_: str) -> str:
    return object_


def _yes(*_: object) -> bool:
    return True


def _no(*_: object) -> bool:
    return False


def _all(_rule: Any, _before: Group, _after: Group, others: Iterable[Group]) -> Iterable[Group]:
    return others


def _as_it_is(_rule: Any, group: Group, *_: object) -> Group:
    return group


@dataclass(frozen=True, slots=True)
class Kind:
    """What the engine asks of a kind. Its state changes by facts, outcomes and time, never by deciding."""

    desire: Callable[[Any, Group, Group | None, datetime], Wish]
    """(rule, group, around, now): the absolute desired state."""
    interests: Callable[[Any], Iterable[Interest]]
    """(rule): which facts may concern it; the index finds the rule by them, and then asks for their `objects`."""
    observe: Callable[[Any, Group, Fact, datetime], Group] = _as_it_is
    """Fold in inventory or a command. A late fact never undoes a newer one."""
    heard: Callable[[Any, Group, str, datetime], Group] = _as_it_is
    """(rule, group, target, at): an observation has been folded into this member. For kinds with clocks of their own:
    of several changes that are read together, none is lost."""
    advance: Callable[[Any, Group, Group | None, datetime], Group] = _as_it_is
    """(rule, group, around, now): what time alone changes; the same whenever it is looked at."""
    done: Callable[[Any, Group, Action, datetime], Group] = _as_it_is
    """The world is as the action asked. In a dry run called at once: a rehearsal."""
    failed: Callable[[Any, Group, Action, Outcome, datetime], Group] = _as_it_is
    """The action could not be carried out. It is tried again anyhow."""
    said: Callable[[Any, Group, Action, Outcome], Group] = _as_it_is
    """What the outcome of a done action says besides."""
    reset: Callable[[Any, Group], Group] = _as_it_is
    """Forget what was only rehearsed: the rule has left the mode DryRun."""
    says: Callable[[Any, Group, Group, Sequence[Fact], datetime], tuple[Fact, ...]] = _says_nothing
    """(rule, before, after, facts, now): what other groups are to hear of this step. What is lost is said again, so it
    has to be repeated from time to time where that matters."""
    objects: Callable[[Any, Fact], Iterable[str]] = _none
    """(rule, fact): the objects of the groups that the fact concerns; those that do not exist yet are opened."""
    opens: Callable[[Any, Fact], bool] = _yes
    """(rule, fact): whether the fact is reason enough to open a group."""
    owner: Callable[[Any, str], str] = _itself
    """(rule, object of an action): the object of the group that asks for it."""
    scope: Callable[[Any, str], str] = _itself
    """(rule, object of a group): where it lives. Groups of one scope are in one partition: their facts are in order."""
    shares_home: Callable[[Any], bool] = _no
    """(rule): whether its groups live with those of other rules of the same scopes, so that facts are stored once."""
    covers: Callable[[Any, str], bool] = _yes
    """(rule, object): whether the rule as it is written now still speaks of this: rule files change, groups stay."""
    keeps: Callable[[Group], bool] = _no
    """(group): whether it says what stands in the world, so that it is stored although its rule is no more."""
    way_back_only: Callable[[Any], Any] | None = None
    """(rule): the rule as it counts after it has left the rule files, for as long as a group of it is kept. None: it
    counts no more."""
    census: str | None = None
    """The object of the group whose state all others of the rule are given as `around`; it is decided first."""
    stirs: Callable[[Any, Group, Group, Iterable[Group]], Iterable[Group]] = _all
    """(rule, before, after, others): which of the others have to be decided again because the census has changed so."""


KINDS: Mapping[type[Rule], Kind] = {
    TrafficFailover: Kind(
        desire=traffic.desire,
        interests=traffic_interests.interests,
        observe=traffic.observe,
        heard=traffic.heard,
        scope=traffic_interests.scope,
        shares_home=traffic_interests.shares_home,
        advance=traffic.advance,
        done=traffic.done,
        reset=traffic.reset,
    ),
    Notification: Kind(
        desire=notification.desire,
        interests=notification.interests,
        objects=notification.objects,
        covers=notification.covers,
    ),
    BudgetRule: Kind(
        desire=budget.desire,
        interests=budget.interests,
        observe=budget.observe,
        advance=budget.advance,
        says=budget.says,
        objects=budget.objects,
        covers=budget.covers,
    ),
    QuorumRule: Kind(
        desire=quorum.desire,
        interests=quorum.interests,
        advance=quorum.advance,
        says=quorum.says,
        objects=quorum.objects,
        covers=quorum.covers,
    ),
    WorkloadFailover: Kind(
        desire=workload.desire,
        interests=workload.interests,
        observe=workload.observe,
        heard=workload.heard,
        advance=workload.advance,
        done=workload.done,
        said=workload.said,
        failed=workload.failed,
        reset=workload.reset,
        objects=workload.objects,
        opens=workload.opens,
        scope=workload.scope,
        covers=workload.covers,
        census=workload.CENSUS,
        stirs=workload.stirs,
    ),
    ClusterTaint: Kind(
        desire=cluster_taint.desire,
        interests=cluster_taint.interests,
        advance=cluster_taint.advance,
        done=cluster_taint.done,
        reset=cluster_taint.reset,
        says=cluster_taint.says,
        objects=cluster_taint.objects,
        covers=cluster_taint.covers,
    ),
    ZoneIsolation: Kind(
        desire=zone.desire,
        interests=zone.interests,
        observe=zone.observe,
        heard=zone.heard,
        advance=zone.advance,
        done=zone.done,
        failed=zone.failed,
        reset=zone.reset,
        objects=zone.objects,
        owner=zone.owner,
        scope=zone.owner,
        covers=zone.covers,
        keeps=zone.keeps,
        way_back_only=zone.way_back_only,
    ),
}


def kind_of(rule: Rule) -> Kind:
    """Give the functions of this rule's kind."""
    return KINDS[type(rule)]


def is_kept(group: Group) -> bool:
    """Whether a group is stored although no rule speaks of it: what it has done stands, and must stay known."""
    return any(kind.keeps(group) for kind in KINDS.values())

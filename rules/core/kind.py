"""Interface of a rule kind to the engine, which knows no kind by name.

No field has a default: a kind without one is refused by the type checker and does not start, where a default would make
it do nothing in silence. Where a kind has no behavior of its own, it uses one of the functions below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from bus.messages import Action, ActionMessage, Fact, Outcome
from rules.core.desired import DesiredState
from rules.core.group import Group, S
from rules.core.interests import Interest
from rules.core.premises import Alternatives, DecisionContext
from rules.core.reasons import Because, Held

R = TypeVar("R")
"""The model of the kind's rules."""
Missing = Sequence[tuple[str, str, str]]
"""Looks that are missing: source, target, signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKind(Generic[R, S]):
    """The functions of one kind; each takes the rule first. Its state changes by facts, outcomes and time, never by
    deciding."""

    model: type[R]
    """Model of its rules in rule files."""
    because: frozenset[Because]
    """Reasons for which its rules act."""
    holds: frozenset[Held]
    """Reasons for which its rules hold, apart from guards, pauses and failed actions."""
    actions: tuple[type[ActionMessage], ...]
    """Action types it may ask for besides Notify, which every rule may. The executor refuses all others."""

    implied: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Iterable[R]]
    """(rules, guards, sources of the rule files): its rules that follow from them. For kinds that no rule file has."""

    state: type[S]
    """State of its groups, whose defaults are the initial state: a type of this kind's own, by which a stored group is
    read."""
    resolved: frozenset[Because]
    """Reasons that mean that all is as it should be again: an incident that was opened at a pager is resolved."""

    # Which groups there are, and what concerns them.
    interests: Callable[[R], Iterable[Interest]]
    """(rule): which facts may concern it; the index finds the rule by them, and then asks for their `objects`."""
    objects: Callable[[R, Fact], Iterable[str]]
    """(rule, fact): the objects of the groups that the fact concerns; those that do not exist yet are opened."""
    first: Callable[[R], Iterable[str]]
    """(rule): the objects of the groups that are there before any fact."""
    creates_group: Callable[[R, Fact], bool]
    """(rule, fact): whether the fact is reason enough to open a group."""
    leaves: Callable[[R, Group[S] | None, Fact], bool]
    """(rule, group, fact): whether by this fact the rule means the object no more: its group is dropped."""
    everywhere: Callable[[R, Fact], bool]
    """(rule, fact): whether a command concerns all groups of the rule, of which only their partitions know."""
    subscribed: Callable[[R, Group[S] | None, Group[S]], frozenset[str] | None]
    """(rule, before, after): the targets of which the group gets observations; None: as before, or the kind says it by
    `objects`."""
    subscribing: tuple[type[Fact], ...]
    """The inventory by which its groups may come to get observations of more targets."""
    subscribes: Callable[[R, str, Fact], frozenset[str]]
    """(rule, object, fact): the targets that its group gets observations of once it has had this fact, one of
    `subscribing`."""
    owner: Callable[[R, str], str]
    """(rule, object of an action): the object of the group that asks for it."""
    written: Callable[[R, Action], str]
    """(rule, action): the object that the action's own fields lead to. The executor refuses an action that is said to
    be on another."""
    scope: Callable[[R, str], str]
    """(rule, object of a group): where it lives. Groups of one scope are in one partition: their facts are in order."""
    shares_home: Callable[[R], bool]
    """(rule): whether its groups live with those of other rules of the same scopes, so that facts are stored once."""

    # What it wants.
    desire: Callable[[R, Group[S], Group[S] | None, datetime], DesiredState]
    """(rule, group, shared group, now): the absolute desired state."""
    forbids: Callable[[R, Group[S], DesiredState], tuple[Held, str] | None]
    """(rule, group, desired state): why a desired state is never carried out, whatever led to it; None: it may be."""
    requested: Callable[[R, Group[S], DesiredState, Sequence[Action], datetime], Group[S]]
    """(rule, group, desired, fresh actions, now): `desired` was let through, and these of its actions are new."""
    reschedules: Callable[[Group[S], Group[S]], bool]
    """(before, after): whether asking for it has moved the moment of its next step, so that it is desired once more."""
    premises: Callable[[R, Action, DecisionContext[S]], Iterable[Alternatives]]
    """(rule, action, context): what an action rests on, by its own words; nothing for a person's command, a way back to
    safety, and the further steps of what was begun. A checker of the audit asks; the engine does not."""
    tells: bool
    """True if the kind's purpose is to notify: its notifications wait for guards, and there are no others."""

    # What changes it.
    observe: Callable[[R, Group[S], Fact, datetime], Group[S]]
    """Fold in inventory or a command. A late fact never undoes a newer one."""
    heard: Callable[[R, Group[S], str, datetime], Group[S]]
    """(rule, group, target, at): an observation has been folded into this member. For kinds with clocks of their own:
    of several changes that are read together, none is lost."""
    advance: Callable[[R, Group[S], Group[S] | None, datetime], Group[S]]
    """(rule, group, shared group, now): what time alone changes; the same whenever it is looked at."""
    remembers: Callable[[R, str], bool]
    """(rule, signal): whether a signal is waited for although it has been silent for long."""
    done: Callable[[R, Group[S], Action, datetime], Group[S]]
    """The world is as the action asked. In a dry run called at once: a rehearsal."""
    failed: Callable[[R, Group[S], Action, Outcome, datetime], Group[S]]
    """The action could not be carried out. It is tried again anyhow."""
    said: Callable[[R, Group[S], Action, Outcome], Group[S]]
    """Fold in the further content of a done action's outcome."""
    reset: Callable[[R, Group[S]], Group[S]]
    """Forget what was only rehearsed: the rule has left the mode DryRun."""
    without_dates: Callable[[S], object]
    """(state): what of it is more than when things were seen. While that is the same, a group is stored later."""

    # What its groups say to others, and know together.
    emits: Callable[[R, Group[S], Group[S], Sequence[Fact], datetime], tuple[Fact, ...]]
    """(rule, before, after, facts, now): what other groups get of this step. What is lost is said again, so it
    has to be repeated from time to time where that matters."""
    is_in_force: Callable[[R, str], bool]
    """(rule, cluster): whether what it has said of this cluster still counts."""
    asked: Callable[[R, Group[S], datetime], tuple[Group[S], Missing]]
    """(rule, group, since): its judgement is wanted by looks from then or later. Gives the looks that are missing."""
    takes: Callable[[R], tuple[str, tuple[str, ...]] | None]
    """(rule): targets, as a pattern, and signals of which it makes something that other rules use in their place."""
    skips_taken: Callable[[R], bool]
    """(rule): whether it ignores the signals that such rules take."""
    shared_object: str | None
    """The object of the group whose state all others of the rule are given as `shared_group`; it is decided first."""
    dependents: Callable[[R, Group[S], Group[S], Iterable[Group[S]]], Iterable[Group[S]]]
    """(rule, before, after, others): which of the others are decided again because the shared group has changed so."""

    # Rule files change, groups stay.
    selects: Callable[[R, str], bool]
    """(rule, object): whether the rule as it is written now still matches this."""
    keeps: Callable[[Group[S]], bool]
    """(group): whether it records what was changed in the world, so that it is stored although its rule is no more."""
    way_back_only: Callable[[R], R] | None
    """(rule): the rule as it counts after it has left the rule files, for as long as a group of it is kept. None: it
    counts no more."""
    forget: Callable[[R, Group[S], Callable[[str, str], bool]], Group[S]]
    """(rule, shared group, still said): the group without what other rules, by name and cluster, no longer
    say."""
    as_it_counts: Callable[[R, Group[S], Callable[[str, str], bool]], Group[S]]
    """(rule, stored group, taken): without the signals that other rules take now, by target and name."""


def nothing(*_: Any) -> tuple[Any, ...]:
    """Empty tuple, whatever the arguments."""
    return ()


def none(*_: Any) -> None:
    """None, whatever the arguments."""


def no(*_: Any) -> bool:
    """False, whatever the arguments."""
    return False


def yes(*_: Any) -> bool:
    """True, whatever the arguments."""
    return True


def no_targets(*_: Any) -> frozenset[str]:
    """Empty set: the group subscribes to no target."""
    return frozenset()


def itself(_rule: Any, object_: str) -> str:
    """The object itself."""
    return object_


def its_object(_rule: Any, action: Action) -> str:
    """The object that the action is said to be on: no field of its own leads to another."""
    return action.object


def unchanged(_rule: Any, group: Group, *_: Any) -> Group:
    """The group as it is."""
    return group


def whole_state(state: object) -> object:
    """The whole state."""
    return state


def not_asked(_rule: Any, group: Group, _since: datetime) -> tuple[Group, Missing]:
    """Default of `asked`: no judgement of its own, so no look is missing."""
    return group, ()


def all_of(_rule: Any, _before: Group, _after: Group, others: Iterable[Group]) -> Iterable[Group]:
    """All of the others."""
    return others

"""A limit as the engine sees it: a kind of rules that no rule file has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rules.core.kind import (
    RuleKind,
    all_of,
    its_object,
    itself,
    no,
    no_targets,
    none,
    not_asked,
    nothing,
    unchanged,
    yes,
)
from rules.limits.limiter import LimiterRule, advance, covers, desire, emits, interests, objects, observe
from rules.limits.limiters import limiters
from rules.limits.state import LimiterState, without_dates
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import Rule


def implied(rules: Sequence[Rule], guards: Sequence[FileGuard], _sources: object) -> Iterable[LimiterRule]:
    """One for each limit that several groups share."""
    return limiters(rules, guards)


KIND: RuleKind[LimiterRule, LimiterState] = RuleKind(
    model=LimiterRule,
    because=frozenset(),
    holds=frozenset(),
    actions=(),
    implied=implied,
    state=LimiterState,
    resolved=frozenset(),
    interests=interests,
    objects=objects,
    first=nothing,
    creates_group=yes,
    leaves=no,
    everywhere=no,
    subscribed=none,
    subscribing=(),
    subscribes=no_targets,
    owner=itself,
    written=its_object,
    scope=itself,
    shares_home=no,
    desire=desire,
    forbids=none,
    requested=unchanged,
    reschedules=no,
    premises=nothing,
    tells=False,
    observe=observe,
    heard=unchanged,
    advance=advance,
    remembers=no,
    done=unchanged,
    failed=unchanged,
    said=unchanged,
    reset=unchanged,
    without_dates=without_dates,
    emits=emits,
    is_in_force=no,
    asked=not_asked,
    takes=none,
    skips_taken=no,
    shared_object=None,
    dependents=all_of,
    selects=covers,
    keeps=no,
    way_back_only=None,
    forget=unchanged,
    as_it_counts=unchanged,
)
"""Registration of limits as a rule kind."""

"""Notification: people are told when a target turns bad, and when it is good again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bus.messages import Action, Fact, Health, Observation, iso
from rules.core.desired import DesiredState, Notice
from rules.core.group import with_state
from rules.core.interests import Interest, observed
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
    whole_state,
    yes,
)
from rules.core.reasons import Because
from rules.kinds.notification import checks
from rules.kinds.notification.model import Notification
from rules.kinds.notification.state import NotificationGroup, NotificationState
from rules.rulefile.file_kind import FileKind, as_written, needed, peers_needed
from rules.rulefile.model import UnknownAs
from rules.rulefile.targets import matches
from rules.rulefile.template import substitute


def desire(
    rule: Notification, group: NotificationGroup, _shared_group: NotificationGroup | None, _now: datetime
) -> DesiredState:
    """Give what people should be told. A target that was good from the start is no news."""
    member = group.members.get(group.object)
    if member is None or member.settled is None:
        return DesiredState()
    told = "Healthy" if member.settled else "Unhealthy"
    if told == group.state.last_notified or (member.settled and group.state.last_notified is None):
        return DesiredState()
    # Where Unknown counts as bad, people are not told that it is known.
    unknown = member.status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.UNHEALTHY
    words = dict(member.labels) | {
        "target": group.object, "status": "Unknown" if unknown else told, "since": iso(member.since),
        "detail": member.detail,
    }  # fmt: skip
    return DesiredState(
        notice=Notice(told, substitute(rule.message, words), resolves=member.settled),
        because=Because.TARGET_CHANGED,
        detail=member.detail,
    )


def requested(
    _rule: Notification, group: NotificationGroup, desired: DesiredState, fresh: Sequence[Action], _now: datetime
) -> NotificationGroup:
    """Remember what people are told."""
    return with_state(group, last_notified=desired.notice.status) if fresh and desired.notice is not None else group


def reset(_rule: Notification, group: NotificationGroup) -> NotificationGroup:
    """Forget notifications that were only rehearsed."""
    return with_state(group, last_notified=None)


def interests(rule: Notification) -> Iterable[Interest]:
    """Every look at a target that matches."""
    yield Interest(observed(rule.match))


def objects(rule: Notification, fact: Fact) -> Iterable[str]:
    """A group for each target that matches."""
    return (fact.target,) if isinstance(fact, Observation) and covers(rule, fact.target) else ()


def covers(rule: Notification, target: str) -> bool:
    """True if the rule matches this target."""
    return matches(rule.match, target)


KIND: RuleKind[Notification, NotificationState] = RuleKind(
    model=Notification,
    because=frozenset({Because.TARGET_CHANGED}),
    holds=frozenset(),
    actions=(),
    implied=nothing,
    state=NotificationState,
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
    requested=requested,
    reschedules=no,
    premises=nothing,
    tells=True,
    observe=unchanged,
    heard=unchanged,
    advance=unchanged,
    remembers=no,
    done=unchanged,
    failed=unchanged,
    said=unchanged,
    reset=reset,
    without_dates=whole_state,
    emits=nothing,
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
"""Registration of Notification."""


FILE_KIND = FileKind(
    model=Notification,
    plain=as_written,
    beside=as_written,
    checks=checks.rule,
    checks_together=nothing,
    needs=peers_needed,
    consumers=needed(peers_needed),
    inventory=nothing,
    reads=nothing,
    lists=no,
    tolerates=nothing,
    goes_back_at_once=False,
    hints=nothing,
    conflicts=nothing,
    phrases=("notifies about", "notifies about the recovery of"),
)
"""Registration of Notification for the loader and the hints."""

"""A person's yes, to exactly what was shown and only while it is fresh; and a person's no, for as long as they say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pydantic_core import to_jsonable_python

from bus.messages import Approve, Reject
from rules.core.desired import PlannedAction, cut, told
from rules.core.grants import ApprovalRequest, Grants, Rejection
from rules.core.group import Group
from rules.core.reasons import Held
from rules.core.values import replace

NEVER = datetime.min.replace(tzinfo=UTC)
"""Before all moments."""
REJECTED_MAX = 16
"""Largest number of rejected plans that a group remembers: the newest ones."""


def approval(
    group: Group, acts: Sequence[PlannedAction], expire_seconds: float, now: datetime
) -> tuple[Group, tuple[Held, str] | None, datetime | None]:
    """Give the group with what a person was asked, why these acts may not go yet, and when that changes by itself.

    Another desired state is another request, and so is the same one after another outage. One that has expired is asked
    for again after as long a time once more, while the same is still wanted. A yes that comes meanwhile and names the
    same plan counts.
    """
    grants, desired = group.grants or Grants(), fingerprint(acts)
    standing = tuple(no for no in grants.rejected if now < no.until)
    request = grants.request
    if standing != grants.rejected:
        over = {no.desired for no in grants.rejected} - {no.desired for no in standing}
        request = None if request is not None and request.desired in over else request
        group = replace(group, grants=(grants := replace(grants, request=request, rejected=standing)))
    if request is None or request.desired != desired or request.asked_at < due(acts):
        request = ApprovalRequest(desired, now)
        group = replace(group, grants=replace(grants, request=request))
    if (no := next((no for no in standing if no.desired == desired), None)) is not None:
        said = f"by {no.by}: {no.reason}; not asked again before {no.until.isoformat()}"
        return group, (Held.REJECTED, f"{said}: {in_short(acts)}"), no.until
    good_for = timedelta(seconds=expire_seconds)
    until, again = request.asked_at + good_for, request.asked_at + 2 * good_for
    if request.approved_at is not None and (request.named or request.approved_at < until):
        late = request.approved_at >= until
        ends = request.approved_at + good_for if late else until
        if now < ends:
            return group, None, ends
    if now >= again:
        request = ApprovalRequest(desired, now)
        group = replace(group, grants=replace(grants, request=request))
        until = now + good_for
    elif now >= until:
        asked = f"asked at {request.asked_at.isoformat()}, good for {expire_seconds:g} s"
        return group, (Held.APPROVAL_EXPIRED, f"{asked}; asked again at {again.isoformat()}: {in_short(acts)}"), again
    return group, (Held.AWAITING_APPROVAL, f"{in_short(acts)}; until {until.isoformat()}"), until


def is_asked_again(before: Group, after: Group) -> bool:
    """True if the group asks a person for another plan than before: it has to be shown again, and an earlier approval
    does not count for it."""
    asked, asks = (group.grants.request if group.grants is not None else None for group in (before, after))
    return asks is not None and (asked is None or (asked.desired, asked.asked_at) != (asks.desired, asks.asked_at))


def dropped(group: Group) -> Group:
    """Give the group without a request: what was asked for is no longer wanted."""
    grants = group.grants
    if grants is None or grants.request is None:
        return group
    return replace(group, grants=replace(grants, request=None))


def hear(group: Group, fact: Approve) -> Group:
    """Fold a yes in. One that is older than the request, or names another one, was meant for that.

    A later yes that names the plan takes the place of the one before, which may be worth nothing any more.
    """
    grants = group.grants
    request = grants.request if grants is not None else None
    if grants is None or request is None or fact.observed_at < request.asked_at:
        return group
    if fact.request not in ("", request.desired):
        return group
    named = fact.request == request.desired
    if request.approved_at is not None and not (named and fact.observed_at > request.approved_at):
        return group
    if any(no.desired == request.desired and no.since > fact.observed_at for no in grants.rejected):
        return group
    yes = replace(request, approved_at=fact.observed_at, named=named, by=fact.who, reason=fact.reason)
    others = tuple(no for no in grants.rejected if no.desired != request.desired)
    return replace(group, grants=replace(grants, request=yes, rejected=others))


def refuse(group: Group, fact: Reject) -> Group:
    """Fold a no in. It takes back a yes that is older, and is remembered also where the plan is not wanted just now."""
    grants = group.grants or Grants()
    request, at = grants.request, fact.observed_at
    desired = fact.request or (request.desired if request is not None and at >= request.asked_at else "")
    mine = request is not None and request.desired == desired
    if not desired or (mine and request is not None and request.approved_at is not None and request.approved_at > at):
        return group
    if any(no.desired == desired and no.since > at for no in grants.rejected):
        return group
    no = Rejection(desired, fact.who, fact.reason, at, at + timedelta(seconds=fact.for_seconds))
    rejected = (*(other for other in grants.rejected if other.desired != desired), no)[-REJECTED_MAX:]
    if mine and request is not None:
        request = replace(request, approved_at=None, named=False, by="", reason="")
    return replace(group, grants=replace(grants, request=request, rejected=rejected))


def due(acts: Sequence[PlannedAction]) -> datetime:
    """Time at which the window of what is to be left was over. It begins again where a source reports that its target
    was not bad all the time: what was asked before that was asked for an earlier outage."""
    return max((need.since for act in acts for need in act.needs if not need.healthy), default=NEVER)


def fingerprint(acts: Sequence[PlannedAction]) -> str:
    """Give 16 hex digits, the same for the same acts whatever led to them."""
    said = [
        [act.action_type.__name__, act.concurrency_key, act.object, to_jsonable_python(dict(act.fields))]
        for act in acts
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def in_short(acts: Sequence[PlannedAction]) -> str:
    """Say in one line what would be done."""
    return cut(", ".join(f"{act.action_type.__name__} {_what(act)}".strip() + f" ({act.because})" for act in acts))


def _what(act: PlannedAction) -> str:
    """Description of an act for approval: object, numbers and places, without technical fields."""
    shown = ("weights", "clusters", "from_", "purge_mode", "zone", "step", "taints")
    words = [told(name.rstrip("_"), act.fields[name]) for name in shown if act.fields.get(name)]
    return " ".join(filter(None, [act.object, *words]))

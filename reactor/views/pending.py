"""Requests for approval: which request of which group, by the fingerprint that an answer names."""

from __future__ import annotations

from rules.core.group import Group
from rules.core.reasons import Held

WAITING = (Held.AWAITING_APPROVAL, Held.APPROVAL_EXPIRED, Held.REJECTED)
"""An approval of what was shown counts also when it comes late, or after a rejection."""


def waits(group: Group) -> bool:
    """True if people can approve or reject something of this group."""
    return group.held is not None and group.held.reason in WAITING


def about(group: Group) -> str:
    """Give the object that the request is about."""
    return (group.held.about if group.held else None) or group.object


def request_of(group: Group) -> str:
    """Give what names the request that is shown: if the rule wants something else by then, nothing is approved."""
    request = group.grants.request if group.grants is not None else None
    return request.desired if request is not None else ""

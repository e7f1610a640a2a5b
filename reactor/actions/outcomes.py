"""Outcome of an action from the error that ended it: one word for machines, the whole sentence for people.

Terminal
└── Declined       the action and the world do not fit together; nothing was written
Retryable
├── NotAsAsked     the write was accepted, and yet the world is not as asked
├── OutOfTime      the time of this call is over; the next call goes on
└── Waited         the decider did not say in time whether it still wants this
"""

from __future__ import annotations

from typing import Literal

from bus.messages import Outcome
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, Retryable, Terminal

REFUSALS = frozenset({"Stale", "AlreadyDone", "AllZero", "DryRun", "CalledOff"})
"""Reasons for which nothing is tried again: the action itself must not be carried out."""

# Subclasses of these tell a reader of the outcome nothing more; any other error is called by its own name.
_REASONS: tuple[tuple[type[ReactorError], str], ...] = (
    (NotFound, "RouteNotFound"),
    (Forbidden, "Forbidden"),
    (Invalid, "Invalid"),
    (Conflict, "Conflict"),
    (ApiUnavailable, "ApiUnavailable"),
)
DETAIL_MAX = 1024  # an outcome is a fact on the bus: a server's page-long error has no business in one


class Declined(Terminal):
    """The action cannot be carried out on this object as it is; `reason` says why in one word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NotAsAsked(Retryable):
    """The write was accepted, and its answer shows something else: something in the cluster changes what we send."""


class OutOfTime(Retryable):
    """The time in which this call may begin writes is over. What it has done stays, and the next call goes on."""


class Waited(Retryable):
    """The decider did not say in time whether it still wants the action, so nothing more of it was written."""


def reason_of(error: ReactorError) -> str:
    """Give the one word for an error."""
    if isinstance(error, Declined):
        return error.reason
    return next((word for kind, word in _REASONS if isinstance(error, kind)), type(error).__name__)


def done(action: str, clock: Clock, *, wrote: bool, detail: str = "") -> Outcome:
    """The world is as asked; `wrote` says whether we had to make it so."""
    return Outcome(action=action, status="Done", detail=detail[:DETAIL_MAX], wrote=wrote, observed_at=clock.now())


def failed(action: str, clock: Clock, error: ReactorError) -> Outcome:
    """Refused where the action must not be carried out, else Failed. `wrote` is False: no write is known."""
    reason = reason_of(error)
    status: Literal["Failed", "Refused"] = "Refused" if reason in REFUSALS else "Failed"
    detail = str(error)[:DETAIL_MAX]
    return Outcome(action=action, status=status, reason=reason, detail=detail, wrote=False, observed_at=clock.now())

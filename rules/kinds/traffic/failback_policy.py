"""TrafficFailover's way back: when, by whose word, and how long after a failure."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from rules.rulefile.fields import YEAR, Model
from rules.rulefile.recovery_backoff import RecoveryBackoff


class FailbackMode(StrEnum):
    """Mode of the return to the primary."""

    AUTOMATIC = "Automatic"
    TRIAL = "Trial"
    MANUAL = "Manual"


class OnDrift(StrEnum):
    """Reaction to weights that another writer has changed."""

    RESTORE = "Restore"
    HOLD = "Hold"


class Trial(Model):
    """A small part of the traffic, for a while."""

    percent: Annotated[int, Field(ge=1, le=99)] = 5
    """The primary's share while it is tried."""
    seconds: Annotated[float, Field(gt=0, le=YEAR)] = 60
    """Length of the trial: one range of the query, and two readings, or more."""


class TrafficFailback(Model):
    """The way back to the primary."""

    mode: FailbackMode = FailbackMode.AUTOMATIC
    """Automatic: when it has been Healthy for recoverySeconds. Trial: if its health is not known without traffic, it
    gets `trial.percent` first. Manual: only by command; with `overflow` not even a part of it."""
    signals: tuple[Annotated[str, StringConstraints(min_length=1, max_length=253)], ...] | None = Field(
        default=None, min_length=1
    )
    """Signals whose Healthy is needed for the return; default: the rule's `signals`. Unknown of the others
    is ignored."""
    trial: Trial = Trial()
    """Mode Trial: how much, and for how long."""
    backoff: RecoveryBackoff = RecoveryBackoff()
    """The wait of a backend that fails again soon after its return, or in a trial."""

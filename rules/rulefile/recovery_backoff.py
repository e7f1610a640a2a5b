"""Backoff of recovery: the longer time for which what fails again must be good before a rule goes back to it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.rulefile.fields import Model, Seconds


class RecoveryBackoff(Model):
    """Backoff after repeated failures."""

    factor: Annotated[float, Field(ge=1, le=100)] = 2
    """Each time the wait is so much longer."""
    max_seconds: Seconds = 3600
    """The longest wait, where recoverySeconds are not longer."""
    reset_seconds: Seconds = 3600
    """A failure this long after the return, or later, counts as the first again."""

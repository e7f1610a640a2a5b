"""Notification: what a rule that tells people may say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from rules.rulefile.fields import Pattern
from rules.rulefile.model import Rule


class Notification(Rule):
    """Tells people, and does nothing else."""

    kind: Literal["Notification"]
    match: Pattern
    """The targets that people are told of, as a pattern."""
    message: Annotated[str, StringConstraints(min_length=1, max_length=2048)] = "{target} is {status} since {since}"
    """`{target}`, `{status}`, `{since}`, `{detail}` and the observation's labels."""

    @property
    def default_peers(self) -> tuple[str, ...]:
        """The targets of which it tells."""
        return (self.match,)

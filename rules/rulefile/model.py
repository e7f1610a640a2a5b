"""Model of rule files. The contract with users: names, defaults and meaning are fixed.

Keys are camelCase as in Kubernetes, durations are numbers of seconds and say so in their name.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, PrivateAttr, StringConstraints

from bus.messages import Mode

# These names are also this module's: the author of a kind finds all that it is made of in one place.
from rules.rulefile.fields import YEAR as YEAR
from rules.rulefile.fields import ClusterName as ClusterName
from rules.rulefile.fields import KubeName as KubeName
from rules.rulefile.fields import Model as Model
from rules.rulefile.fields import Name as Name
from rules.rulefile.fields import Pattern as Pattern
from rules.rulefile.fields import Period as Period
from rules.rulefile.fields import Seconds as Seconds
from rules.rulefile.fields import Selector as Selector
from rules.rulefile.fields import TargetName as TargetName
from rules.rulefile.fields import Template as Template
from rules.rulefile.guards import Guards

API_VERSION = "reactor/v1"
STEPS_MAX = 100
"""Largest number of steps that follow from one another in a rule."""


class UnknownAs(StrEnum):
    """Meaning of Unknown for a rule."""

    HOLD = "Hold"
    UNHEALTHY = "Unhealthy"


class Rule(Model):
    """Keys of every rule."""

    name: Name
    """The name in logs, status and commands; unique over all rule files."""
    mode: Mode = Mode.DRY_RUN
    """Enforce acts; DryRun decides, records and publishes what it would do; Off does nothing."""
    signals: tuple[Annotated[str, StringConstraints(min_length=1, max_length=253)], ...] | None = Field(
        default=None, min_length=1
    )
    """Signals of a target that count; all by default. The worst one decides."""
    toleration_seconds: Seconds = 0
    """The time for which a target must be bad without a break before the rule acts."""
    recovery_seconds: Seconds = 0
    """The time for which a target must be Healthy again before the rule goes back."""
    treat_unknown_as: UnknownAs = UnknownAs.HOLD
    """Hold: an open window waits. Unhealthy: Unknown counts as bad."""
    guards: Guards | None = None
    """Limits on what this rule does: how much, how fast, when."""
    notify: tuple[Name, ...] = ()
    """Notification targets, by their names in the settings."""
    _skew: timedelta = PrivateAttr(default=timedelta())

    @property
    def skew(self) -> timedelta:
        """Largest difference between the clock that dates facts and the one that decides."""
        # Each decision asks for it five times. `self._skew` is found by pydantic's `__getattr__`, in 40 times as long.
        skew: timedelta = (self.__pydantic_private__ or {})["_skew"]
        return skew

    def window(self, seconds: float) -> timedelta:
        """Give how long something has to be seen so: longer by what clocks may differ, unless it is at once."""
        return timedelta(seconds=seconds) + self.skew if seconds > 0 else timedelta()

    def seen_with(self, skew: timedelta) -> Self:
        """Give the rule for facts whose clocks may differ by so much: the engine hands kinds no other."""
        if skew == self.skew:
            return self
        rule = self.model_copy()
        rule._skew = skew  # noqa: SLF001 - its own
        return rule

    @property
    @abstractmethod
    def default_peers(self) -> tuple[str, ...]:
        """Default of its guards' `peers`: patterns of targets. Without them a limit would limit nothing."""

    @property
    def limited_by_default(self) -> bool:
        """True if its groups are limited where no guard says so."""
        return False

"""Limits: what a rule file may say under `guards`, on a rule or for several rules at once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from rules.rulefile.fields import YEAR, Model, Name, Pattern, Seconds

Rounding = Literal["Down", "Up"]


_PERCENTAGE = re.compile(r"([0-9]{1,2}(\.[0-9]{1,4})?|100)%\Z")


def _share(value: object) -> object:
    if isinstance(value, str) and not _PERCENTAGE.match(value):
        msg = f'must be a count, or a percentage in quotes such as "40%", got {value!r}'
        raise ValueError(msg)
    return value


CountOrPercent = Annotated[Annotated[int, Field(ge=0, le=1_000_000)] | str, BeforeValidator(_share)]
"""A count, or a percentage of the peers."""
Rate = Annotated[float, Field(ge=0.0001, le=1000)]
"""Per second: from about nine a day to a thousand a second."""


class Disruption(Model):
    """Slow down when many peers are bad, and stop when all are, as the Kubernetes node lifecycle does."""

    unhealthy_at: CountOrPercent
    """From so many bad peers on, and at least three, it is a partial disruption."""
    secondary_rate_per_second: Literal[0] | Rate
    """Instead of ratePerSecond in a partial disruption; 0: nothing is done. With no good peer left, nothing is done."""
    rounding: Rounding = "Up"
    """Rounding of a percentage to a count; Up is Kubernetes' own comparison of shares."""
    large_size: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """A partial disruption of at most so many peers stops everything. Default: it only slows; Kubernetes has 50."""


def _cron(text: str) -> str:
    if len(text.split()) != 5:
        msg = f"needs five fields (minute, hour, day of month, month, day of week), got {text!r}"
        raise ValueError(msg)
    try:
        CronSim(text, datetime(1970, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        msg = f"{text!r} is no cron expression: {error}"
        raise ValueError(msg) from error
    return text


def _timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"{text!r} is no time zone: write one of the IANA database, such as Europe/Berlin or UTC"
        raise ValueError(msg) from error
    return text


class BlockedWindow(Model):
    """A time in which nothing starts by itself."""

    cron: Annotated[str, StringConstraints(max_length=253), AfterValidator(_cron)]
    """Start of the window: minute, hour, day of month, month, day of week (0 and 7 are Sunday)."""
    duration_seconds: Annotated[float, Field(ge=1, le=31 * 86_400)]
    """Length of the window, in real seconds also when clocks change."""
    timezone: Annotated[str, StringConstraints(max_length=64), AfterValidator(_timezone)] = "UTC"
    """Time zone of the cron expression: `Europe/Berlin`."""


class Approval(Model):
    """A person has to approve each action."""

    expire_seconds: Annotated[float, Field(ge=1, le=YEAR)] = 900
    """The time for which a request, and its approval, is valid."""


class Guards(Model):
    """Limits of what rules may do. None of them stops a step back to safety."""

    max_concurrent: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """The number of things that may be acted upon at one time."""
    rate_per_second: Rate | None = None
    """Actions that may begin per second, for the whole fleet of reactors. They do not save up: one at a time."""
    max_unhealthy: CountOrPercent | None = None
    """With more bad peers than this the rule holds; Unhealthy and Unknown both count, and so does what failed."""
    min_healthy: CountOrPercent | None = None
    """With fewer good peers than this the rule holds."""
    rounding: Rounding | None = None
    """Rounding of a percentage to a count. Cluster API rounds down, the node healthcheck operator up: say which."""
    peers: Pattern | None = None
    """Targets that are counted. Default: all targets of the kind that the rule acts on."""
    disruption: Disruption | None = None
    """Slow down or stop while many peers are bad."""
    cooldown_seconds: Seconds = 0
    """Quiet time after an action on the same object."""
    blocked_windows: Annotated[tuple[BlockedWindow, ...], Field(max_length=100)] = ()
    """Times in which nothing starts by itself."""
    approval: Approval | None = None
    """A person has to approve, as in mode Approve."""

    @property
    def counts_peers(self) -> bool:
        """True if the health of the peers has to be known."""
        return self.max_unhealthy is not None or self.min_healthy is not None or self.disruption is not None

    @property
    def shared(self) -> bool:
        """True if several groups share one of the limits."""
        return self.max_concurrent is not None or self.rate_per_second is not None or self.counts_peers

    @model_validator(mode="after")
    def _together(self) -> Self:
        percentages = [one for one in (self.max_unhealthy, self.min_healthy) if isinstance(one, str)]
        if any(one not in ("0%", "100%") for one in percentages) and self.rounding is None:
            msg = f"rounding is required with {percentages[0]}: 40% of 6 peers is 2 rounded Down, and 3 rounded Up"
            raise ValueError(msg)
        if self.rounding is not None and not percentages:
            msg = "rounding only goes with a percentage in maxUnhealthy or minHealthy: remove it"
            raise ValueError(msg)
        if self.peers is not None and not self.counts_peers:
            msg = "peers only goes with maxUnhealthy, minHealthy or disruption: remove it, or add one of them"
            raise ValueError(msg)
        return self


RulePattern = Annotated[str, StringConstraints(min_length=1, max_length=253)]


class FileGuard(Guards):
    """Limits that several rules share."""

    rules: Annotated[tuple[RulePattern, ...], Field(min_length=1, max_length=1000)]
    """Patterns of the rules' names: `*`, `shop-*`."""
    name: Name | None = None
    """The name in holds and reports. Default: its patterns."""

    @property
    def label(self) -> str:
        """Its name, or its patterns."""
        return self.name or ",".join(self.rules)

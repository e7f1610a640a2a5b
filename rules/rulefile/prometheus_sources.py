"""Sources that get health from Prometheus and Alertmanager: their keys in a rule file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from rules.rulefile.fields import Model, Name, Period
from rules.rulefile.matchers import Matchers
from rules.rulefile.source_keys import Source, TargetsMax

TARGETS_OF_ALERTS_MAX = 5000
"""Of how many targets a source of alerts may speak, whose labels may be ever new ones: the largest group that
Alertmanager was seen to post."""
ALERTS_MAX = 100_000
"""Largest number of alerts of one source of alerts, as many as one post: some 2.5 kB of memory each with few labels."""
AlertsMax = Annotated[int, Field(ge=1, le=10_000_000)]
PromQL = Annotated[str, StringConstraints(min_length=1, max_length=16_384)]


def _matchers(text: str) -> str:
    Matchers.parse(text)
    return text


MatchersText = Annotated[str, StringConstraints(max_length=4096), AfterValidator(_matchers)]


class Bound(Model):
    """A number that a sample is compared with."""

    above: float | None = None
    """Unhealthy if the sample is greater than this."""
    below: float | None = None
    """Unhealthy if the sample is less than this."""


class PrometheusQuery(Source):
    """A PromQL instant query on a schedule."""

    kind: Literal["PrometheusQuery"]
    prometheus: Name
    """A named endpoint of the settings."""
    query: PromQL
    """PromQL, evaluated as an instant query."""
    every_seconds: Period = 15
    """Seconds between two queries."""
    unhealthy_when: Literal["Present", "Absent"] | Bound = "Present"
    """Present: a series in the result is Unhealthy, one that leaves is Healthy. Absent: the other way round.
    above, below: by the sample."""


class Confirm(Model):
    """Proof that a resolved alert's target has recovered."""

    prometheus: Name
    """A named endpoint of the settings."""
    query: PromQL
    """Any series that agrees with the alert's labels is the proof."""
    every_seconds: Period = 15
    """Seconds between two queries."""


class AlertmanagerWebhook(Source):
    """Alerts of Alertmanager's webhook, version 4: firing is Unhealthy."""

    kind: Literal["AlertmanagerWebhook"]
    max_targets: TargetsMax = TARGETS_OF_ALERTS_MAX
    """The most targets that its alerts may have. Observations of more are refused and counted."""
    max_alerts: AlertsMax = ALERTS_MAX
    """The most alerts that it may have: firing ones, and resolved ones that are still remembered. Further ones are
    refused and counted."""
    matchers: MatchersText | tuple[MatchersText, ...] = ""
    """Alertmanager's syntax; all must match. Empty: every alert."""
    on_resolved: Literal["Confirm", "Healthy"] = "Confirm"
    """Confirm: resolved is Unknown until confirmed. Alertmanager also says resolved when Prometheus died."""
    confirm: Confirm | None = None
    """The only proof of recovery, where it is given. Else another signal proves it, one that was Unhealthy in the same
    outage and is Healthy now."""
    max_silence_seconds: Annotated[float, Field(ge=1, le=86_400 * 7)] | None = None
    """The time for which the newest POST proves that an alert still fires, where the settings name no Alertmanager to
    ask. Default: staleSeconds. A window that ends later waits for the next POST."""

    @property
    def recovers(self) -> bool:
        """True if it ever reports Healthy by itself."""
        return self.on_resolved == "Healthy" or self.confirm is not None

    @property
    def post_proves_seconds(self) -> float:
        """For how long after it came in a POST proves that an alert fires, where no Alertmanager can be asked."""
        return self.stale_seconds if self.max_silence_seconds is None else self.max_silence_seconds

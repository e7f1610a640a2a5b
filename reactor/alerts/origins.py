"""Sources that an alert concerns, and the targets that each makes of its labels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from bus.messages import Target
from reactor.alerts.alert import Alert
from reactor.alerts.alert_limits import Admission
from reactor.alerts.states import AlertOpinion, AlertState
from reactor.runtime import telemetry
from reactor.runtime.log_throttle import LogThrottle
from rules.rulefile.matchers import Matchers
from rules.rulefile.sources import AlertmanagerWebhook
from rules.rulefile.targets import MissingLabel, check_template, fill

log = logging.getLogger(__name__)
_TARGET: TypeAdapter[str] = TypeAdapter(Target)


@dataclass(frozen=True, slots=True)
class Origin:
    """A source, ready to be asked."""

    source: AlertmanagerWebhook
    matches: Callable[[Mapping[str, str]], bool]
    used: frozenset[str]
    """The labels that its target is made of."""
    narrow: bool
    """True if it has matchers: without, everything that is *posted* is meant, not everything that exists."""

    @property
    def believes(self) -> bool:
        """True if resolved alone counts as recovered."""
        return self.source.on_resolved == "Healthy"

    def opinion(self, target: str) -> AlertOpinion:
        """The opinion of this source about a target."""
        return AlertOpinion(self.source.name, self.source.says, target)


class Origins:
    """AlertmanagerWebhook sources of the rules in force."""

    def __init__(self, sources: Sequence[AlertmanagerWebhook], throttle: LogThrottle, admission: Admission) -> None:
        self.all = [_origin(source) for source in sources]
        self._throttle = throttle
        self._admission = admission

    def of_post(self, source: str, alert: Alert) -> dict[AlertOpinion, Origin] | None:
        """Give the opinions that an alert posted to this source feeds. Several sources may have one name.

        None: a source means it, but no target can be made of it, or it has too many; counted and logged.
        """
        return self._among([origin for origin in self.all if origin.source.name == source], alert)

    def of_listed(self, alert: Alert) -> dict[AlertOpinion, Origin]:
        """Give the opinions that an alert found in Alertmanager's API feeds: those of sources with matchers."""
        return self._among([origin for origin in self.all if origin.narrow], alert) or {}

    def of_state(self, state: AlertState) -> Origin | None:
        """Give the source that a state came by. None: the rules have changed and no source wants it any more."""
        for origin in self.all:
            same = (origin.source.name, origin.source.says) == (state.source, state.signal)
            if same and origin.matches(state.labels) and _target(origin, state.labels) == state.target:
                return origin
        return None

    def _among(self, origins: Sequence[Origin], alert: Alert) -> dict[AlertOpinion, Origin] | None:
        found: dict[AlertOpinion, Origin] = {}
        failed = False
        for origin in origins:
            if not origin.matches(alert.labels):
                continue
            target = _target(origin, alert.labels)
            if isinstance(target, str) and not self._admission.admits(
                origin.opinion(target), alert.fingerprint, origin.source
            ):
                failed = True
            elif isinstance(target, str):
                found.setdefault(origin.opinion(target), origin)  # the first that matches says how
            else:
                failed = True
                self._report(origin, alert, target)
        return None if failed and not found else found

    def _report(self, origin: Origin, alert: Alert, error: ValueError) -> None:
        name = origin.source.name
        reason = "MissingLabel" if isinstance(error, MissingLabel) else "BadTarget"
        telemetry.source_errors.labels(name, reason).inc()
        if self._throttle((name, origin.source.target, str(error))):
            log.warning(
                "no target can be made of an alert",
                extra={
                    "source": name,
                    "target": origin.source.target,
                    "alert": alert.fingerprint,
                    "reason": str(error),
                },
            )


def _origin(source: AlertmanagerWebhook) -> Origin:
    texts = (source.matchers,) if isinstance(source.matchers, str) else source.matchers
    parsed = [Matchers.parse(text) for text in texts]

    def matches(labels: Mapping[str, str]) -> bool:
        return all(matcher.matches(labels) for matcher in parsed)

    return Origin(source, matches, check_template(source.target), any(matcher.all for matcher in parsed))


def _target(origin: Origin, labels: Mapping[str, str]) -> str | ValueError:
    try:
        return _TARGET.validate_python(fill(origin.source.target, labels))
    except MissingLabel as error:
        return error
    except ValidationError:
        return ValueError("a label makes it longer than 1,024 characters, or holds control or invisible characters")

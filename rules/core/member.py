"""One target as a group knows it: its signals, its window, and its settled health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bus.messages import Health

FOREVER = datetime.max.replace(tzinfo=UTC)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Signal:
    """Newest observation of a target by one signal."""

    status: Health
    observed_at: datetime
    stale_at: datetime | None = None
    """From here on silence makes it Unknown."""
    resolved: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""
    """One line for people: what was seen."""
    since: datetime | None = None
    """Since when it has been seen in this status without a break; None: since `observed_at`."""
    source: str = ""
    """The source that can be asked to look again; empty: none can."""
    valid_until: datetime | None = None
    """Until here it proves its status; None: until it is stale, or at `observed_at` where there is a source to ask."""
    version: str = ""
    """The state of what was observed: the same again means that nothing has changed in between."""
    resolution_seconds: float = 0
    """A time without a look that is not longer than this is no break."""
    unanswered_until: datetime | None = None
    """The look at `observed_at` waited for an answer until then; None: it had one."""
    gone: bool = False
    """Unknown because the object behind the target was deleted."""
    doubted: bool = False
    """The source says how it was, as it does not believe the server that says that it is gone."""
    failed: bool = False
    """True if it was Unhealthy in this episode: since the member was last settled as healthy."""
    status_before: Health | None = None
    """Status before it went stale; None: it is not stale."""
    healthy_percent: float | None = None
    """Healthy part of the target in percent; None: not reported."""

    @property
    def begun(self) -> datetime:
        """Since when it has been seen in this status without a break."""
        return self.since if self.since is not None else self.observed_at

    @property
    def proven_until(self) -> datetime | None:
        """Until when it shows its status; None: until it is stale."""
        return self.observed_at if self.valid_until is None and self.source else self.valid_until

    @property
    def lasts_until(self) -> datetime:
        """Until when it shows its status, unless an observation comes."""
        return self.proven_until or self.stale_at or FOREVER

    def proves(self, moment: datetime) -> bool:
        """True if it proves its status at `moment` or later."""
        return self.proven_until is None or self.proven_until >= moment

    @property
    def seen_until(self) -> datetime | None:
        """End of its newest look, as far as that proves its status; None: it proves it until it is stale.

        Later than `proven_until` only where a look had no answer: a look at a target that hangs is never newer when it
        ends.
        """
        until = self.proven_until
        return until if until is None or self.unanswered_until is None else max(until, self.unanswered_until)

    def is_seen(self, moment: datetime) -> bool:
        """True if its newest look ended at `moment` or later."""
        return self.seen_until is None or self.seen_until >= moment


@dataclass(frozen=True, slots=True)
class Window:
    """A member is on its way from one answer to the other."""

    healthy: bool
    """Direction: True towards healthy (recovery), False towards bad (toleration)."""
    since: datetime
    """Start, moved on by the time for which the window waited."""
    waiting_since: datetime | None = None
    """Unknown since: the window neither runs out nor is cleared."""


@dataclass(frozen=True, slots=True)
class WindowRestart:
    """The last restart of a member's window: no look shows that the status had lasted until then."""

    at: datetime
    """Begin of the window: the source has looked without a break since."""
    unseen_since: datetime
    """Time up to which the status was proven before."""
    signal: str

    @property
    def words(self) -> str:
        """Description for people."""
        unseen = self.unseen_since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return f"window restarted, as no look of {self.signal} since {unseen} shows that it lasted"


class _Kept:
    """A place for what follows from a value, so that it is computed once. A copy with other fields begins without."""

    __slots__ = ("kept",)


@dataclass(frozen=True, slots=True)
class Member(_Kept):
    """One target as its group knows it."""

    status: Health
    """The worst of the signals that count."""
    since: datetime
    """Start of the current status."""
    settled: bool | None = None
    """The debounced answer: is it taken as healthy? None: not known yet."""
    settled_at: datetime | None = None
    """End of the window that settled it. Acts need evidence from then or later."""
    unproven: bool = False
    """True if it was healthy when first observed: no window has confirmed yet that it stays so."""
    window: Window | None = None
    covered_until: datetime | None = None
    """While it is Unhealthy: until when one signal after the other has shown that, without a gap. None: none has."""
    signals: Mapping[str, Signal] = field(default_factory=dict)
    restart: WindowRestart | None = None
    """While its status lasts: why its window began again; None: it did not."""

    @property
    def deciding_signal(self) -> Signal | None:
        """The newest signal that says what the member's status is."""
        saying = [signal for signal in self.signals.values() if signal.status is self.status]
        if len(saying) > 1:
            return max(saying, key=lambda signal: signal.observed_at)
        return saying[0] if saying else None

    @property
    def is_dated(self) -> bool:
        """True if a source reports since when the status has lasted: from then on it has looked without a break."""
        signal = self.deciding_signal
        return self.status is not Health.UNKNOWN and signal is not None and bool(signal.source)

    @property
    def detail(self) -> str:
        """Text of the signal that decides the status: what was observed."""
        signal = self.deciding_signal
        return signal.detail if signal is not None else ""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the signal that decides."""
        signal = self.deciding_signal
        return signal.labels if signal is not None else {}


def keep(value: _Kept, computed: Any) -> None:
    """Keep what follows from the value. It is no part of the value: neither compared nor stored."""
    object.__setattr__(value, "kept", computed)

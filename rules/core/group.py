"""All that is remembered about one rule applied to one thing: an actor's state, with its deadlines and its outbox.

It is a value: the same facts at the same moments give the same group. It is kept as JSON, so a restart forgets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    SerializerFunctionWrapHandler,
    WrapSerializer,
)
from typing_extensions import TypeVar

from bus.messages import Action, Health, Mode
from rules.core.grants import Grants
from rules.core.values import replace

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VERSION = 1
"""Raised when a stored group can no longer be read by an older reactor."""


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
        return max(saying, key=lambda signal: signal.observed_at, default=None)

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


def _tagged(action: Any, dumped: SerializerFunctionWrapHandler) -> Any:
    return {"action": type(action).__name__, **dumped(action)}


def _untagged(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    rest = dict(value)
    name = rest.pop("action", None)
    model = _ACTIONS.get(name)
    if model is None:
        msg = f"{name!r} is no action that this version knows"
        raise ValueError(msg)
    return model.model_validate(rest)


_ACTIONS: Mapping[str, type[BaseModel]] = {model.__name__: model for model in get_args(Action)}
StoredAction = Annotated[Action, WrapSerializer(_tagged), BeforeValidator(_untagged)]
"""With its kind: a Purge and a CancelEviction have the same fields, and mean the opposite."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """An action whose outcome is not known."""

    IDENTITY: ClassVar = ("action.id",)
    action: StoredAction
    retry_at: datetime
    """Time at which it is published again, with the same id."""
    tries: int = 1
    rounds: int = 0
    """Number of tries that do not count: it was in progress, or the API server did not answer. It is sent again all the
    same."""
    failed: str = ""
    """Reason why the last try failed, or its progress."""
    wanted: bool = True
    """False: it may still be carried out, but the rule no longer wants it, so it is not sent again."""
    ended: bool = False
    """The outcome of its last try is known, and the next is not published yet."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Reason why the group does not act."""

    reason: str
    detail: str
    since: datetime
    about: str | None = None
    """Object of the hold; None: the group's object."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A person's command that the rule must not act."""

    IDENTITY: ClassVar = ("pattern", "by", "since")
    by: str
    reason: str
    since: datetime
    until: datetime | None = None
    """Time at which it expires; None: not before a person resumes."""
    pattern: str = ""
    """The names of rules that it was said of; empty: not known, as 0.1.0 stored it."""

    @property
    def words(self) -> str:
        """Description for people: by whom, since when, until when, and why."""
        until = f" until {self.until.isoformat()}" if self.until is not None else ""
        return f"paused by {self.by} since {self.since.isoformat()}{until}: {self.reason}"

    def is_over(self, now: datetime) -> bool:
        """True if it has expired."""
        return self.until is not None and now >= self.until

    def outlasts(self, other: Paused) -> bool:
        """True if it ends later than the other one."""
        return other.until is not None and (self.until is None or self.until > other.until)


@dataclass(frozen=True, slots=True)
class NoState:
    """The state of a group that is of no kind: a stored pause."""


S = TypeVar("S", default=Any)
"""The state of a kind: what it remembers besides its members. A group without it written is one of any kind."""


@dataclass(frozen=True, slots=True)
class Group(Generic[S]):
    """One rule applied to one thing."""

    rule: str
    object: str
    state: S
    """State of its kind; the engine passes it on without reading it."""
    mode: Mode | None = None
    """The rule's mode when it last decided."""
    members: Mapping[str, Member] = field(default_factory=dict)
    grants: Grants | None = None
    """Its requests to guards and people, with the answers; None: none were made."""
    acted_at: datetime | None = None
    """Time at which an action was last carried out."""
    generation: int = 0
    outbox: tuple[OutboxEntry, ...] = ()
    held: Holding | None = None
    paused: Paused | None = None
    """Of the current pauses, the one that ends last."""
    also_paused: tuple[Paused, ...] = ()
    """The others: each was said of other names, and ends by itself or by its own resume."""
    commanded_at: datetime | None = None
    """Time of the newest pause or resume of the group by a person."""
    resumed: tuple[str, datetime] | None = None
    """The names of rules that the newest resume was said of, and when: it ends pauses that were said before, and heard
    after it."""
    pause_ended_at: datetime | None = None
    """Time at which its last pause expired."""
    next_deadline: datetime | None = None
    """Time of the next decision without a new fact; None: none is due."""
    digest: str = ""
    """Of the rule by which it was last decided; empty: not known."""
    position: int = 0
    """The sequence of the last fact folded in; set by the reader of the stream."""
    version: int = VERSION
    later: Any = field(default=None, compare=False, repr=False)
    """Keys that another release stored and this one does not know (later_keys.py): kept, and written back."""


def keep(value: _Kept, computed: Any) -> None:
    """Keep what follows from the value. It is no part of the value: neither compared nor stored."""
    object.__setattr__(value, "kept", computed)


Value = TypeVar("Value", bound="DataclassInstance")
State = TypeVar("State", bound="DataclassInstance")


def updated(value: Value, **changes: Any) -> Value:
    """Give the value with these fields: itself where they are so already.

    Most facts change nothing, and a dataclass of this size costs ten microseconds to copy.
    """
    for name, new in changes.items():
        old = getattr(value, name)
        if old is not new and old != new:
            return replace(value, **changes)
    return value


def with_state(group: Group[State], **changes: Any) -> Group[State]:
    """Give the group with these fields of its kind's state: itself where they are so already."""
    state = updated(group.state, **changes)
    return group if state is group.state else replace(group, state=state)

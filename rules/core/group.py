"""All that is remembered about one rule applied to one thing: an actor's state, with its deadlines and its outbox.

It is a value: the same facts at the same moments give the same group. It is kept as JSON, so a restart forgets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    SerializerFunctionWrapHandler,
    WrapSerializer,
)
from typing_extensions import TypeVar

from bus.messages import Action, Mode
from rules.core.grants import Grants
from rules.core.member import Member
from rules.core.values import replace

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VERSION = 1
"""Raised when a stored group can no longer be read by an older reactor."""


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
    failed_at: datetime | None = None
    """Time of that outcome; None: not known, or there was none."""
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

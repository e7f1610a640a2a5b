"""Desired state of a rule's object at one moment, and the actions planned to reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from bus.messages import ActionMessage
from rules.core.member import Member
from rules.core.reasons import Because, Held

TEXT_MAX = 4096
"""Largest number of characters in a text of a message."""


def cut(text: str) -> str:
    """Give the text so that it fits into a message: what another program wrote may be as long as that by itself."""
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def told(name: str, value: object) -> str:
    """Give a field of an action as people read it: `weights a=0 b=1`, `step=Fence`."""
    match value:
        case Mapping():
            return f"{name} " + " ".join(f"{key}={one}" for key, one in value.items() if one not in ("", None))
        case list() | tuple():
            return f"{name} " + " ".join(map(_short, value))
        case _:
            return f"{name}={value}"


def _short(one: object) -> str:
    if isinstance(one, BaseModel):
        return _short(one.model_dump(exclude_defaults=True, by_alias=True))
    if isinstance(one, Mapping):
        return ":".join(str(part) for part in one.values() if part not in ("", None))
    return str(one)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Condition on a target that must be observed for an act to be right now."""

    target: str
    healthy: bool
    """Healthy: what is to get traffic or copies. Else bad: what is left."""
    since: datetime
    """Time at which the act became due because of this target: earlier observations do not count."""
    signals: int = 1
    """Smallest number of signals that must agree."""
    names: tuple[str, ...] | None = None
    """Only these signals count; None: those that the rule uses."""
    unknown: bool = False
    """Unknown is bad too, whatever the rule takes it for."""
    member: Member | None = field(default=None, compare=False)
    """The target as another rule knows it, whose word counts; None: as the group knows it."""


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """One action that is wanted, as yet without id and generation."""

    action_type: type[ActionMessage]
    fields: Mapping[str, Any]
    """Fields of the action's type besides those that all actions have."""
    because: str
    detail: str = ""
    concurrency_key: str = ""
    """Acts of one key replace each other; those of different keys run side by side."""
    object: str | None = None
    """Object of the action; None: the group's object."""
    safe: bool = False
    """A step back to safety: no guard stops it. A pause does, unless a person has asked for it."""
    homeward: bool = False
    """A step on the way back: no guard stops it, but where the rule asks people, they have to approve."""
    follows: bool = False
    """True for the next step of an operation that was granted as a whole: only a pause stops it half-way."""
    by_hand: bool = False
    """A person has asked for it: windows and approvals are for what starts by itself."""
    needs: tuple[Evidence, ...] = ()
    """Evidence that the act needs; empty for a person's command, a step back to safety, and a further step of an
    operation."""
    proven_at: datetime | None = None
    """Time of the oldest observation among the evidence; None: not checked, or valid until it is stale."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The message that a rule wants sent, which does nothing else (`RuleKind.tells`)."""

    status: str
    message: str
    resolves: bool
    """True if all is as it should be again: an incident that was opened at a pager is resolved."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The answer of a kind's `desire`. Absolute: what is already so is not asked for. Empty: it wants nothing."""

    notice: Notice | None = None
    because: str = Because.DRIFT
    detail: str = ""
    held: tuple[Held, str] | None = None
    """Reason and detail if it wants nothing, or less than may be necessary; None: no hold."""
    about: str | None = None
    """Object of the hold; None: the group's object."""
    requeue_at: datetime | None = None
    """Time of the next decision without a new fact; None: none is needed."""
    acts: tuple[PlannedAction, ...] = ()
    """Actions to carry out now."""
    withheld: bool = False
    """The present, or a guard, lets through less than this."""
    unseen: tuple[Evidence, ...] = ()
    """Evidence without which nothing can be decided: its sources are asked for it."""

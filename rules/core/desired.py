"""What a rule wants of the world at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from bus.messages import ActionMessage
from rules.core.reasons import Because, Held

TEXT_MAX = 4096
"""As long as a text of a message may be."""


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
    """What must be seen for an act to be right now."""

    target: str
    healthy: bool
    """Healthy: what is to get traffic or copies. Else bad: what is left."""
    since: datetime
    """When the act became due for its sake: what was seen before does not count."""
    signals: int = 1
    """How many signals must say so."""
    names: tuple[str, ...] | None = None
    """Only these signals count; None: those that the rule uses."""
    unknown: bool = False
    """Unknown is bad too, whatever the rule takes it for."""


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """One action that is wanted, as yet without id and generation."""

    action_type: type[ActionMessage]
    fields: Mapping[str, Any]
    """What the verb has besides what all actions have."""
    because: str
    detail: str = ""
    concurrency_key: str = ""
    """Acts of one key replace each other; those of different keys run side by side."""
    object: str | None = None
    """What it is done to; None: what the group is about."""
    safe: bool = False
    """A step back to safety: no guard stops it. A pause does, unless a person has asked for it."""
    homeward: bool = False
    """A step on the way back: no guard stops it, but where the rule asks people, they have to approve."""
    follows: bool = False
    """It goes on with what was begun, which was granted as a whole: only a pause stops it half-way."""
    by_hand: bool = False
    """A person has asked for it: windows and approvals are for what starts by itself."""
    needs: tuple[Evidence, ...] = ()
    """What must be seen, from when on; nothing for a person's command, a step back to safety, and what goes on."""
    proven_at: datetime | None = None
    """When that was seen, the oldest of it."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What people are to be told by a rule that does nothing else (`RuleKind.tells`)."""

    status: str
    message: str
    resolves: bool
    """Whether all is as it should be again: where people are called, the call is ended."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The answer of a kind's `desire`. Absolute: what is already so is not asked for. Empty: it wants nothing."""

    notice: Notice | None = None
    because: str = Because.DRIFT
    detail: str = ""
    held: tuple[Held, str] | None = None
    """Why it wants nothing, or not all that may have to be done: reason and detail."""
    about: str | None = None
    """What the hold is about; None: what the group is about."""
    requeue_at: datetime | None = None
    """When to look although nothing was heard."""
    acts: tuple[PlannedAction, ...] = ()
    """What is to be done now."""
    withheld: bool = False
    """The present, or a guard, lets through less than this."""

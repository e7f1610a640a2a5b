"""What a witness says of one promise, once it could be kept or broken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bus.messages import Action
from rules.bench.world_told import Told
from rules.engine.decide import Decision
from rules.engine.routing import Routing

GRACE = 30.0
"""Seconds that something may take after it is due, before it is lost."""


class Promise(StrEnum):
    """What the product promises, in the words of the design."""

    EARLY = "Never early"
    LOST = "Never lost"
    DOUBLED = "Never doubled"
    BLIND = "Never blind"
    LAST = "Never the last one"
    EXPLAINED = "Always explained"
    REHEARSED = "Rehearsed"


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise was tested."""

    promise: Promise
    wrong: str = ""
    """What is wrong; empty: it was kept."""
    about: str = ""
    """The object that it is about; empty: that of the action."""


@dataclass(frozen=True, slots=True)
class Question:
    """An action that was just asked for the first time, and all that was said before."""

    told: Told
    rule: Any
    """Of the kind that the judge is for."""
    routing: Routing
    action: Any
    decision: Decision
    now: float


def judged(*, bad: bool, seconds: float, tolerated: float, target: str, seen_bad: bool) -> Finding:
    """Say whether a target could be taken as bad: too early where it was bad for a while, blind where it never was."""
    if bad:
        return Finding(Promise.EARLY)
    if not seen_bad:
        return Finding(Promise.BLIND, f"nobody has said that {target} is bad")
    return Finding(Promise.EARLY, f"{target} was bad for {seconds:g} s; {tolerated:g} s are tolerated")


def content(action: Action) -> tuple[object, ...]:
    """Give what an action does, without when and why."""
    skipped = {"id", "generation", "because", "detail", "decided_at", "epoch", "mode"}
    return (type(action), *((name, getattr(action, name)) for name in type(action).model_fields if name not in skipped))

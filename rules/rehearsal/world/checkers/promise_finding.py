"""Finding of a checker about one promise, kept or broken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bus.messages import Action
from rules.engine.decide import Decision
from rules.engine.routing import Routing
from rules.rehearsal.world.signal_timeline import BAD, WORSE, Statuses, TakenHealth, taken
from rules.rehearsal.world.truth import Truth
from rules.rehearsal.world.world_log import WorldLog
from rules.rulefile.model import UnknownAs

GRACE = 5.0
"""Seconds that something may take after it is due, before it is lost."""


class Promise(StrEnum):
    """Promises of the product, in the words of the design."""

    NEEDLESS = "Never needless"
    EARLY = "Never early"
    LOST = "Never lost"
    DOUBLED = "Never doubled"
    BLIND = "Never blind"
    LAST = "Never the last one"
    EXPLAINED = "Always explained"
    REHEARSED = "Rehearsed"


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise was tested."""

    promise: Promise
    wrong: str = ""
    """Description of the violation; empty: the promise was kept."""
    about: str = ""
    """The object that it is about; empty: that of the action."""


@dataclass(frozen=True, slots=True)
class Question:
    """An action that was just asked for the first time, and all that was said before."""

    told: WorldLog
    rule: Any
    """Of the kind that the judge is for."""
    routing: Routing
    action: Any
    decision: Decision
    now: float
    truth: Truth


def kept(promise: Promise, ok: bool, otherwise: str) -> Violation:
    """Give what a look at a promise has found."""
    return Violation(promise, "" if ok else otherwise)


def counts_as_bad(rule: Any) -> Statuses:
    """Give the statuses that are bad for a rule."""
    return WORSE if rule.treat_unknown_as is UnknownAs.UNHEALTHY else BAD


def taken_for(question: Question, target: str, towards: Statuses) -> TakenHealth:
    """Give what the rule may take a target for, by what was said."""
    rule, now = question.rule, question.now
    parts = question.told.words.parts(target, rule.signals, now, towards)
    return taken(parts, now, counts_as_bad(rule), (rule.toleration_seconds, rule.recovery_seconds), towards)


def was_bad(question: Question, target: str) -> Violation:
    """Say whether a target could be considered unhealthy: too early where it was bad for a while, blind where it never
    was."""
    rule = question.rule
    found = taken_for(question, target, counts_as_bad(rule))
    if not found.bad and not found.seconds:
        return Violation(Promise.BLIND, f"no source has said that {target} is bad since it was last good")
    tolerated = f"{target} was bad for {found.seconds:g} s; {rule.toleration_seconds:g} s are tolerated"
    return kept(Promise.EARLY, found.bad, tolerated)


def content(action: Action) -> tuple[object, ...]:
    """Give what an action does, without when and why."""
    skipped = {"id", "generation", "because", "detail", "decided_at", "epoch", "mode"}
    return (type(action), *((name, getattr(action, name)) for name in type(action).model_fields if name not in skipped))

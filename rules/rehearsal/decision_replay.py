"""Recorded decisions, decided again: the same state, facts, moment and rule must give the same decision, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from bus.errors import Malformed
from bus.messages import Action, DecisionRecord, Fact, Message
from rules.core.reader import Reader
from rules.engine.decide import Decision, decide
from rules.engine.group_codec import from_python, to_python
from rules.engine.routing import Routing
from rules.rehearsal.basis import evidence


class Match(StrEnum):
    """Result of replaying a record."""

    SAME = "Same"
    DIFFERENT = "Different"
    OTHER_RULE = "OtherRule"
    """The rule is another one than then, or is no more: nothing is proven."""
    COMMAND = "Command"
    """The record is a person's command, which was given and not decided: its result has records of its own."""
    UNREADABLE = "Unreadable"
    """The record holds no state, or one that this version cannot read."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One record beside what is decided from it now."""

    record: DecisionRecord
    match: Match
    actual: DecisionRecord | None = None
    why: str = ""


def recorded(decision: Decision, digest: str, now: datetime) -> DecisionRecord:
    """Give what the audit keeps of a decision: enough to explain it, and to decide it again."""
    group, held, seen = decision.group, decision.held, decision.seen
    return DecisionRecord(
        rule=group.rule, object=group.object, decided_at=now, because=decision.because, digest=digest,
        facts=tuple(_named("fact", fact) for fact in seen.facts) if seen else (),
        actions=tuple(_named("action", action) for action in decision.actions),
        held=f"{held.reason}: {held.detail}" if held else None,
        before=to_python(seen.before) if seen else None,
        shared_group=to_python(seen.shared_group) if seen and seen.shared_group else None,
        listening_since=seen.reader.listening_since if seen else None,
        skew_seconds=seen.reader.skew_seconds if seen else 0,
        evidence=evidence(decision),
    )  # fmt: skip


def _named(key: str, message: Fact | Action) -> dict[str, Any]:
    return {key: type(message).__name__, **message.model_dump(mode="json", by_alias=True)}


def replay(record: DecisionRecord, routing: Routing, *, other_rules: bool = False) -> Replayed:
    """Decide a record again. `other_rules`: also by a rule that is another one than then, to see what it would do."""
    rule = routing.rules.get(record.rule)
    if record.before is None:
        is_command = bool(record.facts) and not (record.digest or record.actions or record.held)
        return Replayed(record, Match.COMMAND if is_command else Match.UNREADABLE, why="it holds no state")
    if rule is None or (record.digest != routing.digest(rule.name) and not other_rules):
        return Replayed(record, Match.OTHER_RULE, why="the rule is no more" if rule is None else "the rule was changed")
    try:
        before, shared_group = from_python(record.before), None
        if record.shared_group is not None:
            shared_group = from_python(record.shared_group)
        facts = [recorded_fact(body) for body in record.facts]
    except (Malformed, ValidationError, KeyError) as error:
        return Replayed(record, Match.UNREADABLE, why=str(error).splitlines()[0])
    decision = decide(
        rule, before, facts, record.decided_at, shared_group, routing.file_guards,
        reader=Reader(record.listening_since, record.skew_seconds),
    )  # fmt: skip
    actual = recorded(decision, routing.digest(rule.name), record.decided_at)
    same = (actual.actions, actual.held) == (record.actions, record.held)
    return Replayed(record, Match.SAME if same else Match.DIFFERENT, actual)


@cache
def _readers() -> Mapping[str, TypeAdapter[Any]]:
    return {kind.__name__: TypeAdapter(kind) for kind in get_args(Fact) if issubclass(kind, Message)}


def recorded_fact(body: Mapping[str, Any]) -> Fact:
    """Read a fact of a record. Raises ValidationError, KeyError."""
    fact: Fact = _readers()[body["fact"]].validate_python({k: v for k, v in body.items() if k != "fact"})
    return fact

"""Premises of the actions of a record, by the functions of their rule's kind: for a checker that has no engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bus.errors import Malformed
from bus.messages import Action, DecisionRecord, Notify
from rules.core.group import Group, StoredAction
from rules.core.premises import Alternatives, DecisionContext
from rules.engine.group_codec import from_python
from rules.engine.known_kinds import kind_of
from rules.rehearsal.decision_replay import recorded_fact
from rules.rulefile.model import Rule

_ACTION: TypeAdapter[Action] = TypeAdapter(StoredAction)


def by_rules(rules: Iterable[Rule]) -> Callable[[DecisionRecord, int], Sequence[Alternatives] | None]:
    """Give what tells the premises of a record's action of this number; None: its rule is not among these."""
    known = {rule.name: rule for rule in rules}

    def of(record: DecisionRecord, number: int) -> Sequence[Alternatives] | None:
        if record.actions[number].get("action") == Notify.__name__:
            return ()
        rule = known.get(record.rule)
        return premises_of(rule, record, number) if rule is not None else None

    return of


def premises_of(rule: Rule, record: DecisionRecord, number: int) -> tuple[Alternatives, ...] | None:
    """Give the premises of one of the record's actions; None: they cannot be told, as it is not of this rule's kind.

    A state or a fact that this version cannot read is left out: what follows from it is judged without it.
    """
    try:
        actions = [_ACTION.validate_python(dict(one)) for one in record.actions[: number + 1]]
    except ValidationError:
        return None
    kind, before, shared_group = kind_of(rule), _group(record.before), _group(record.shared_group)
    states = [group.state for group in (before, shared_group) if group is not None]
    if type(actions[-1]) not in kind.actions or not all(isinstance(state, kind.state) for state in states):
        return None  # another rule had this name then
    context = DecisionContext(before, shared_group, _facts(record), actions[:-1])
    return tuple(kind.premises(rule, actions[-1], context))


def _group(stored: Mapping[str, Any] | None) -> Group | None:
    if stored is None:
        return None
    try:
        return from_python(stored)
    except (Malformed, ValidationError, LookupError):
        return None


def _facts(record: DecisionRecord) -> Sequence[Any]:
    out = []
    for body in record.facts:
        try:
            out.append(recorded_fact(body))
        except (ValidationError, LookupError):
            continue
    return out

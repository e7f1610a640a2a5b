"""Premises of an action, by its own fields: a checker compares them with the evidence in the record of its decision.

The engine takes no part: an action that it never planned has premises too, as one that was put into a record by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic

from bus.messages import Action, ActionMessage, Fact, Mode, Outcome
from rules.core.group import Group, S


@dataclass(frozen=True, slots=True)
class Premise:
    """Status of a target without which an action is wrong: what is left is bad, what gets something is healthy."""

    target: str
    healthy: bool
    unknown: bool = False
    """True if Unknown is bad too."""
    silence: bool = False
    """True if Unknown is bad also where only silence shows it: no look from after the window's end is needed."""
    unobserved: bool = False
    """True if it also holds where the record has no observation of the target."""
    least: int = 1
    """Smallest number of signals that must show it."""
    signals: tuple[str, ...] | None = None
    """Signals that count; None: all."""
    toleration: timedelta | None = None
    """Time for which its observations have to have been bad; None: that is not judged by observations."""


Alternatives = tuple[Premise, ...]
"""Premises of which one has to be true."""


@dataclass(frozen=True, slots=True)
class DecisionContext(Generic[S]):
    """Input of a decision as its record has it, for one of its actions."""

    before: Group[S] | None
    """The group before the facts; None: the record was too long to have it."""
    shared_group: Group[S] | None
    facts: Sequence[Fact]
    earlier: Sequence[Action] = ()
    """Actions that the decision asked for before this one: a rehearsal goes through all steps in one decision."""

    def has_ended(self, action_type: type[ActionMessage]) -> bool:
        """True if one of the group's actions of this type was carried out or rehearsed before the action."""
        if any(isinstance(one, action_type) and one.mode is Mode.DRY_RUN for one in self.earlier):
            return True
        done = {fact.action for fact in self.facts if isinstance(fact, Outcome)}
        outbox = self.before.outbox if self.before is not None else ()
        return any(isinstance(one.action, action_type) and one.action.id in done for one in outbox)

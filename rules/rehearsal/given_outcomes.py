"""Outcomes that a rule test gives: which action each means, and that no other answer comes before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from bus.messages import ActionMessage, Outcome
from rules.rehearsal.timeline import Emitted, at


@dataclass(frozen=True, slots=True)
class GivenOutcome:
    """One outcome, of the action that `means` recognises."""

    second: float
    means: Callable[[Emitted], bool]
    status: Literal["Done", "Failed", "Refused"]
    reason: str | None = None
    detail: str = ""

    def of(self, action: ActionMessage) -> Outcome:
        """Give the outcome of this action."""
        return Outcome(
            action=action.id, rule=action.rule, object=action.object, status=self.status, reason=self.reason,
            detail=self.detail, observed_at=at(self.second),
        )  # fmt: skip


@dataclass(slots=True)
class GivenOutcomes:
    """All outcomes that are given. What they mean is found while the history is played."""

    given: tuple[GivenOutcome, ...] = ()
    unmet: list[GivenOutcome] = field(default_factory=list)
    """Those that meant no action of a rule that enforces."""
    _asked: list[Emitted] = field(default_factory=list)

    def asked(self, said: Emitted) -> bool:
        """Take note of an action, and give whether one of the outcomes is meant for it."""
        self._asked.append(said)
        return any(answer.second >= said.at and answer.means(said) for answer in self.given)

    def due(self, second: float) -> Iterator[Outcome]:
        """Give the outcomes of this second."""
        for answer in self.given:
            if answer.second == second:
                meant = next((said.what for said in reversed(self._asked) if answer.means(said)), None)
                if isinstance(meant, ActionMessage):
                    yield answer.of(meant)
                else:
                    self.unmet.append(answer)

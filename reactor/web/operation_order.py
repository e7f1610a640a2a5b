"""An order of a person with the role operate: its plan, which is shown first, and its command."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bus.messages import AnyCommand
from reactor.views.group_view import RulesByName
from reactor.web.order_body import Comment, Text
from rules.core.group import Group


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """Input of a plan."""

    rules: RulesByName
    groups: Sequence[Group]
    words: Mapping[str, Any]
    """`by`, `reason` and `observed_at` of the command."""

    @property
    def now(self) -> datetime:
        """Time of the command."""
        moment: datetime = self.words["observed_at"]
        return moment


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """Plan of a command, as it would be now."""

    command: AnyCommand
    text: str
    about: tuple[object, ...]
    """Facts that a confirmation is for: a plan in which these have changed has to be looked at again."""
    refused: tuple[str, ...] = ()
    """Reasons why the command would be refused in this form."""

    @property
    def fingerprint(self) -> str:
        """Hash that names the plan."""
        return hashlib.sha256(repr(self.about).encode()).hexdigest()[:32]


class Operation(Comment):
    """An order of a rule's routes, of its zones, or of rules."""

    rule: Text
    plan: Text | None = None
    """The fingerprint of the plan that was shown: another plan is refused. None: whichever it is."""

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """Give the plan as of now. Raises Denied where there is nothing to do."""
        raise NotImplementedError

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
    """What a plan is made from."""

    rules: RulesByName
    groups: Sequence[Group]
    words: Mapping[str, Any]
    """`by`, `reason` and `observed_at` of the command."""

    @property
    def now(self) -> datetime:
        """When it is given."""
        moment: datetime = self.words["observed_at"]
        return moment


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """What a command would come to now."""

    command: AnyCommand
    text: str
    about: tuple[object, ...]
    """What the yes is about: a plan in which this has changed has to be looked at again."""
    refused: tuple[str, ...] = ()
    """Why the command would be refused in this form."""

    @property
    def fingerprint(self) -> str:
        """What names the plan."""
        return hashlib.sha256(repr(self.about).encode()).hexdigest()[:32]


class Operation(Comment):
    """An order of a rule's routes, of its zones, or of rules."""

    rule: Text
    plan: Text | None = None
    """The fingerprint of the plan that was shown: another plan is refused. None: whichever it is."""

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """Give the plan as of now. Raises Denied where there is nothing to do."""
        raise NotImplementedError

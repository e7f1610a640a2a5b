"""State of a cluster and of the taints of one rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bus.messages import Taint
from rules.core.group import Group


@dataclass(frozen=True, slots=True)
class TaintState:
    """A cluster."""

    taints: tuple[Taint, ...] | None = None
    """Those that the rule has put on it; None: it has not touched it yet."""
    standing: tuple[Taint, ...] | None = None
    """Those that are really on while a dry run pretends others; None: those above."""
    unconfirmed: tuple[Taint, ...] | None = None
    """Those that an action was to write to a Karmada object, which may have done so: its outcome was not Done yet."""


TaintGroup: TypeAlias = Group[TaintState]

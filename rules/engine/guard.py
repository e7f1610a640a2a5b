"""Fourth verb: may we? An answer with a reason."""

from __future__ import annotations

from rules.group import Group
from rules.kinds.wish import Wish
from rules.language.model import Rule, TrafficFailover
from rules.reasons import Held


def guard(rule: Rule, group: Group, wish: Wish) -> tuple[Held, str] | None:
    """Give why this wish must not be asked for, as reason and detail; None: it may."""
    if group.paused is not None:
        return Held.PAUSED, f"paused by {group.paused.by}: {group.paused.reason}"
    if (
        isinstance(rule, TrafficFailover)
        and rule.route.kind != "TrafficSplit"
        and wish.weights is not None
        and not any(wish.weights.values())
    ):
        return Held.ALL_ZERO, f"an {rule.route.kind} is never left with all weights zero"
    return None

"""Rules that a backtest can replay completely: Prometheus has observations, and no inventory."""

from __future__ import annotations

from rules.catalog import kind_of
from rules.rulefile.model import Rule


def needs_no_inventory(rule: Rule) -> bool:
    """True if only observations and commands concern the rule, so that it needs no inventory."""
    return all(one.facts[0] in ("Observation", "Rule") for one in kind_of(rule).interests(rule))

"""Which rules a backtest can play whole: Prometheus has what was observed, and nothing of any inventory."""

from __future__ import annotations

from rules.catalog import kind_of
from rules.rulefile.model import Rule


def needs_no_inventory(rule: Rule) -> bool:
    """Whether only observations and commands concern the rule, as its kind says: nothing has to be listed for it."""
    return all(one.facts[0] in ("Observation", "Rule") for one in kind_of(rule).interests(rule))

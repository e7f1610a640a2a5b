"""One rule as the API gives it: its text, what it watches and which sources are about that, the state of its
objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from datetime import datetime

from reactor.views.rows import Row
from reactor.web.board import Board
from rules.kinds.zone.model import ZoneIsolation
from rules.lint.coverage import feeds, wants
from rules.loader import RuleSet
from rules.rulefile.feeds import Consumer, Producers
from rules.rulefile.model import Rule
from rules.rulefile.rule_text import rule_text
from rules.rulefile.sources import Bound, PrometheusQuery
from rules.rulefile.targets import matches


def rule_rows(board: Board, now: datetime) -> list[Row]:
    """Give a row for each rule of this process's files."""
    loaded, rows, pauses = board.rule_set, board.group_rows(now), board.pauses()
    spoken = Producers(feeds(loaded.sources, loaded.rules))
    return [
        {
            "name": rule.name, "kind": type(rule).__name__, "mode": rule.mode.value,
            "place": loaded.places.get(rule.name, ""),
            "tolerationSeconds": rule.toleration_seconds, "recoverySeconds": rule.recovery_seconds,
            "removed": rule.name in loaded.removed, "text": rule_text(rule), "coverage": _coverage(rule, spoken),
            "states": Counter(row["state"] for row in rows if row["rule"] == rule.name),
            "objects": [row["key"] for row in rows if row["rule"] == rule.name],
            "zones": [zone.name for zone in rule.zones] if isinstance(rule, ZoneIsolation) else [],
            "paused": any(matches(pause["pattern"], rule.name) for pause in pauses),
        }
        for rule in loaded.rules
    ]  # fmt: skip


def metrics_of(rules: RuleSet, signals: Set[str]) -> list[Row]:
    """Give the queries behind some signals, with the bounds between Healthy and Unhealthy."""
    return [
        {"signal": source.says, "query": source.query, "above": source.unhealthy_when.above,
         "below": source.unhealthy_when.below}
        for source in rules.sources
        if isinstance(source, PrometheusQuery) and isinstance(source.unhealthy_when, Bound) and source.says in signals
    ]  # fmt: skip


def _coverage(rule: Rule, spoken: Producers) -> list[Row]:
    """Give what a rule waits for, with the sources of the rule files that may give it."""
    return [
        {"target": target, "sources": sorted({one.source.name if one.source is not None else one.signal
                                              for one in spoken.heard(Consumer(target))})}
        for need in wants(rule) for target in need.targets
    ]  # fmt: skip

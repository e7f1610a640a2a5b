"""Zones that could not come back by proof: what is known of that before any is isolated."""

from __future__ import annotations

from collections.abc import Iterator

from rules.core.errors import Problem
from rules.kinds.zone.model import ZoneIsolation
from rules.rulefile.feeds import Consumer, Producers
from rules.rulefile.yaml import Document, Path


def witnesses(rule: ZoneIsolation, document: Document, at: Path, said: Producers) -> Iterator[Problem]:
    """Say once for each reason which zones have fewer than two signals, and what brings them back."""
    found: dict[str, list[int]] = {}
    for index, zone in enumerate(rule.zones):
        wanted = rule.failback.signals
        names = sorted({feed.signal for feed in said.heard(Consumer(rule.target(zone.name), wanted or rule.signals))})
        missing = sorted(set(wanted or ()) - set(names))
        if missing:
            words = (
                f"nothing here says {', '.join(missing)} of {{zones}}, and failback.signals needs it: only "
                "reactor zone failback --force would open them"
            )
        elif len(names) == 1:
            words = (
                f"only {names[0]} is about {{zones}}: the rule isolates them, and opens them, by two signals; what a "
                f"person isolates comes back by reactor zone failback, when {names[0]} calls it healthy"
            )
        else:
            continue  # a zone without any signal has another hint
        found.setdefault(words, []).append(index)
    for words, indexes in found.items():
        message = words.format(zones=", ".join(rule.zones[index].name for index in indexes))
        yield document.problem((*at, "zones", indexes[0]), message, severity="hint", hint="one-witness")

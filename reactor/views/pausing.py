"""Pausing and resuming rules: what a command would come to, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bus.messages import Pause
from reactor.runtime.visible import visible
from rules.core.group import Group
from rules.engine.pauses import PAUSES, lasting
from rules.rulefile.targets import matches


def matching(groups: Iterable[Group], pattern: str) -> list[Group]:
    """Give the groups of the rules whose names match."""
    return [group for group in groups if not group.rule.startswith("@") and matches(pattern, group.rule)]


def pause_plan(verb: str, pattern: str, groups: Sequence[Group], length: str = "") -> str:
    """Say which rules would be paused or resumed, and what of theirs is held or in flight."""
    rules = sorted({group.rule for group in groups})
    count = "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
    lines = [f"{verb} {count} matching {pattern!r}: {', '.join(rules) or 'none yet'}{length}"]
    for group in groups:
        standing = () if group.paused is None else (group.paused, *group.also_paused)
        for one in standing:
            stays = verb == "resume" and one.pattern and not matches(pattern, one.pattern)
            ends = f": it goes on, `reactor resume {one.pattern!r}` ends it" if stays else ""
            lines.append(f"  {group.rule} is {one.words}{ends}")
        if group.held is not None:
            lines.append(f"  {group.rule} is held on {group.held.about or group.object}: {group.held.detail}")
        flying = [entry.action.id for entry in group.outbox if entry.wanted]
        lines += [f"  {id_} is in flight: it is finished if it has begun" for id_ in flying if verb == "pause"]
    return "\n".join(map(visible, dict.fromkeys(lines)))


def pause_seen(groups: Iterable[Group], asked: Pause) -> str | None:
    """Give the pause in effect once the command is processed: it, or one that ends later or at the same time."""
    standing = next((g.paused for g in groups if g.rule == PAUSES and g.object == asked.rule), None)
    return standing.words if standing is not None and lasting(standing, asked) is standing else None


def resumption_seen(groups: Iterable[Group], _at: datetime, pattern: str) -> str | None:
    """Give what became of the end of a pause; None: nothing yet."""
    groups = list(groups)
    if any(group.rule == PAUSES and matches(pattern, group.object) for group in groups):
        return None
    standing = {
        one for group in matching(groups, pattern) if group.paused for one in (group.paused, *group.also_paused)
    }
    if any(not one.pattern or matches(pattern, one.pattern) for one in standing):
        return None
    others = "".join(f"; still {words}" for words in sorted(one.words for one in standing))
    return f"resumed {pattern}{others}"

"""What a production audit can prove: the decisions that were recorded against the observations that were stored.

early        weights were asked for while the target had been bad, by all that was said of it, for less than its window
doubled      one action id that asks for two different things
interleaved  a group's new generation is not above the one before
undecided    the observations of that time are no longer there: nothing is claimed

Whatever cannot be known counts in favour of the reactor: a false alarm would make nobody read the next one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bus.messages import DecisionRecord, Health, Observation
from reactor.audit.checker import Breach, Verdict

SLACK = timedelta(milliseconds=50)
FAILING = frozenset({"PrimaryUnhealthy"})
"""Why an action is asked for that needs a primary which has been bad for its whole window."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the rule says of one group: whose health decides, and how long it must be bad."""

    target: str
    toleration: timedelta
    signals: frozenset[str] | None = None
    """Which opinions count; None: all."""


@dataclass(slots=True)
class Heard:
    """All that was said about one target, by when it was seen."""

    said: list[Observation] = field(default_factory=list)

    def bad_since(self, at: datetime, signals: frozenset[str] | None) -> datetime | None:
        """Give since when, without a break, at least one signal had said Unhealthy; None: nobody had, or it is unknown.

        Unknown ends nothing: a window waits while nobody knows, so this gives the earliest possible moment.
        """
        bad: set[str] = set()
        since: datetime | None = None
        for one in sorted(self.said, key=lambda said: said.observed_at):
            if one.observed_at > at:
                break
            if signals is not None and one.signal not in signals:
                continue
            if one.status is Health.UNHEALTHY:
                since = since if bad else one.observed_at
                bad.add(one.signal)
            elif one.status is Health.HEALTHY:
                bad.discard(one.signal)
        return since if bad else None


def hear(observations: Iterable[Observation]) -> Mapping[str, Heard]:
    """Sort what was said by its target."""
    heard: dict[str, Heard] = defaultdict(Heard)
    for one in observations:
        heard[one.target].said.append(one)
    return heard


def judge(
    records: Iterable[DecisionRecord],
    heard: Mapping[str, Heard],
    windows: Mapping[tuple[str, str], Window],
) -> Verdict:
    """Judge the records in their order. `windows`: by rule and object."""
    verdict = Verdict()
    asked: dict[str, Any] = {}
    newest: dict[tuple[str, str], int] = {}
    for record, action in _actions(records):
        id_, group = action["id"], (record.rule, record.object)
        what = action.get("weights", action.get("message"))
        if id_ in asked:
            changed = asked[id_] != what
            about = [_breach("doubled", record, f"{id_} asks for {what} after {asked[id_]}")] if changed else []
            verdict.add("doubled", about, tested=1)
            continue
        asked[id_] = what
        if action["action"] != "SetWeights":
            continue
        verdict.add("interleaved", list(_order(record, action, newest.get(group, 0))), tested=1)
        newest[group] = max(newest.get(group, 0), action["generation"])
        if action["because"] in FAILING:
            _early(verdict, record, windows.get(group), heard)
    return verdict


def _actions(records: Iterable[DecisionRecord]) -> Iterator[tuple[DecisionRecord, Mapping[str, Any]]]:
    for record in records:
        yield from ((record, action) for action in record.actions)


def _order(record: DecisionRecord, action: Mapping[str, Any], newest: int) -> Iterator[Breach]:
    if action["generation"] <= newest:
        yield _breach("interleaved", record, f"generation {action['generation']} after {newest}")


def _early(verdict: Verdict, record: DecisionRecord, window: Window | None, heard: Mapping[str, Heard]) -> None:
    known = heard.get(window.target) if window else None
    if window is None or known is None or known.said[0].observed_at > record.decided_at - window.toleration:
        verdict.tested["undecided"] += 1
        return
    since = known.bad_since(record.decided_at, window.signals)
    if since is not None and record.decided_at - since >= window.toleration - SLACK:
        verdict.add("early", [], tested=1)
        return
    after = f"{(record.decided_at - since).total_seconds():.3f} s" if since else "nobody said Unhealthy"
    what = f"{window.target}: {after}, {window.toleration.total_seconds():g} s are tolerated"
    verdict.add("early", [_breach("early", record, what)], tested=1)


def _breach(promise: str, record: DecisionRecord, what: str) -> Breach:
    return Breach(promise, f"{record.rule} {record.object}", record.decided_at.timestamp(), what)

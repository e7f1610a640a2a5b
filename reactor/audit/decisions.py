"""Checks a production audit: the decisions that were recorded against the observations that were stored.

early        weights were asked for while the target had been bad, by all that was said of it, for less than its window
needless     by all that was said the target was Healthy, or no word from the window's end or later says that it was bad
doubled      one action id that asks for two different things
interleaved  a group's new generation is not above the one before
undecided    the observations of that time are no longer there: nothing is claimed

An outage of the bus, or a source that was silent, excuses none of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from typing import Any

from bus.messages import DecisionRecord, Health, Observation
from reactor.audit.spans import Span, merged
from reactor.audit.verdict import AuditVerdict, Breach

SLACK = 0.05
"""Seconds by which clocks may lie apart."""
FAILING = frozenset({"PrimaryUnhealthy"})
"""Reasons of actions that need a primary which has been bad for its whole window."""


@dataclass(frozen=True, slots=True)
class RuleWindow:
    """Target whose health decides in one group, and its toleration."""

    target: str
    toleration: timedelta
    signals: frozenset[str] | None = None
    """Signals that count; None: all."""


@dataclass(frozen=True, slots=True)
class Badness:
    """Stretch for which a target was bad without a break, as its sources saw it. Seconds since the epoch."""

    since: float
    proven_until: float
    """Time up to which it was seen to be bad."""


@dataclass(slots=True)
class TargetObservations:
    """Observations of one target."""

    said: list[Observation] = field(default_factory=list)

    def bad(self, at: float, signals: frozenset[str] | None) -> Badness | None:
        """Give since when at least one signal had been bad at this moment; None: none was.

        Unknown ends nothing: a window waits while nothing is known, so this gives the earliest possible moment.
        """
        spells, proven = list[Span](), -inf
        for words in self._by_signal(at, signals).values():
            stretches, until = _stretches(words)
            spells += stretches
            proven = max(proven, until)
        now = next((spell for spell in merged(spells) if spell.end == inf), None)
        return Badness(now.begin, proven) if now is not None else None

    def _by_signal(self, at: float, signals: frozenset[str] | None) -> Mapping[str, list[Observation]]:
        out: dict[str, list[Observation]] = defaultdict(list)
        for one in sorted(self.said, key=lambda said: said.observed_at):
            if one.observed_at.timestamp() <= at and (signals is None or one.signal in signals):
                out[one.signal].append(one)
        return out


def _stretches(words: Iterable[Observation]) -> tuple[list[Span], float]:
    """Give when one signal was bad, and until when its newest stretch is proven, if it goes on."""
    out: list[Span] = []
    last: Observation | None = None
    proven = -inf
    for one in words:
        at = one.observed_at.timestamp()
        if one.status is Health.HEALTHY and last is not None:
            out[-1] = Span(out[-1].begin, at)
            last, proven = None, -inf
        elif one.status is Health.UNHEALTHY:
            since = one.since.timestamp() if one.since is not None else at
            if last is None:
                out.append(Span(since))
            elif not _goes_on(last, one):  # in between nothing looked
                out[-1] = Span(out[-1].begin, last.observed_at.timestamp())
                out.append(Span(since))
            last, proven = one, max(proven, _proves_until(one))
    return out, proven


def _goes_on(last: Observation, one: Observation) -> bool:
    """True if the signal was bad all the time between two of its observations."""
    if one.since is None or (one.version and one.version == last.version):
        return True
    return one.since.timestamp() <= max(_proves_until(last), last.observed_at.timestamp() + one.resolution_seconds)


def _proves_until(one: Observation) -> float:
    """End of the time that an observation proves. Without a source that can be asked it counts until it is stale."""
    holds = one.valid_seconds
    if holds is None:
        holds = 0.0 if one.source else inf if one.stale_seconds is None else one.stale_seconds
    return one.observed_at.timestamp() + holds


def hear(observations: Iterable[Observation]) -> Mapping[str, TargetObservations]:
    """Sort what was said by its target."""
    heard: dict[str, TargetObservations] = defaultdict(TargetObservations)
    for one in observations:
        heard[one.target].said.append(one)
    return heard


def judge(
    records: Iterable[DecisionRecord],
    heard: Mapping[str, TargetObservations],
    windows: Mapping[tuple[str, str], RuleWindow],
) -> AuditVerdict:
    """Judge the records in their order. `windows`: by rule and object."""
    verdict = AuditVerdict()
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
            _founded(verdict, record, windows.get(group), heard)
    return verdict


def _actions(records: Iterable[DecisionRecord]) -> Iterator[tuple[DecisionRecord, Mapping[str, Any]]]:
    for record in records:
        yield from ((record, action) for action in record.actions)


def _order(record: DecisionRecord, action: Mapping[str, Any], newest: int) -> Iterator[Breach]:
    if action["generation"] <= newest:
        yield _breach("interleaved", record, f"generation {action['generation']} after {newest}")


def _founded(
    verdict: AuditVerdict, record: DecisionRecord, window: RuleWindow | None, heard: Mapping[str, TargetObservations]
) -> None:
    """Judge whether the primary was bad for its window, and seen to be so when the window was over."""
    known = heard.get(window.target) if window else None
    at = record.decided_at.timestamp()
    if window is None or known is None or not _remembered(known, at - window.toleration.total_seconds()):
        verdict.tested["undecided"] += 1
        return
    length = window.toleration.total_seconds()
    bad = known.bad(at, window.signals)
    needless, early = list[Breach](), list[Breach]()
    if bad is None:
        needless.append(_breach("needless", record, f"{window.target}: no signal said Unhealthy"))
    elif at - bad.since < length - SLACK:
        early.append(_breach("early", record, f"{window.target}: {at - bad.since:.3f} s, {length:g} s are tolerated"))
    elif bad.proven_until < bad.since + length - SLACK:
        ago = bad.since + length - bad.proven_until
        what = f"{window.target}: last seen Unhealthy {ago:.3f} s before its window of {length:g} s was over"
        needless.append(_breach("needless", record, what))
    verdict.add("early", early, tested=1)
    verdict.add("needless", needless, tested=1)


def _remembered(known: TargetObservations, since: float) -> bool:
    """True if observations from before this moment are still stored."""
    return any(one.observed_at.timestamp() <= since for one in known.said)


def _breach(promise: str, record: DecisionRecord, what: str) -> Breach:
    return Breach(promise, f"{record.rule} {record.object}", record.decided_at.timestamp(), what)

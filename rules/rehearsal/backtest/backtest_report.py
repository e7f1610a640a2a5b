"""Report of a backtest: numbers for each rule, its timeline, and as JSON with keys that scripts may rely on."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bus.messages import Notify, SetWeights, iso
from rules.catalog import kind_of
from rules.rehearsal.backtest.compare import Pair
from rules.rehearsal.backtest.rule_story import Act, Move, Played, RuleTimeline, ToleratedOutage, Wait
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule

False_ = Mapping[str, float]
"""Rule to seconds: how soon after a failover a recovery makes it a false one."""


def false_within(rules: Iterable[Rule]) -> dict[str, float]:
    """Give, for each rule, recoverySeconds + tolerationSeconds as they are written.

    A target that is good again so soon would have been served as well by waiting as long again as the rule did, and
    traffic returns no sooner than after recoverySeconds. The same measure holds for all values of a sweep.
    """
    return {rule.name: rule.recovery_seconds + rule.toleration_seconds for rule in rules}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Counts and times of one rule, or of several together."""

    failovers: int
    false_failovers: int
    returns: int
    others: int
    flaps_avoided: int
    reactions: tuple[float, ...]
    away_seconds: float
    holds: Mapping[str, tuple[int, float]]
    """Reason to how many, and for how many seconds."""
    notifications: int = 0
    """Words of Notification rules to people: none of them is a failover."""
    approvals: int = 0
    """Number of times that a person would have been asked to approve."""
    bad_served_seconds: float = 0.0
    """The time for which targets were bad and kept their traffic: until the action, or until the bad time ended."""

    @property
    def reaction_median(self) -> float | None:
        """From bad to action, in seconds; None: no action."""
        return statistics.median(self.reactions) if self.reactions else None

    @property
    def reaction_max(self) -> float | None:
        """The longest."""
        return max(self.reactions, default=None)


def numbers(stories: Iterable[RuleTimeline], within: False_) -> Numbers:
    """Count. What Notification rules say to people moves nothing: it is counted by itself."""
    stories = list(stories)
    moving = [story for story in stories if not kind_of(story.rule).tells]
    acts = [(act, within[story.rule.name]) for story in moving for act in story.acts]
    holds: dict[str, tuple[int, float]] = {}
    for wait in sorted((wait for story in stories for wait in story.waits), key=lambda wait: wait.reason):
        count, seconds = holds.get(wait.reason, (0, 0.0))
        holds[wait.reason] = count + 1, seconds + ((wait.until or wait.at) - wait.at)
    moves = [act.move for act, _ in acts]
    reactions = [act.reaction_seconds for act, _ in acts if act.reaction_seconds is not None]
    return Numbers(
        failovers=moves.count(Move.AWAY),
        false_failovers=sum(act.false(limit) for act, limit in acts),
        returns=moves.count(Move.HOME),
        others=moves.count(Move.BETWEEN),
        flaps_avoided=sum(len(story.flaps) for story in stories),
        reactions=tuple(
            act.reaction_seconds for story in stories for act in story.acts if act.reaction_seconds is not None
        ),
        away_seconds=sum(story.away_seconds for story in moving),
        holds=holds,
        notifications=sum(len(story.acts) for story in stories if kind_of(story.rule).tells),
        approvals=sum(story.asks(act) for story in moving for act in story.acts),
        bad_served_seconds=sum(reactions) + sum(flap.seconds for story in moving for flap in story.flaps),
    )


TRIAL_ASSUMED = (
    "a trial is played as if all the traffic were its percent: it passes or fails by what was read then, and none "
    "begins while the past says Unhealthy"
)


def depends(story: RuleTimeline) -> list[str]:
    """Say where the answer depends on traffic that the rule would have moved itself, and what is assumed there."""
    if not story.blind or not story.away:
        return []
    why = "; ".join(f"{signal}: {text}" for signal, text in story.blind.items())
    times = f"{len(story.away)} time{'s' * (len(story.away) != 1)}"
    assumed = "it is assumed that what was read with all the traffic would have been known without it"
    said = [f"depends on traffic that it would have moved itself, {times}: {assumed} ({why})"]
    return [*said, f"assumed: {TRIAL_ASSUMED}"] if story.is_tried else said


def moment(second: float) -> str:
    """RFC 3339, to the millisecond where there is one."""
    when = at(second)
    rounded = when.replace(microsecond=0) + timedelta(milliseconds=round(when.microsecond / 1000))
    return iso(rounded) if not rounded.microsecond else rounded.isoformat(timespec="milliseconds")[:-6] + "Z"


def as_json(
    played: Played, within: False_, *, notes: Sequence[str] = (), pairs: Sequence[Pair] | None = None,
    swept: tuple[str, Sequence[tuple[float, Played]]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Give the report. The same input gives the same report, keys in the same order."""
    body: dict[str, Any] = {
        "from": moment(played.first), "to": moment(played.until), "observations": played.observations,
        "notes": list(notes), "rules": [_rule(story, within) for story in played.stories.values()],
    }  # fmt: skip
    if pairs is not None:
        body["compare"] = _compared(pairs)
    if swept is not None:
        key, rows = swept
        body["sweep"] = {"key": key, "falseWithinSeconds": dict(within), "rows": [
            {"value": value, **_numbers(numbers(row.stories.values(), within)),
             "rules": {name: _numbers(numbers([story], within)) for name, story in row.stories.items()}}
            for value, row in rows
        ]}  # fmt: skip
    return body


def _rule(story: RuleTimeline, within: False_) -> dict[str, Any]:
    rule = story.rule
    return {
        "rule": rule.name, "kind": type(rule).__name__, "mode": rule.mode.value,
        "tolerationSeconds": rule.toleration_seconds,
        "recoverySeconds": rule.recovery_seconds, "falseWithinSeconds": within[rule.name],
        **_numbers(numbers([story], within)),
        "targets": [
            {"object": lane.object, "target": lane.target, "unhealthySeconds": _seconds(lane.bad_seconds),
             "unknownSeconds": _seconds(lane.unknown_seconds)}
            for _, lane in sorted(story.lanes.items())
        ],
        "dependsOnTraffic": [
            {"object": object_, "from": moment(since), "to": moment(until), "signals": dict(story.blind)}
            for object_, since, until in (story.away if story.blind else ())
        ],
        "timeline": [mark_json(mark, within[rule.name]) for mark in timeline(story)],
        "leftOut": story.left_out,
    }  # fmt: skip


def _numbers(found: Numbers) -> dict[str, Any]:
    median, longest = found.reaction_median, found.reaction_max
    return {
        "failovers": found.failovers, "falseFailovers": found.false_failovers, "returns": found.returns,
        "otherActions": found.others, "flapsAvoided": found.flaps_avoided,
        "reactionSeconds": None if median is None or longest is None
        else {"median": _seconds(median), "max": _seconds(longest)},
        "failedOverSeconds": _seconds(found.away_seconds), "badServedSeconds": _seconds(found.bad_served_seconds),
        "notifications": found.notifications, "approvals": found.approvals,
        "holds": {reason: {"count": count, "seconds": _seconds(held)} for reason, (count, held) in found.holds.items()},
    }  # fmt: skip


Mark = Act | Wait | ToleratedOutage


def timeline(story: RuleTimeline) -> list[Mark]:
    """All that happened, in order of time; of one moment in the order in which it was said."""
    marks: list[Mark] = [*story.flaps, *story.waits, *story.acts]
    return sorted(marks, key=lambda mark: mark.at)


def mark_json(mark: Mark, within_seconds: float) -> dict[str, Any]:
    """One entry of a timeline, told apart by `type`: action, hold or flap."""
    if isinstance(mark, ToleratedOutage):
        return {"at": moment(mark.at), "type": "flap", "object": mark.object, "target": mark.target,
                "seconds": _seconds(mark.seconds)}  # fmt: skip
    if isinstance(mark, Wait):
        return {"at": moment(mark.at), "type": "hold", "object": mark.object, "reason": mark.reason,
                "detail": mark.detail, "seconds": _seconds((mark.until or mark.at) - mark.at)}  # fmt: skip
    return {
        "at": moment(mark.at), "type": "action", "object": mark.action.object, **_what(mark),
        "move": mark.move.value, "because": mark.action.because, "detail": mark.action.detail,
        "reactionSeconds": None if mark.reaction_seconds is None else _seconds(mark.reaction_seconds),
        "recoveredAfterSeconds": None if mark.recovered_at is None else _seconds(mark.recovered_at - mark.at),
        "false": mark.false(within_seconds), "why": list(mark.why), "id": mark.action.id,
    }  # fmt: skip


def _what(act: Act) -> dict[str, Any]:
    match act.action:
        case SetWeights() as action:
            return {"action": "SetWeights", "weights": action.weights}
        case Notify() as action:
            return {"action": "Notify", "message": action.message}
        case action:
            return {"action": type(action).__name__, "does": action.summary}


def _compared(pairs: Sequence[Pair]) -> dict[str, Any]:
    def one(act: Act) -> dict[str, Any]:
        action = act.action
        return {"at": moment(act.at), "rule": action.rule, "object": action.object, **_what(act),
                "move": act.move.value, "because": action.because}  # fmt: skip

    return {
        "same": sum(pair.same for pair in pairs),
        "onlyA": [one(pair.a) for pair in pairs if pair.a is not None and pair.b is None],
        "onlyB": [one(pair.b) for pair in pairs if pair.b is not None and pair.a is None],
        "moved": [
            {**one(pair.a), "toAt": moment(pair.b.at), "laterSeconds": _seconds(pair.b.at - pair.a.at)}
            for pair in pairs if pair.a is not None and pair.b is not None and not pair.same
        ],
    }  # fmt: skip


def _seconds(number: float) -> float:
    """To the millisecond: sums of floats differ in their last digits."""
    return round(number, 3)

"""A backtest for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bus.messages import SetWeights
from reactor.workbench.backtest.backtest_run import Backtested
from rules.rehearsal.backtest.backtest_report import Mark, Numbers, depends, moment, numbers, timeline
from rules.rehearsal.backtest.compare import Pair
from rules.rehearsal.backtest.rule_story import Act, Move, Played, RuleTimeline, ToleratedOutage, Wait

LINES_MAX = 100
"""Most lines of one rule's timeline; JSON has all of it."""


def lines(done: Backtested) -> Iterator[str]:
    """Give the report line by line."""
    played = done.played
    yield f"{moment(played.first)} to {moment(played.until)} ({length(played.until - played.first)})"
    for note in done.notes:
        yield f"note: {note}"
    for name, story in played.stories.items():
        yield ""
        yield from _story(story, done.within[name])
    if done.pairs is not None:
        yield ""
        yield from _compared(done.pairs)
    if done.swept is not None:
        yield ""
        yield from _swept(*done.swept, done)


def _story(story: RuleTimeline, within: float) -> Iterator[str]:
    rule = story.rule
    yield (
        f"{rule.name}  {type(rule).__name__}, {rule.mode.value}, toleration {length(rule.toleration_seconds)}, "
        f"recovery {length(rule.recovery_seconds)}"
    )
    yield from (f"  {text}" for text in summary(numbers([story], {rule.name: within}), within))
    yield from (f"  {text}" for text in depends(story))
    marks = timeline(story)
    for mark in marks[:LINES_MAX]:
        yield f"  {moment(mark.at)}  {told(mark, within)}"
    if (more := len(marks) - LINES_MAX + story.left_out) > 0 and len(marks) >= LINES_MAX:
        yield f"  … and {more} more: -o json has all of them"


def summary(found: Numbers, within: float | None) -> Iterator[str]:
    """Two or three lines with the numbers."""
    false = f", {found.false_failovers} of them false" if found.failovers else ""
    close = f" (good again within {length(within)})" if found.false_failovers and within is not None else ""
    yield f"{_count(found.failovers, 'failover')}{false}{close}, {_count(found.returns, 'return')}" + (
        f", {_count(found.others, 'other action')}" if found.others else ""
    )
    if found.notifications:
        yield f"{_count(found.notifications, 'notification')}"
    if found.approvals:
        asked = _count(found.approvals, "time")
        yield f"an approval would have been requested {asked}: it is played as if each was given at once"
    yield f"{_count(found.flaps_avoided, 'flap')} avoided by the toleration" + "".join(
        f", held {count} × {reason} ({length(seconds)})" for reason, (count, seconds) in found.holds.items()
    )
    if found.reaction_median is not None and found.reaction_max is not None:
        yield (
            f"time to react: median {length(found.reaction_median)}, longest {length(found.reaction_max)}; "
            f"failed over for {length(found.away_seconds)}"
        )
    if found.bad_served_seconds:
        yield f"bad, and its traffic not moved: {length(found.bad_served_seconds)}"


def told(mark: Mark, within: float) -> str:
    """One entry of a timeline, in one line."""
    match mark:
        case ToleratedOutage():
            return f"flap avoided: {mark.target} was bad for {length(mark.seconds)}"
        case Wait():
            held = (mark.until or mark.at) - mark.at
            return f"held {mark.object}: {mark.reason}: {mark.detail} ({length(held)})"
        case Act():
            return _acted(mark, within)


def _acted(act: Act, within: float) -> str:
    text = f"{act.action.object} {does(act)}  {act.action.because}"
    if act.reaction_seconds is not None:
        text += f", after {length(act.reaction_seconds)}"
    if act.false(within) and act.recovered_at is not None:
        text += f", FALSE: good again {length(act.recovered_at - act.at)} later"
    return text


def does(act: Act) -> str:
    """Text for what an action does."""
    if isinstance(act.action, SetWeights):
        weights = " ".join(f"{service}={weight}" for service, weight in act.action.weights.items())
        return f"{_ARROWS[act.move]} {weights}"
    return f"{_ARROWS[act.move]} {act.action.summary}"


_ARROWS = {Move.AWAY: "→", Move.HOME: "←", Move.BETWEEN: "·"}


def difference(pair: Pair) -> str:
    """One line of a comparison."""
    act = pair.a or pair.b
    if act is None:
        raise AssertionError("a pair has an action")
    text = f"{moment(pair.at)}  {act.action.rule}: {act.action.object} {does(act)}"
    if pair.moved_seconds is None:
        return f"{'- only A' if pair.b is None else '+ only B'}  {text}"
    later = pair.moved_seconds
    return f"~ moved   {text}, in B {length(abs(later))} {'later' if later > 0 else 'earlier'}"


def _compared(pairs: Sequence[Pair]) -> Iterator[str]:
    others = [pair for pair in pairs if not pair.same]
    yield f"compared (A: the rules, B: the other version): {len(pairs) - len(others)} the same, {len(others)} differ"
    yield from (f"  {difference(pair)}" for pair in others[:LINES_MAX])
    if len(others) > LINES_MAX:
        yield f"  … and {len(others) - LINES_MAX} more: -o json has all of them"


COLUMNS = ("failovers", "false", "flaps avoided", "react median", "react longest", "bad, served", "failed over")


def row(stories: Iterable[RuleTimeline], done: Backtested) -> tuple[str, ...]:
    """One line of a table, in the order of COLUMNS."""
    found = numbers(stories, done.within)
    reactions = (found.reaction_median, found.reaction_max)
    return (
        str(found.failovers), str(found.false_failovers), str(found.flaps_avoided),
        *("none" if seconds is None else length(seconds) for seconds in reactions), length(found.bad_served_seconds),
        length(found.away_seconds),
    )  # fmt: skip


def _swept(key: str, rows: Sequence[tuple[float, Played]], done: Backtested) -> Iterator[str]:
    table = [(key, *COLUMNS), *((f"{value:g}", *row(played.stories.values(), done)) for value, played in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        yield "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def length(seconds: float) -> str:
    """`90 s` as people say it: `1 min 30 s`."""
    if seconds < 60:
        return f"{round(seconds, 3):g} s"
    parts = []
    rest = round(seconds)
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

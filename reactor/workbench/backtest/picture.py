"""The pictures of the page, as SVG text: lanes of health over time, and the trade of a sweep. Nothing in it moves.

A lane is stretched to the width that there is, so it holds no letters: those stand beside it, as text that can be read
on a telephone too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from rules.rehearsal.backtest.backtest_report import moment
from rules.rehearsal.backtest.rule_story import COLUMNS, HEALTHY, UNHEALTHY, UNKNOWN, Act, Lane, Move, RuleTimeline

Place = tuple[float, float]
_COLOURS = {HEALTHY: "good", UNKNOWN: "unknown", UNHEALTHY: "bad"}
_MOVES = {Move.AWAY: "away", Move.HOME: "home", Move.BETWEEN: "between"}
SPAN_MIN = 1.5
"""Of 1,000: what is shorter is drawn this wide, so that a minute in a month can be seen."""
LETTER, LINE = 8.0, 13.0
"""How wide a digit of the trade's is, and how high, with the space around it."""
TICKS_MAX = 400
"""Actions and holds that are drawn in one lane."""


def lane(lane: Lane) -> str:
    """Draw one target's health: each part of the range in the colour of its worst."""
    boxes = []
    at = 0
    for status, columns in groupby(lane.columns):
        width = len(list(columns))
        if status in _COLOURS:
            # The bad is drawn higher than the good: colours alone do not tell it to everybody.
            top, high = {HEALTHY: (14, 6), UNKNOWN: (8, 12), UNHEALTHY: (0, 20)}[status]
            boxes.append(f'<rect class="{_COLOURS[status]}" x="{at}" y="{top}" width="{width}" height="{high}"/>')
        at += width
    return _bar(f"health of {lane.target}", boxes)


def doings(story: RuleTimeline, object_: str, first: float, until: float) -> str:
    """Draw what the rule did with one object: when it was failed over, each action, each hold."""

    def x(second: float) -> float:
        return round((second - first) / (until - first) * COLUMNS, 2)

    boxes = ['<rect class="home" x="0" y="16" width="1000" height="4"/>']
    boxes += [_span("window", x(since), x(to), 10, 6, title) for since, to, title in _windows(story, object_)]
    for name, since, to in story.away:
        if name == object_:
            boxes.append(_span("away", x(since), x(to), 6, 14, f"{moment(since)} to {moment(to)}: failed over"))
    for wait in [wait for wait in story.waits if wait.object == object_][:TICKS_MAX]:
        title = f"{moment(wait.at)}: held: {wait.reason}: {wait.detail}"
        boxes.append(_tick("hold", x(wait.at), title))
    acts = [act for act in story.acts if act.action.object == object_][:TICKS_MAX]
    acts.sort(key=lambda act: act.move is Move.AWAY)  # drawn last: a short failover is not hidden by its return
    boxes += [_tick(_MOVES[act.move], x(act.at), f"{moment(act.at)}: {_why(act)}") for act in acts]
    return _bar(f"what {story.rule.name} did with {object_}", boxes)


def _windows(story: RuleTimeline, object_: str) -> Iterator[tuple[float, float, str]]:
    """Give the windows: from, until, and what came of each. Of many the first are drawn."""
    for act in [act for act in story.acts if act.action.object == object_][:TICKS_MAX]:
        if act.bad_since is not None:
            told = f"{moment(act.bad_since)} to {moment(act.at)}: {act.target} was bad, and then the rule acted"
            yield act.bad_since, act.at, told
    for flap in [flap for flap in story.flaps if flap.object == object_][:TICKS_MAX]:
        to = flap.at + flap.seconds
        yield flap.at, to, f"{moment(flap.at)} to {moment(to)}: {flap.target} was bad, and was tolerated"


def _span(kind: str, since: float, to: float, top: int, high: int, title: str) -> str:
    width = max(SPAN_MIN, to - since)
    return f'<rect class="{kind}" x="{since}" y="{top}" width="{width:.2f}" height="{high}">{_title(title)}</rect>'


def objects(story: RuleTimeline) -> list[str]:
    """The things that a rule did something with or looked at, sorted."""
    found = {lane.object for lane in story.lanes.values()} | {wait.object for wait in story.waits}
    return sorted(found | {act.action.object for act in story.acts})


def _why(act: Act) -> str:
    return f"{act.action.because}: {act.action.detail}"


def _tick(kind: str, x: float, title: str) -> str:
    return f'<rect class="{kind}" x="{max(0.0, x - 1):.2f}" y="0" width="2" height="20">{_title(title)}</rect>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _bar(label: str, boxes: Iterable[str]) -> str:
    return (
        f'<svg class="lane" viewBox="0 0 {COLUMNS} 20" preserveAspectRatio="none" shape-rendering="crispEdges" '
        f'role="img" aria-label="{escape(label)}">{"".join(boxes)}</svg>'
    )


def trade(points: Sequence[tuple[str, float, int]], unit: str) -> str:
    """Draw a sweep: for each value how long a reaction takes (to the right) and how many are false (upwards)."""
    if not points:
        return ""
    width, height, left, top, bottom = 360, 230, 44, 40, 44
    longest = max(seconds for _, seconds, _ in points) or 1.0
    most = max(false for _, _, false in points) or 1
    places = [
        (left + seconds / longest * (width - left - 40), height - bottom - false / most * (height - bottom - top))
        for _, seconds, false in points
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [
        f'<line class="axis" x1="{left}" y1="{height - bottom}" x2="{width - 10}" y2="{height - bottom}"/>',
        f'<line class="axis" x1="{left}" y1="20" x2="{left}" y2="{height - bottom}"/>',
        f'<text x="{left - 6}" y="{height - bottom}" text-anchor="end">0</text>',
        f'<text x="{left - 6}" y="{top + 4}" text-anchor="end">{most}</text>',
        f'<text x="{width - 10}" y="{height - bottom + 18}" text-anchor="end">{longest:g} s</text>',
        f'<text x="{left}" y="{height - 8}">median time to react</text>',
        f'<text x="{left - 6}" y="12">false failovers</text>',
        f'<polyline class="trade" points="{path}"/>',
    ]
    for (value, seconds, false), (x, y) in zip(points, places, strict=True):
        title = f"{value} {unit}: {seconds:g} s to react, {false} false"
        parts.append(f'<circle class="trade" cx="{x:.1f}" cy="{y:.1f}" r="4">{_title(title)}</circle>')
    for (value, _, _), (x, y) in zip(points, _apart(points, places), strict=True):
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}">{escape(value)}</text>')
    label = escape(f"time to react against false failovers, for each {unit}")
    return f'<svg class="trade" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _apart(points: Sequence[tuple[str, float, int]], places: Sequence[Place]) -> list[Place]:
    """Give where each value is written: beside its point, and further to the right where another one stands."""
    taken: list[tuple[float, float, float]] = []
    for (value, _, _), (x, y) in zip(points, places, strict=True):
        begin, line, width = x + 7, y - 6, LETTER * len(value)
        near = sorted((at, end) for at, end, other in taken if abs(other - line) < LINE)
        for at, end in near:
            if at < begin + width and begin < end:
                begin = end + LETTER
        taken.append((begin, begin + width, line))
    return [(begin, line) for begin, _, line in taken]

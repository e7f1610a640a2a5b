"""The lanes of the page, as SVG text: a target's health over time, and what a rule did with an object.

A lane is stretched to the width that there is, so it holds no letters: those are beside it, as text that can be read
on a telephone too. Everything is drawn as long as it was, however near one looks: what is short, and each moment, is
seen by the two pixels of its outline, which do not grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from reactor.workbench.backtest.axis import DIGITS, Axis
from rules.rehearsal.backtest.backtest_report import moment
from rules.rehearsal.backtest.rule_story import COLUMNS, HEALTHY, UNHEALTHY, UNKNOWN, Act, Lane, Move, RuleTimeline

_COLOURS = {HEALTHY: "good", UNKNOWN: "unknown", UNHEALTHY: "bad"}
_ROWS = {HEALTHY: (14, 6), UNKNOWN: (8, 12), UNHEALTHY: (0, 20)}
"""Top and height: the bad is drawn higher than the good, as not every reader can tell colours apart."""
_MOVES = {Move.AWAY: "away", Move.HOME: "home", Move.BETWEEN: "between"}
TICKS_MAX = 400
"""Actions and holds that are drawn in one lane."""


def lane(lane: Lane, x: Axis, until: float) -> str:
    """Draw one target's health from change to change; where these were too many, each part of the range as its worst.

    `until`: the end of the range, in seconds.
    """
    spans = [(x(since), x(to), state) for since, to, state in lane.spans(until)]
    if lane.exact_until is not None:
        spans += _columns(lane, x(lane.exact_until))
    spans.sort(key=lambda span: span[2])  # the outline of what is worse lies above
    boxes = [
        f'<rect class="{_COLOURS[state]}" x="{_digits(begin)}" y="{_ROWS[state][0]}" width="{_digits(end - begin)}" '
        f'height="{_ROWS[state][1]}"/>'
        for begin, end, state in spans
        if state in _COLOURS
    ]
    return _bar(f"health of {lane.target}", boxes)


def _columns(lane: Lane, begin: float) -> Iterator[tuple[float, float, int]]:
    """Give the parts of the range from a place on, neighbours that are the same as one."""
    at = 0
    for state, columns in groupby(lane.columns):
        end = at + len(list(columns))
        if end > begin:
            yield max(float(at), begin), float(end), state
        at = end


def doings(story: RuleTimeline, object_: str, x: Axis) -> str:
    """Draw what the rule did with one object: when it was failed over, each action, each hold.

    Windows have the upper row for themselves: an action ends a window, and would cover a short one.
    """
    boxes = [f'<rect class="home" x="0" y="16" width="{COLUMNS}" height="4"/>']
    for name, since, to in story.away:
        if name == object_:
            boxes.append(_span("away", x(since), x(to), 8, 12, f"{moment(since)} to {moment(to)}: failed over"))
    for wait in [wait for wait in story.waits if wait.object == object_][:TICKS_MAX]:
        title = f"{moment(wait.at)}: held: {wait.reason}: {wait.detail}"
        boxes.append(_tick("hold", x(wait.at), title))
    acts = [act for act in story.acts if act.action.object == object_][:TICKS_MAX]
    acts.sort(key=lambda act: act.move is Move.AWAY)  # drawn last: a short failover is not hidden by its return
    boxes += [_tick(_MOVES[act.move], x(act.at), f"{moment(act.at)}: {_why(act)}") for act in acts]
    boxes += [_span("window", x(since), x(to), 0, 6, title) for since, to, title in _windows(story, object_)]
    return _bar(f"what {story.rule.name} did with {object_}", boxes)


def _windows(story: RuleTimeline, object_: str) -> Iterator[tuple[float, float, str]]:
    """Give the windows: from, until, and the result of each. Of many the first are drawn."""
    for act in [act for act in story.acts if act.action.object == object_][:TICKS_MAX]:
        if act.bad_since is not None:
            told = f"{moment(act.bad_since)} to {moment(act.at)}: {act.target} was bad, and then the rule acted"
            yield act.bad_since, act.at, told
    for flap in [flap for flap in story.flaps if flap.object == object_][:TICKS_MAX]:
        to = flap.at + flap.seconds
        yield flap.at, to, f"{moment(flap.at)} to {moment(to)}: {flap.target} was bad, and was tolerated"


def _span(kind: str, since: float, to: float, top: int, high: int, title: str) -> str:
    wide = _digits(to - since)
    return f'<rect class="{kind}" x="{_digits(since)}" y="{top}" width="{wide}" height="{high}">{_title(title)}</rect>'


def objects(story: RuleTimeline) -> list[str]:
    """The things that a rule did something with or looked at, sorted."""
    found = {lane.object for lane in story.lanes.values()} | {wait.object for wait in story.waits}
    return sorted(found | {act.action.object for act in story.acts})


def _why(act: Act) -> str:
    return f"{act.action.because}: {act.action.detail}"


def _tick(kind: str, x: float, title: str) -> str:
    place = _digits(x)
    return f'<line class="{kind}" x1="{place}" x2="{place}" y1="7" y2="20">{_title(title)}</line>'


def _digits(place: float) -> str:
    return f"{round(place, DIGITS):.10g}"


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _bar(label: str, boxes: Iterable[str]) -> str:
    return (
        f'<svg class="lane" viewBox="0 0 {COLUMNS} 20" preserveAspectRatio="none" shape-rendering="crispEdges" '
        f'role="img" aria-label="{escape(label)}">{"".join(boxes)}</svg>'
    )

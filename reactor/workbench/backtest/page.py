"""A backtest as one HTML page: nothing from elsewhere, so that it can be mailed and kept.

Its one script zooms. The policy allows no other one, and without it the page shows all the same.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from reactor.workbench.backtest import picture
from reactor.workbench.backtest.axis import axis
from reactor.workbench.backtest.backtest_run import Backtested
from reactor.workbench.backtest.backtest_text import COLUMNS, difference, length, row, summary, told
from reactor.workbench.backtest.curve_picture import bounds
from reactor.workbench.backtest.curve_picture import curve as draw_curve
from reactor.workbench.backtest.curves import Curve, shown_lanes
from reactor.workbench.backtest.style import STYLE
from reactor.workbench.backtest.trade_picture import POINTS_MIN, trade
from rules.rehearsal.backtest.backtest_report import depends, moment, numbers, timeline
from rules.rehearsal.backtest.rule_story import COLUMNS as PARTS
from rules.rehearsal.backtest.rule_story import Lane, Played, RuleTimeline
from rules.rulefile.rule_text import rule_text

MARKS_SHOWN = 500
DIFFERENCES_SHOWN = 500
UNFOLDED_MAX = 12
"""Entries of a list that is open from the start: longer ones would part what is to be looked at together."""
_SCRIPT = Path(__file__).with_name("zoom.js").read_text("utf-8")
_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'"
_ZOOM = {"closer": "Zoom in", "wider": "Zoom out", "earlier": "Earlier", "later": "Later", "whole": "Whole time"}

LEGEND = (
    ("good", "Healthy"), ("bad", "Unhealthy"), ("unknown", "Unknown"), ("window", "window"), ("away", "failed over"),
    ("home", "on primary"), ("between", "other action"), ("hold", "held"), ("curve", "measured"),
    ("threshold", "threshold"),
)  # fmt: skip
"""Class of what is drawn, and what it is called. Those that the page does not have are left out."""


def page(done: Backtested) -> str:
    """Give the page. The same backtest gives the same page, byte for byte."""
    played = done.played
    title = f"Backtest {moment(played.first)} to {moment(played.until)}"
    rest = "\n".join([*_overview(done), *_sweep(done), *_compare(done), *_stories(played, done)])
    body = "\n".join([*_head(done), _legend(rest), _zoom(), rest])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"{_contents(played)}<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f'<body data-first="{played.first:.0f}" data-until="{played.until:.0f}">\n<main>\n{body}\n</main>\n'
        f'<script type="module">{_SCRIPT}</script>\n</body>\n</html>\n'
    )


def _contents(played: Played) -> str:
    """Say for programs which rules the page has, in its order: `reactor run` links to them."""
    return f'<meta name="reactor-rules" content="{escape(json.dumps([*played.stories]))}">\n'


def _head(done: Backtested) -> Iterator[str]:
    played = done.played
    yield "<h1>What would have happened</h1>"
    span = f"{moment(played.first)} to {moment(played.until)} ({length(played.until - played.first)})"
    yield f'<p class="dim">{escape(span)}</p>'
    if done.notes:
        yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in done.notes) + "</ul>"


def _legend(drawn: str) -> str:
    """Say what the colours of these pictures mean."""
    found = [(kind, word) for kind, word in LEGEND if f' class="{kind}"' in drawn]
    return "".join(
        ['<p class="legend">', *(f'<span><i data-of="{kind}"></i>{word}</span>' for kind, word in found), "</p>"]
    )


def _zoom() -> str:
    """The buttons of the script, which shows them."""
    buttons = "".join(f'<button type="button" id="{name}">{word}</button>' for name, word in _ZOOM.items())
    return f'<div id="zoom" class="zoom" hidden>{buttons}<output id="at"></output></div>'


def _overview(done: Backtested) -> Iterator[str]:
    """One line for each rule, where there are several, and the way to it."""
    stories = done.played.stories
    if len(stories) > 1:
        rows = [
            (f'<a href="#rule-{number}">{escape(name)}</a>', row([story], done))
            for number, (name, story) in enumerate(stories.items())
        ]
        yield _table("rule", rows)


def _table(key: str, rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Give the numbers of COLUMNS for each of some things; how these are called is markup already."""
    # A telephone shows each line as a list: the roles keep it a table for those who have it read to them.
    head = "".join(f'<th scope="col" role="columnheader">{escape(cell)}</th>' for cell in (key, *COLUMNS))
    body = "".join(
        f'<tr role="row"><th scope="row" role="rowheader" data-of="{escape(key)}">{name}</th>'
        + "".join(
            f'<td role="cell" data-of="{escape(of)}">{escape(cell)}</td>'
            for of, cell in zip(COLUMNS, cells, strict=True)
        )
        + "</tr>"
        for name, cells in rows
    )
    return (
        '<div class="wide" tabindex="0"><table role="table"><thead role="rowgroup">'
        f'<tr role="row">{head}</tr></thead><tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _stories(played: Played, done: Backtested) -> Iterator[str]:
    for number, (name, story) in enumerate(played.stories.items()):
        rule, within = story.rule, done.within[name]
        yield f'<h2 id="rule-{number}">{escape(name)}</h2>'
        words = f"{type(rule).__name__}, {rule.mode.value}, toleration {length(rule.toleration_seconds)}"
        yield f'<p class="dim">{escape(words)}, recovery {escape(length(rule.recovery_seconds))}</p>'
        said = [*summary(numbers([story], {name: within}), within), *depends(story)]
        yield from (f"<p>{escape(text)}</p>" for text in said)
        text = f'<pre tabindex="0" aria-label="Text of {escape(name)}">{escape(rule_text(rule))}</pre>'
        yield f"<details><summary>Text of the rule</summary>{text}</details>"
        yield from _lanes(story, played, done.curves)
        yield from _marks(story, within)


def _lanes(story: RuleTimeline, played: Played, measured: Sequence[Curve]) -> Iterator[str]:
    shown, x = shown_lanes(story), axis(played.first, played.until)
    for object_ in picture.objects(story):
        here = [lane for lane in shown if lane.object == object_]
        if not here:
            continue
        yield f"<h3>{escape(object_)}</h3>"
        yield picture.doings(story, object_, x)
        for lane in here:
            told_ = f"{lane.target}: Unhealthy {length(lane.bad_seconds)}, Unknown {length(lane.unknown_seconds)}"
            yield f'<p class="name">{escape(told_)}</p>{picture.lane(lane, x, played.until)}'
            if lane.exact_until is not None:
                yield f'<p class="dim">{escape(_coarse(lane.exact_until, played))}</p>'
            yield from _curves(story, lane, measured)
        yield f'<p class="scale">{"".join(f"<span>{escape(one)} UTC</span>" for one in _scale(played))}</p>'
    if len(story.lanes) > len(shown):
        yield f'<p class="dim">… and {len(story.lanes) - len(shown)} more targets</p>'


def _coarse(exact_until: float, played: Played) -> str:
    part = length((played.until - played.first) / PARTS)
    return f"from {moment(exact_until)} on it changed too often: drawn is the worst of each {part}"


def _curves(story: RuleTimeline, lane: Lane, measured: Iterable[Curve]) -> Iterator[str]:
    for curve in measured:
        if curve.target == lane.target and curve.signal in (story.rule.signals or (curve.signal,)):
            yield f'<p class="name">{escape(f"{curve.signal}: {bounds(curve)}")}</p>{draw_curve(curve)}'


def _scale(played: Played) -> Iterator[str]:
    middle = (played.first + played.until) / 2
    for second in (played.first, middle, played.until):
        yield moment(float(round(second))).replace("T", " ").removesuffix("Z")[:16]


def _marks(story: RuleTimeline, within: float) -> Iterator[str]:
    marks = timeline(story)
    items = [f"<time>{escape(moment(mark.at))}</time>{escape(told(mark, within))}" for mark in marks[:MARKS_SHOWN]]
    yield from _list(items, len(marks) + story.left_out, "in the order of time")


def _compare(done: Backtested) -> Iterator[str]:
    if done.pairs is None:
        return
    others = [pair for pair in done.pairs if not pair.same]
    yield "<h2>Compared with the other version</h2>"
    yield f"<p>A: the rules, B: the other version. {len(done.pairs) - len(others)} the same, {len(others)} differ.</p>"
    yield from _list([escape(difference(pair)) for pair in others[:DIFFERENCES_SHOWN]], len(others), "that differ")


def _list(items: Sequence[str], all_: int, what: str) -> Iterator[str]:
    """Give a list, folded where it is long. `items` are markup already; `all_`: how many there are."""
    if not items:
        return
    entries = "<ol>" + "".join(f"<li>{item}</li>" for item in items) + "</ol>"
    if all_ > len(items):
        entries += f'<p class="dim">… and {all_ - len(items)} more: -o json has all of them</p>'
    unfolded = " open" if len(items) <= UNFOLDED_MAX else ""
    entry = "1 entry" if all_ == 1 else f"{all_} entries"
    yield f"<details{unfolded}><summary>{entry} {what}</summary>{entries}</details>"


def _sweep(done: Backtested) -> Iterator[str]:
    if done.swept is None:
        return
    key, rows = done.swept
    yield f"<h2>{escape(key)}: reaction time against false failovers</h2>"
    yield _table(key, [(f"{value:g}", row(played.stories.values(), done)) for value, played in rows])
    found = [(f"{value:g}", numbers(played.stories.values(), done.within)) for value, played in rows]
    points = [
        (value, one.reaction_median, one.false_failovers) for value, one in found if one.reaction_median is not None
    ]
    if without := [value for value, one in found if one.reaction_median is None]:
        listed = ", ".join(without)
        no = "so there is no picture" if len(points) < POINTS_MIN else "so no point in the picture"
        yield f'<p class="dim">{escape(f"No failover with {key} {listed}, {no}.")}</p>'
    yield trade(points, key)

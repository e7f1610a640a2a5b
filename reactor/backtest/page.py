"""A backtest as one HTML page: no scripts, nothing from elsewhere, so that it can be mailed and kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from reactor.backtest import picture
from reactor.backtest.run import Backtested
from reactor.backtest.text import COLUMNS, difference, length, row, summary, told
from rules.bench.backtest_story import HEALTHY, UNHEARD, Played, Story
from rules.bench.report import moment, numbers, timeline

MARKS_SHOWN = 500
LANES_SHOWN = 60
"""Of one rule: those with something to see first."""
DIFFERENCES_SHOWN = 500
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_QUIET = bytes([UNHEARD, HEALTHY])

STYLE = """
:root{color-scheme:light dark;--fg:#1c2024;--dim:#5b6470;--bg:#fff;--line:#d9dde3;--good:#2e7d4f;--bad:#c62f2f;
--unknown:#8a8f98;--away:#c46a00;--home:#4a7fb5;--hold:#7a4fb0}
@media(prefers-color-scheme:dark){:root{--fg:#e6e8eb;--dim:#a0a8b3;--bg:#15181c;--line:#343a42;--good:#4fae78;
--bad:#f06a6a;--unknown:#8a8f98;--away:#f0a040;--home:#6fa8dc;--hold:#b08ae0}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:70rem;margin:0 auto;padding:1rem}
h1{font-size:1.4rem}h2{font-size:1.15rem;margin:2rem 0 .3rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1rem;margin:1.2rem 0 .2rem;overflow-wrap:anywhere}
p,ul{margin:.3rem 0}.dim{color:var(--dim)}.name{font-size:.85rem;margin:.4rem 0 0;overflow-wrap:anywhere}
svg.lane{display:block;width:100%;height:20px;background:color-mix(in srgb,var(--line) 35%,transparent)}
svg.trade{display:block;width:100%;max-width:30rem;font:13px system-ui,sans-serif;fill:var(--fg)}
.good{fill:var(--good)}.bad{fill:var(--bad)}.unknown{fill:var(--unknown)}.away{fill:var(--away)}.home{fill:var(--home)}
.between{fill:var(--fg)}.hold{fill:var(--hold)}.axis{stroke:var(--dim)}
polyline.trade{fill:none;stroke:var(--home);stroke-width:2}circle.trade{fill:var(--home)}
.scale{display:flex;justify-content:space-between;font-size:.75rem;color:var(--dim);gap:.5rem}
.legend span{display:inline-block;margin-right:1rem}.legend i{display:inline-block;width:.8em;height:.8em;
background:var(--c);margin-right:.3em}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:.2rem .8rem .2rem 0;text-align:right;white-space:nowrap}
ol{list-style:none;padding:0;font-size:.9rem}li{border-bottom:1px solid var(--line);padding:.25rem 0;
overflow-wrap:anywhere}time{color:var(--dim);display:block;font-variant-numeric:tabular-nums}
"""
LEGEND = (
    ("good", "Healthy"), ("bad", "Unhealthy"), ("unknown", "Unknown"), ("away", "failed over"), ("home", "at home"),
    ("hold", "held"),
)  # fmt: skip


def page(done: Backtested) -> str:
    """Give the page. The same backtest gives the same page, byte for byte."""
    played = done.played
    title = f"Backtest {moment(played.first)} to {moment(played.until)}"
    body = "\n".join([*_head(done), *_sweep(done), *_compare(done), *_stories(played, done)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _head(done: Backtested) -> Iterator[str]:
    played = done.played
    yield "<h1>What would have happened</h1>"
    span = f"{moment(played.first)} to {moment(played.until)} ({length(played.until - played.first)})"
    yield f'<p class="dim">{escape(span)}</p>'
    if done.notes:
        yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in done.notes) + "</ul>"
    colours = (f'<span><i style="--c:var(--{kind})"></i>{escape(word)}</span>' for kind, word in LEGEND)
    yield f'<p class="legend">{"".join(colours)}</p>'


def _stories(played: Played, done: Backtested) -> Iterator[str]:
    for name, story in played.stories.items():
        rule, within = story.rule, done.within[name]
        yield f"<h2>{escape(name)}</h2>"
        words = f"{rule.kind}, {rule.mode.value}, toleration {length(rule.toleration_seconds)}"
        yield f'<p class="dim">{escape(words)}, recovery {escape(length(rule.recovery_seconds))}</p>'
        yield from (f"<p>{escape(text)}</p>" for text in summary(numbers([story], {name: within}), within))
        yield from _lanes(story, played)
        yield from _marks(story, within)


def _lanes(story: Story, played: Played) -> Iterator[str]:
    lanes = sorted(story.lanes.values(), key=lambda lane: (not lane.columns.strip(_QUIET), lane.object, lane.target))
    shown = lanes[:LANES_SHOWN]
    for object_ in picture.objects(story):
        here = [lane for lane in shown if lane.object == object_]
        if not here:
            continue
        yield f"<h3>{escape(object_)}</h3>"
        yield picture.doings(story, object_, played.first, played.until)
        for lane in here:
            told_ = f"{lane.target}: Unhealthy {length(lane.bad_seconds)}, Unknown {length(lane.unknown_seconds)}"
            yield f'<p class="name">{escape(told_)}</p>{picture.lane(lane)}'
        yield f'<p class="scale">{"".join(f"<span>{escape(one)}</span>" for one in _scale(played))}</p>'
    if len(lanes) > len(shown):
        yield f'<p class="dim">… and {len(lanes) - len(shown)} more targets</p>'


def _scale(played: Played) -> Iterator[str]:
    middle = (played.first + played.until) / 2
    for second in (played.first, middle, played.until):
        yield moment(float(round(second))).replace("T", " ").removesuffix("Z")[:16]


def _marks(story: Story, within: float) -> Iterator[str]:
    marks = timeline(story)
    items = [
        f"<li><time>{escape(moment(mark.at))}</time>{escape(told(mark, within))}</li>" for mark in marks[:MARKS_SHOWN]
    ]
    if items:
        yield f"<ol>{''.join(items)}</ol>"
    if (more := len(marks) - len(items) + story.left_out) > 0:
        yield f'<p class="dim">… and {more} more</p>'


def _compare(done: Backtested) -> Iterator[str]:
    if done.pairs is None:
        return
    others = [pair for pair in done.pairs if not pair.same]
    yield "<h2>Compared with the other version</h2>"
    yield f"<p>A: the rules, B: the other version. {len(done.pairs) - len(others)} the same, {len(others)} differ.</p>"
    yield from _list(difference(pair) for pair in others[:DIFFERENCES_SHOWN])
    if len(others) > DIFFERENCES_SHOWN:
        yield f'<p class="dim">… and {len(others) - DIFFERENCES_SHOWN} more</p>'


def _list(items: Iterable[str]) -> Iterator[str]:
    yield "<ol>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ol>"


def _sweep(done: Backtested) -> Iterator[str]:
    if done.swept is None:
        return
    key, rows = done.swept
    yield f"<h2>{escape(key)}: reaction time against false failovers</h2>"
    head = "".join(f"<th>{escape(cell)}</th>" for cell in (key, *COLUMNS))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in (f"{value:g}", *row(played, done))) + "</tr>"
        for value, played in rows
    )
    yield f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    found = [(f"{value:g}", numbers(played.stories.values(), done.within)) for value, played in rows]
    points = [
        (value, one.reaction_median, one.false_failovers) for value, one in found if one.reaction_median is not None
    ]
    yield picture.trade(points, key)

"""Draws the measured values of a target as SVG text: a band from the least to the greatest value, with the thresholds.

Around changes of its health it is drawn sample by sample, elsewhere column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import chain
from math import isfinite

from reactor.workbench.backtest.axis import DIGITS, Axis, axis
from reactor.workbench.backtest.curves import Curve
from rules.rehearsal.backtest.rule_story import COLUMNS

HIGH = 60
MinMaxSpan = tuple[float, float, float, float]
"""First column, column after the last one, least and greatest value."""


def curve(of: Curve) -> str:
    """Draw one. The runs are in `data-values` too: the page says what was measured under the pointer."""
    least, most = of.range()
    most += (most - least or 1.0) * 0.1

    def y(value: float) -> float:
        return round((most - value) / (most - least) * HIGH, 1)

    runs = list(_runs(of))
    parts = [*_thresholds(of, y), f'<path class="curve" d="{_path(runs, y)}"/>']
    values = ";".join(f"{begin:.10g},{end:.10g},{low:.4g},{high:.4g}" for begin, end, low, high in runs)
    return (
        f'<svg class="lane metric" viewBox="0 0 {COLUMNS} {HIGH}" preserveAspectRatio="none" role="img" '
        f'data-signal="{escape(of.signal)}" data-values="{values}" '
        f'aria-label="{escape(f"{of.signal} of {of.target}: {bounds(of)}")}">{"".join(parts)}</svg>'
    )


def bounds(of: Curve) -> str:
    """Say from where on a value is bad."""
    words = [f"{word} {value:g}" for word, value in (("above", of.above), ("below", of.below)) if value is not None]
    return f"Unhealthy {' or '.join(words)}"


def _thresholds(of: Curve, y: Callable[[float], float]) -> Iterator[str]:
    for bound, top, high in (
        (of.above, 0.0, y(of.above) if of.above is not None else 0.0),
        (of.below, y(of.below) if of.below is not None else 0.0, float(HIGH)),
    ):
        if bound is not None:
            yield f'<rect class="wrong" x="0" y="{top}" width="{COLUMNS}" height="{high - top:.1f}"/>'
            yield f'<line class="threshold" x1="0" x2="{COLUMNS}" y1="{y(bound)}" y2="{y(bound)}"/>'


def _runs(of: Curve) -> Iterator[MinMaxSpan]:
    """Give what was measured in the order of time, neighbours that are the same as one."""
    x = axis(of.first, of.until)
    reach = x(of.first + of.step) - 1.5 * 10**-DIGITS  # less than a sample that is missing, however it is rounded
    run: MinMaxSpan | None = None
    for begin, end, low, high in sorted(chain(_columns(of, x), _samples(of, x))):
        if run is None:
            run = begin, end, low, high
            continue
        # A sample counts until the next one, so a part that begins before that has no gap.
        until = begin if begin - run[1] < reach else run[1]
        if until == begin and run[2:] == (low, high):
            run = run[0], end, low, high
        else:
            yield run[0], until, run[2], run[3]
            run = begin, end, low, high
    if run is not None:
        yield run


def _columns(of: Curve, x: Axis) -> Iterator[MinMaxSpan]:
    """Give the columns that were measured, without the times whose samples are kept one by one."""
    near = [(x(since), x(until)) for since, until in of.near]
    for column, (low, high) in enumerate(zip(of.low, of.high, strict=True)):
        if isfinite(low):
            at = float(column)
            for since, until in near:
                if at < since < column + 1:
                    yield at, since, low, high
                if since < column + 1:
                    at = max(at, until)
            if at < column + 1:
                yield at, float(column + 1), low, high


def _samples(of: Curve, x: Axis) -> Iterator[MinMaxSpan]:
    for second, (low, high) in of.samples.items():
        if of.first <= second < of.until:
            yield x(second), x(min(second + of.step, of.until)), low, high


def _path(runs: Sequence[MinMaxSpan], y: Callable[[float], float]) -> str:
    """Give the outline of each part without a gap: its upper edge to the right, then its lower one back."""
    out = []
    for part in _without_gaps(runs):
        there = "".join(f"V{y(high)}H{end:.10g}" for _, end, _, high in part)
        back = "".join(f"V{y(low)}H{begin:.10g}" for begin, _, low, _ in reversed(part))
        out.append(f"M{part[0][0]:.10g} {y(part[0][3])}{there}{back}Z")
    return "".join(out)


def _without_gaps(runs: Sequence[MinMaxSpan]) -> Iterator[Sequence[MinMaxSpan]]:
    begin = 0
    for at in range(1, len(runs) + 1):
        if at == len(runs) or runs[at][0] != runs[at - 1][1]:
            yield runs[begin:at]
            begin = at

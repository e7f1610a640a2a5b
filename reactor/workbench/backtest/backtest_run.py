"""A whole backtest: fetch, play, compare, sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from reactor.settings.server_settings import Endpoint
from reactor.workbench.backtest.curves import Curve, curves
from reactor.workbench.backtest.fetch import Ask, Progress, fetch
from reactor.workbench.backtest.history_builder import BacktestPlan, unplayable
from reactor.workbench.backtest.ranges import Ranges
from reactor.workbench.backtest.store import opened
from rules.rehearsal.backtest.backtest_report import false_within
from rules.rehearsal.backtest.backtester import Sweep, backtest, sweep
from rules.rehearsal.backtest.compare import Pair, compare
from rules.rehearsal.backtest.rule_story import Played


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """Input of a backtest."""

    plan: BacktestPlan
    endpoints: Mapping[str, Endpoint]
    """Endpoints by the names that the plan's servers have."""
    other: BacktestPlan | None = None
    """The version to compare with."""
    sweep: Sweep | None = None
    cache: Path | None = None
    """Folder in which answers outlive the run; None: none."""
    curves: bool = False
    """True if what was measured is drawn."""


@dataclass(frozen=True, slots=True)
class Backtested:
    """The result of a backtest."""

    played: Played
    within: Mapping[str, float]
    """Rule to seconds: what makes a failover a false one."""
    notes: tuple[str, ...]
    other: Played | None = None
    pairs: tuple[Pair, ...] | None = None
    swept: tuple[str, tuple[tuple[float, Played], ...]] | None = None
    curves: tuple[Curve, ...] = ()


async def run(request: BacktestRequest, progress: Progress) -> Backtested:
    """Fetch and play. Raises QueryFailed, QueryRefused, SettingsError, TooLong."""
    plans = [plan for plan in (request.plan, request.other) if plan is not None]
    asks = [ask for plan in plans for ask in plan.asks()]
    with opened(request.cache, now_ms=request.plan.span.now_ms) as store:
        async with AsyncExitStack() as stack:
            servers = await _connected(stack, asks, request.endpoints)
            answers = await fetch(asks, servers, store, progress)
        first, until = request.plan.span.from_ms / 1000, request.plan.span.to_ms / 1000
        rules = request.plan.rules
        played = backtest(rules, request.plan.history(answers), first=first, until=until)
        other = swept = None
        if request.other is not None:
            other = backtest(request.other.rules, request.other.history(answers), first=first, until=until)
        drawn = curves(request.plan, answers, played) if request.curves else []
        if (wanted := request.sweep) is not None:
            rows = sweep(rules, lambda: request.plan.history(answers), wanted, first=first, until=until)
            swept = (wanted.key, tuple(rows))
    notes = [note for plan in plans for note in (*unplayable(plan.rules), *plan.notes)]
    return Backtested(
        played, false_within(rules.rules), tuple(dict.fromkeys(notes)), other,
        None if other is None else tuple(compare(played, other)), swept,
        tuple(drawn),
    )  # fmt: skip


async def _connected(
    stack: AsyncExitStack, asks: Iterable[Ask], endpoints: Mapping[str, Endpoint]
) -> dict[str, Ranges]:
    names = dict.fromkeys(ask.prometheus for ask in asks)
    return {name: await stack.enter_async_context(Ranges(name, endpoints[name])) for name in names}

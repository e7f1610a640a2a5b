"""`reactor backtest`: what rules would have done with the past that a Prometheus remembers."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reactor.cli.shared.files import fail, find_rules, read_all
from reactor.cli.shared.options import SecondsType, output_option
from reactor.cli.shared.printing import as_yaml, say
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError, SettingsError
from reactor.runtime.visible import visible_json
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE
from rules import loader
from rules.core.errors import InvalidFiles, Problem
from rules.rehearsal.backtest.backtest_report import as_json
from rules.rehearsal.backtest.backtester import SWEEPABLE

if TYPE_CHECKING:
    from reactor.workbench.backtest.backtest_run import Backtested
    from reactor.workbench.backtest.fetch import Progress


@click.command()
@click.option("--rules", "-r", multiple=True, metavar="FILE", help="Rule file, folder or glob. Repeatable.")
@click.option("--prometheus", "url", metavar="URL", help="Use this server for each Prometheus of the rule files.")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
    help="Settings file, whose prometheus section has the addresses.",
)  # fmt: skip
@click.option("--from", "from_", required=True, metavar="TIME", help="2026-11-01T00:00:00Z, or a time before now: 30d.")
@click.option("--to", default="now", show_default=True, metavar="TIME", help="The same. The range includes it.")
@click.option(
    "--step", type=SecondsType(0.1, 86_400), metavar="TIME",
    help="How often sources are evaluated, as 30 or 1m. Default: everySeconds of each source.",
)  # fmt: skip
@click.option("--compare", metavar="OTHER", help="Rule file, folder or glob of another version: show the difference.")
@click.option("--sweep", metavar="KEY=A,B,…", help=f"Try values for all rules. KEY is {' or '.join(SWEEPABLE)}.")
@click.option(
    "--assume-healthy", multiple=True, metavar="PATTERN",
    help="Targets that are Healthy from the start unless a source says otherwise. Repeatable.",
)  # fmt: skip
@click.option(
    "--scrapes", default=NEWEST_SCRAPE, show_default=True, metavar="QUERY",
    help="Query for the time of the newest scrape. Older than staleSeconds: Prometheus was down. '': do not ask.",
)  # fmt: skip
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write one self-contained page.")
@output_option("text", "json", "yaml")
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Folder for fetched data.")
@click.option("--no-cache", is_flag=True, help="Keep nothing on disk after the run.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
def backtest(
    rules: tuple[str, ...], files: tuple[str, ...], *, url: str | None, config: Path | None, from_: str, to: str,
    step: float | None, compare: str | None, sweep: str | None, assume_healthy: tuple[str, ...], scrapes: str,
    html: Path | None, output: str, cache: Path | None, no_cache: bool,
) -> None:  # fmt: skip
    """Show what rules would have done in the past.

    The command reads the history of the sources from Prometheus (queries of PrometheusQuery; ALERTS for
    AlertmanagerWebhook) and plays it through the decision code of the live service. Rules in mode DryRun are played as
    if they acted.

    \b
    reactor backtest --rules shop.yaml --prometheus http://127.0.0.1:9090 --from -30d
    reactor backtest --rules shop.yaml --config reactor.yaml --from -7d --sweep tolerationSeconds=0,10,30,60
    reactor backtest --rules shop.yaml --compare new.yaml --config reactor.yaml --from -7d --html backtest.html

    Exit code: 0; 1 if a file or a query cannot be used; 2 if the command line is wrong; 3 if Prometheus cannot be
    reached.
    """
    if cache is not None and no_cache:
        raise click.UsageError("--cache and --no-cache contradict each other")
    from reactor.clients.instant_queries import QueryFailed
    from reactor.workbench.backtest import backtest_options
    from reactor.workbench.backtest.backtest_run import BacktestRequest, run
    from reactor.workbench.backtest.grid import TooLong
    from reactor.workbench.backtest.history_builder import BacktestPlan
    from reactor.workbench.backtest.store import default_folder

    versions = [_loaded((*rules, *files)), *([_loaded((compare,))] if compare is not None else [])]
    try:
        span = backtest_options.span(from_, to, step, Clock().now())
        swept = backtest_options.sweep(sweep) if sweep is not None else None
        endpoints = backtest_options.endpoints(url, config, versions)
        plans = [
            BacktestPlan(
                version, span, tuple(endpoints), backtest_options.ONLY if url else None, scrapes, assume_healthy
            )
            for version in versions
        ]
        kept = None if no_cache else cache or default_folder()
        other = plans[1] if compare is not None else None
        request = BacktestRequest(plans[0], endpoints, other, swept, kept, curves=html is not None)
        logging.getLogger("stamina").setLevel(logging.ERROR)  # that it tries again is no news, that it fails is
        with _progress() as progress:
            done = asyncio.run(run(request, progress))
        _write(done, html, output)
    except (TooLong, backtest_options.BadAsk) as error:
        raise click.UsageError(str(error)) from error
    except ReactorError as error:
        say(f"reactor: {error}", err=True)
        sys.exit(3 if isinstance(error, QueryFailed) else 1)


def _loaded(patterns: tuple[str, ...]) -> loader.RuleSet:
    from reactor.workbench.backtest.history_builder import Playable

    names, problems = find_rules(patterns)
    if not names and not problems:
        raise click.UsageError("name at least one rule file, with --rules FILE")
    try:
        found = loader.load_rules(read_all(names, problems))
    except InvalidFiles as error:
        fail([*problems, *error.problems])
    if not problems and not any(isinstance(source, Playable) for source in found.sources):
        message = "no PrometheusQuery and no AlertmanagerWebhook source, so there is no history to read"
        problems.append(Problem(names[0], 1, 1, "sources", message))
    if problems:
        fail(problems)
    return found


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("asking Prometheus"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("chunks", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _write(done: Backtested, html: Path | None, output: str) -> None:
    """Print, and write the page. Raises SettingsError."""
    from reactor.workbench.backtest import backtest_text, page

    if html is not None:
        try:
            html.write_text(page.page(done), "utf-8")
        except OSError as error:
            raise SettingsError(f"{html}: cannot be written: {error.strerror or error}") from error
    if output != "text":
        body = as_json(done.played, done.within, notes=done.notes, pairs=done.pairs, swept=done.swept)
        say(as_yaml(body) if output == "yaml" else visible_json(json.dumps(body, indent=2, ensure_ascii=False)))
        return
    for line in backtest_text.lines(done):
        say(line)

"""`reactor backtest`: what rules would have done with the past that a Prometheus remembers."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from pydantic import ValidationError

from reactor import settings as settings_
from reactor.backtest import page, text
from reactor.backtest.fetch import Progress
from reactor.backtest.grid import TooLong
from reactor.backtest.history import Plan, Playable, Span
from reactor.backtest.moments import BadMoment, moment
from reactor.backtest.outages import NEWEST_SCRAPE
from reactor.backtest.run import Backtested, Request, run
from reactor.backtest.store import default_folder
from reactor.cli.files import fail, find_rules, read_all
from reactor.clients.promql import QueryFailed
from reactor.clock import Clock
from reactor.errors import ReactorError, SettingsError
from reactor.settings import Endpoint
from rules.bench.backtester import SWEEPABLE, Sweep
from rules.bench.report import as_json
from rules.errors import InvalidFiles, Problem
from rules.language import loader
from rules.language.model import YEAR
from rules.language.sources import AlertmanagerWebhook, PrometheusQuery

ONLY = "default"
"""What a Prometheus that stands for all is called in messages."""
SWEEP_MAX = 50
"""Values of one sweep: each is a play of its own."""


@click.command()
@click.option("--rules", "-r", multiple=True, metavar="FILE", help="Rule file, folder or glob; may be repeated.")
@click.option("--prometheus", "url", metavar="URL", help="Stands for every Prometheus that the rule files name.")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
    help="Settings file, whose prometheus section has the addresses.",
)  # fmt: skip
@click.option("--from", "from_", required=True, metavar="TIME", help="2026-11-01T00:00:00Z, or relative: -30d.")
@click.option("--to", default="now", show_default=True, metavar="TIME", help="The same; belongs to the range.")
@click.option(
    "--step", type=click.FloatRange(min=0.1, max=86_400), metavar="SECONDS",
    help="How often sources are evaluated. Default: as often as they say themselves (everySeconds).",
)  # fmt: skip
@click.option("--compare", metavar="OTHER", help="Rule file, folder or glob of another version: show the difference.")
@click.option("--sweep", metavar="KEY=A,B,…", help=f"Try values for all rules. KEY is {' or '.join(SWEEPABLE)}.")
@click.option(
    "--assume-healthy", multiple=True, metavar="PATTERN",
    help="Targets that are Healthy from the start unless a source says otherwise; may be repeated.",
)  # fmt: skip
@click.option(
    "--scrapes", default=NEWEST_SCRAPE, show_default=True, metavar="QUERY",
    help="Tells when the newest scrape was: older than staleSeconds, Prometheus was away. '' does not ask.",
)  # fmt: skip
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write one self-contained page.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Folder for what was fetched.")
@click.option("--no-cache", is_flag=True, help="Keep nothing on disk after the run.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
def backtest(
    rules: tuple[str, ...], files: tuple[str, ...], *, url: str | None, config: Path | None, from_: str, to: str,
    step: float | None, compare: str | None, sweep: str | None, assume_healthy: tuple[str, ...], scrapes: str,
    html: Path | None, output: str, cache: Path | None, no_cache: bool,
) -> None:  # fmt: skip
    """Show what rules would have done with the past.

    Asks Prometheus for the past of what the sources read (PrometheusQuery; for AlertmanagerWebhook, its ALERTS), and
    plays it through the decisions of the live service. Rules in mode DryRun are played as they would act.

    \b
    reactor backtest --rules shop.yaml --prometheus http://127.0.0.1:9090 --from -30d
    reactor backtest --rules shop.yaml --config reactor.yaml --from -7d --sweep tolerationSeconds=0,10,30,60
    reactor backtest --rules shop.yaml --compare new.yaml --config reactor.yaml --from -7d --html backtest.html

    Exit code: 0, 1 where a file or a query cannot be used, 2 where the command line is wrong, 3 where Prometheus
    cannot be reached.
    """
    span = _span(from_, to, step)
    swept = _sweep(sweep) if sweep is not None else None
    if cache is not None and no_cache:
        raise click.UsageError("--cache and --no-cache contradict each other")
    versions = [_loaded((*rules, *files)), *([_loaded((compare,))] if compare is not None else [])]
    try:
        endpoints = _endpoints(url, config, versions)
        plans = [
            Plan(version, span, tuple(endpoints), ONLY if url else None, scrapes, assume_healthy)
            for version in versions
        ]
        kept = None if no_cache else cache or default_folder()
        request = Request(plans[0], endpoints, plans[1] if compare is not None else None, swept, kept)
        logging.getLogger("stamina").setLevel(logging.ERROR)  # that it tries again is no news, that it fails is
        with _progress() as progress:
            done = asyncio.run(run(request, progress))
        _write(done, html, output)
    except TooLong as error:
        raise click.UsageError(str(error)) from error
    except ReactorError as error:
        click.echo(f"reactor: {error}", err=True)
        sys.exit(3 if isinstance(error, QueryFailed) else 1)


def _span(from_: str, to: str, step: float | None) -> Span:
    now = Clock().now()
    try:
        first, until = moment(from_, now), moment(to, now)
    except BadMoment as error:
        raise click.UsageError(str(error)) from error
    if until > now:
        raise click.UsageError(f"--to {to} lies in the future")
    if first >= until:
        raise click.UsageError(f"--from {from_} is not before --to {to}")
    from_ms, to_ms, now_ms = (round(one.timestamp() * 1000) for one in (first, until, now))
    if from_ms < 0:
        raise click.UsageError(f"--from {from_} lies before 1970")
    return Span(from_ms, to_ms, now_ms, None if step is None else round(step * 1000))


def _sweep(text_: str) -> Sweep:
    key, _, values = text_.partition("=")
    if key not in SWEEPABLE:
        raise click.UsageError(f"--sweep {text_}: write {' or '.join(SWEEPABLE)}, =, and values with commas")
    try:
        numbers = tuple(dict.fromkeys(float(value) for value in values.split(",")))
    except ValueError as error:
        raise click.UsageError(f"--sweep {text_}: {error}") from error
    if not all(0 <= number <= YEAR for number in numbers) or len(numbers) > SWEEP_MAX:
        raise click.UsageError(f"--sweep {text_}: at most {SWEEP_MAX} values, each from 0 to {YEAR} seconds")
    return Sweep(key, numbers)


def _loaded(patterns: tuple[str, ...]) -> loader.RuleSet:
    names, problems = find_rules(patterns)
    if not names and not problems:
        raise click.UsageError("name at least one rule file, with --rules FILE")
    try:
        found = loader.load(read_all(names, problems))
    except InvalidFiles as error:
        fail([*problems, *error.problems])
    if not problems and not any(isinstance(source, Playable) for source in found.sources):
        message = "no PrometheusQuery and no AlertmanagerWebhook source, so there is no past to ask for"
        problems.append(Problem(names[0], 1, 1, "sources", message))
    if problems:
        fail(problems)
    return found


def _endpoints(url: str | None, config: Path | None, versions: Sequence[loader.RuleSet]) -> dict[str, Endpoint]:
    """Give the endpoints by name. Raises SettingsError."""
    if url is not None:
        return {ONLY: _endpoint(url)}
    if config is None:
        raise click.UsageError("say where Prometheus is: --prometheus URL, or --config FILE with a prometheus section")
    endpoints = settings_.load(config).prometheus
    if not endpoints:
        raise SettingsError(f"{config}: the settings have no prometheus section")
    for source in (source for version in versions for source in version.sources):
        confirm = source.confirm if isinstance(source, AlertmanagerWebhook) else None
        named = source.prometheus if isinstance(source, PrometheusQuery) else confirm.prometheus if confirm else None
        if named is not None and named not in endpoints:
            raise SettingsError(
                f"source {source.name}: {named!r} is not in the settings; there are {', '.join(endpoints)}"
            )
    return dict(endpoints)


def _endpoint(url: str) -> Endpoint:
    try:
        endpoint = Endpoint.model_validate({"url": url})
    except ValidationError as error:
        raise click.UsageError(f"--prometheus {url}: {error.errors()[0]['msg']}") from error
    if endpoint.url.username or endpoint.url.password:
        raise click.UsageError("--prometheus: a password on a command line is seen by others: use --config")
    return endpoint


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
    if html is not None:
        try:
            html.write_text(page.page(done), "utf-8")
        except OSError as error:
            raise SettingsError(f"{html}: cannot be written: {error.strerror or error}") from error
    if output == "json":
        body = as_json(done.played, done.within, notes=done.notes, pairs=done.pairs, swept=done.swept)
        click.echo(json.dumps(body, indent=2, ensure_ascii=False))
        return
    for line in text.lines(done):
        click.echo(line)

"""Options of the command line, read and checked. Now is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from reactor.runtime.errors import SettingsError
from reactor.settings import model as settings_
from reactor.settings.server_settings import Endpoint
from reactor.workbench.backtest.history_builder import BacktestSpan
from reactor.workbench.backtest.moments import BadMoment, moment, seconds
from rules.loader import RuleSet
from rules.rehearsal.backtest.backtester import SWEEPABLE, Sweep
from rules.rulefile.model import YEAR
from rules.rulefile.sources import AlertmanagerWebhook, PrometheusQuery

ONLY = "default"
"""The name in messages of a Prometheus that is used for all names."""
SWEEP_MAX = 50
"""Values of one sweep: each is a play of its own."""


class BadAsk(ValueError):
    """The command line is wrong: says which option, and what to write."""


def span(from_: str, to: str, step: float | None, now: datetime) -> BacktestSpan:
    """Read the range; `step` in seconds. Raises BadAsk."""
    try:
        first, until = moment(from_, now), moment(to, now)
    except BadMoment as error:
        raise BadAsk(str(error)) from error
    if until > now:
        raise BadAsk(f"--to {to} lies in the future")
    if first >= until:
        raise BadAsk(f"--from {from_} is not before --to {to}")
    from_ms, to_ms, now_ms = (round(one.timestamp() * 1000) for one in (first, until, now))
    if from_ms < 0:
        raise BadAsk(f"--from {from_} lies before 1970")
    return BacktestSpan(from_ms, to_ms, now_ms, None if step is None else round(step * 1000))


def sweep(text: str) -> Sweep:
    """Read `tolerationSeconds=0,10,30`. Raises BadAsk."""
    key, _, values = text.partition("=")
    if key not in SWEEPABLE:
        raise BadAsk(f"--sweep {text}: write {' or '.join(SWEEPABLE)}, =, and values with commas")
    try:
        numbers = tuple(dict.fromkeys(_seconds_in(value) for value in values.split(",")))
    except ValueError as error:
        raise BadAsk(f"--sweep {text}: {error}") from error
    if not all(0 <= number <= YEAR for number in numbers) or len(numbers) > SWEEP_MAX:
        raise BadAsk(f"--sweep {text}: at most {SWEEP_MAX} values, each from 0 to {YEAR} seconds")
    return Sweep(key, numbers)


def _seconds_in(value: str) -> float:
    """A number of seconds, or a duration such as `10m`. Raises ValueError."""
    return seconds(value) if value and value[-1] in "smhdw" else float(value)


def endpoints(url: str | None, config: Path | None, versions: Sequence[RuleSet]) -> dict[str, Endpoint]:
    """Give the endpoints by name; `url` is used for all names. Raises BadAsk, SettingsError."""
    if url is not None:
        return {ONLY: _endpoint(url)}
    if config is None:
        raise BadAsk("say where Prometheus is: --prometheus URL, or --config FILE with a prometheus section")
    known = settings_.load(config).prometheus
    if not known:
        raise SettingsError(f"{config}: the settings have no prometheus section")
    for source in (source for version in versions for source in version.sources):
        confirm = source.confirm if isinstance(source, AlertmanagerWebhook) else None
        named = source.prometheus if isinstance(source, PrometheusQuery) else confirm.prometheus if confirm else None
        if named is not None and named not in known:
            raise SettingsError(f"source {source.name}: {named!r} is not in the settings; there are {', '.join(known)}")
    return dict(known)


def _endpoint(url: str) -> Endpoint:
    try:
        endpoint = Endpoint.model_validate({"url": url})
    except ValidationError as error:
        raise BadAsk(f"--prometheus {url}: {error.errors()[0]['msg']}") from error
    if endpoint.url.username or endpoint.url.password:
        raise BadAsk("--prometheus: a password on a command line is seen by others: use --config")
    return endpoint

"""Findings about the way back: rules that leave by a signal which needs traffic, and trials that are too short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rules.core.errors import Problem
from rules.kinds.traffic.backend_needs import needs
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import TrafficFailover
from rules.rulefile.file_kind import Located
from rules.rulefile.overlap import may_overlap
from rules.rulefile.promql import is_ratio_of_rates, range_seconds, reads_a_rate
from rules.rulefile.sources import AlertmanagerWebhook, PrometheusQuery
from rules.rulefile.yaml import Document, Path

if TYPE_CHECKING:
    from rules.rulefile.sources import LoadedSource


def together(rules: Sequence[Located[TrafficFailover]], sources: Sequence[LoadedSource]) -> Iterator[Problem]:
    """Findings that need the sources."""
    for rule, document, at in rules:
        mine = [source for source in sources if _read(rule, source)]
        yield from _no_way_back(rule, mine, document, at)
        yield from _short_trial(rule, mine, document, at)
        yield from _blind_secondaries(rule, mine, document, at)


def _read(rule: TrafficFailover, source: LoadedSource) -> bool:
    counted = rule.signals is None or source.says in rule.signals or source.says in (rule.failback.signals or ())
    return counted and any(may_overlap(source.target, target) for need in needs(rule) for target in need.targets)


def _meant(rule: TrafficFailover, source: LoadedSource) -> bool:
    """An alert may be about anything: it counts where the rule names its signal."""
    return not isinstance(source, AlertmanagerWebhook) or source.says in (rule.signals or ())


def blind_signals(rule: TrafficFailover, sources: Sequence[LoadedSource]) -> dict[str, str]:
    """Give the signals of this rule that know nothing of a backend without traffic, and why."""
    mine = (source for source in sources if _read(rule, source) and _meant(rule, source))
    return {source.says: why for source in mine if (why := needs_traffic(source))}


def needs_traffic(source: LoadedSource) -> str:
    """Say why the source knows nothing of a backend without traffic; empty: it does, as far as can be read."""
    if isinstance(source, PrometheusQuery):
        if is_ratio_of_rates(source.query):
            return "its query divides rates, which without requests is 0/0: Unknown"
        if source.unhealthy_when == "Present" and reads_a_rate(source.query):
            return "its series leave with the traffic, and Present reads that as Healthy"
    if isinstance(source, AlertmanagerWebhook) and source.confirm is not None and reads_a_rate(source.confirm.query):
        return "its confirm query needs requests"
    return ""


def _no_way_back(
    rule: TrafficFailover, sources: Sequence[LoadedSource], document: Document, at: Path
) -> Iterator[Problem]:
    if rule.failback.mode is not FailbackMode.AUTOMATIC:
        return
    back = rule.failback.signals
    blind = [
        source
        for source in sources
        if needs_traffic(source) and (back is None or source.says in back) and _meant(rule, source)
    ]
    if not blind:
        return
    source = blind[0]
    looks_back, every = _reads(source) or (0, 0)
    seconds = max(60, looks_back + 2 * every)
    probe = next((one.says for one in sources if not needs_traffic(one)), None)
    other = f", or `failback: {{signals: [{probe}]}}`, where that tells the whole truth" if probe else ""
    message = (
        f"it leaves by {source.says!r}, and cannot come back by it: {needs_traffic(source)}. "
        f"Write `failback: {{mode: Trial, trial: {{percent: 5, seconds: {seconds:g}}}}}`{other}"
    )
    yield document.problem(at, message, severity="warning")


def _reads(source: LoadedSource) -> tuple[float, float] | None:
    """Give how many seconds a source's query looks back, and how many there are between two words of it."""
    if isinstance(source, PrometheusQuery):
        return range_seconds(source.query), source.every_seconds
    if isinstance(source, AlertmanagerWebhook) and source.confirm is not None:
        return range_seconds(source.confirm.query), source.refresh_seconds
    return None


def _short_trial(
    rule: TrafficFailover, sources: Sequence[LoadedSource], document: Document, at: Path
) -> Iterator[Problem]:
    if rule.failback.mode is not FailbackMode.TRIAL:
        return
    for source in sources:
        reads = _reads(source)
        if reads is not None and (rule.signals is None or source.says in rule.signals):
            looks_back, every = reads
            least = looks_back + 2 * every
            if rule.failback.trial.seconds < least:
                message = (
                    f"{source.says!r} looks {looks_back:g} s back, and says how it is every {every:g} s: a trial of "
                    f"{rule.failback.trial.seconds:g} s never passes. "
                    f"Write `trial: {{seconds: {least:g}}}`"
                )
                yield document.problem((*at, "failback"), message, severity="warning")


def _blind_secondaries(
    rule: TrafficFailover, mine: Sequence[LoadedSource], document: Document, at: Path
) -> Iterator[Problem]:
    """A secondary whose only signal needs traffic is Unknown while it has none, and never gets any."""
    services = [backend.service for backend in rule.backends or ()]
    primary = rule.primary or next(iter(services), None)
    for index, backend in enumerate(rule.backends or ()):
        if rule.templated or backend.service == primary or backend.treat_unknown_as is not None:
            continue
        target = backend.target or f"service/{rule.route.cluster}/{rule.route.namespace}/{backend.service}"
        speak = [source for source in mine if may_overlap(source.target, target)]
        if speak and all(needs_traffic(source).endswith("Unknown") for source in speak):
            message = (
                f"only {speak[0].says!r} is about it, and knows nothing without traffic, so it never gets any: "
                f"add a probe of {target}, or `treatUnknownAs: Healthy` here"
            )
            yield document.problem((*at, "backends", index), message, severity="warning")

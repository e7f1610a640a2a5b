"""Checks queries: that Prometheus takes them, that their metrics exist, and that series have the target's labels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reactor.clients.instant_queries import Queries, QueryRefused
from reactor.workbench.livecheck.live import Site
from rules.core.errors import Problem
from rules.rulefile.sources import Bound
from rules.rulefile.targets import check_template

LOOK_BACK = "1h"
"""A metric without a series for so long is taken for misspelled, or gone."""
METRICS_MAX = 50
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`")
_COMMENT = re.compile(r"#[^\n]*")
_LABELS = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]")
_LISTS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w.:])([A-Za-z_:][\w:]*)(\s*\()?")
_KEYWORDS = frozenset({
    "and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "offset", "bool", "atan2",
    "inf", "nan", "start", "end", "smoothed", "anchored", "fill", "fill_left", "fill_right",
})  # fmt: skip
_MADE = frozenset({"ALERTS", "ALERTS_FOR_STATE"})
"""Metrics that are only there while something fires."""


def metrics(query: str) -> Iterator[str]:
    """Give the names of the metrics that a query reads, each once. A name in a matcher is skipped."""
    text = _COMMENT.sub("", _STRING.sub('""', query))
    text = _LISTS.sub("", _LABELS.sub("", text))
    seen = set()
    for word, call in _WORD.findall(text):
        if not call and word.lower() not in _KEYWORDS and word not in _MADE and word not in seen:
            seen.add(word)
            yield word


async def ask(
    prometheus: Queries, query: str, site: Site, *, target: str = "", when: str | Bound = "Present"
) -> list[Problem]:
    """Ask one query. Raises QueryFailed where Prometheus does not answer.

    `site`: where the query is. `target`: a template that its series have to fill. `when`: what makes it Unhealthy.
    """
    try:
        samples = await prometheus.query(query)
    except QueryRefused as error:
        return [site.says(str(error))]
    problems = []
    for label in sorted(check_template(target)) if target and samples else ():
        lacking = [sample.labels for sample in samples if not sample.labels.get(label)]
        if lacking:
            message = f"{len(lacking)} of {len(samples)} series have no label {label!r} for {target}: {lacking[0]}"
            problems.append(site.says(message, "warning"))
    unknown = [name for name in [*metrics(query)][:METRICS_MAX] if not await _exists(prometheus, name)]
    problems += [site.says(f"no series is called {name} in the last {LOOK_BACK}", "warning") for name in unknown]
    if not samples and not unknown and when != "Present":
        consequence = "Unhealthy" if when == "Absent" else "Unknown"
        problems.append(site.says(f"gives no series now, so its target is {consequence}", "warning"))
    return problems


async def _exists(prometheus: Queries, name: str) -> bool:
    try:
        return bool(await prometheus.query(f"count(last_over_time({name}[{LOOK_BACK}]))"))
    except QueryRefused:
        return True  # no metric, then, but a word of PromQL that we do not know

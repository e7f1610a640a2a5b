"""Alerts that belong together, those of one Prometheus group about one kind of target, as one rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from reactor.cli.importers.alerting_rule import AlertingRule, AlertTarget, Wanted
from reactor.cli.importers.importing import Import, findings
from reactor.cli.shared.alerting import BadDuration, as_message, mapping, quoted, seconds
from reactor.cli.shared.files import count

_MESSAGE = "{target} is {status} since {since}: {detail}"
"""Alertmanager's alerts have their summary as detail."""
_EVERY_SECONDS = 15
_NAMES_CHARACTERS = 3000
"""Most characters of one matcher made of names: it may have 4096 in all."""
_SHOWN = 8
"""Most names of alerts in one line of the report."""


@dataclass(slots=True)
class Together:
    """Alerts that become one rule."""

    name: str
    target: AlertTarget
    lasts: tuple[float, float]
    """tolerationSeconds and recoverySeconds."""
    alerts: list[AlertingRule] = field(default_factory=list)

    def make(self, wanted: Wanted, made: Import) -> int:
        """Add its sources and its rule, but where our checks find them wrong. Gives how many alerts came along."""
        sources = [*(self._webhooks(wanted, made) if wanted.way == "webhook" else self._queries(wanted, made))]
        rule = self._rule(sources, wanted, made)
        first = self.alerts[0]
        problems = findings([rule], sources)
        for one in problems:
            made.problems.append(first.document.problem(first.at, one.message, severity=one.severity))
        if any(one.severity == "error" for one in problems):
            return 0
        made.sources += sources
        made.rules.append(rule)
        post = f", to be posted to /v1/alerts/{sources[0]['name']}" if wanted.way == "webhook" else ""
        made.carry(
            first.document, first.at,
            f"{alerts_of(self.alerts)} as rule {rule['name']}, about {self.target.template}{post}",
        )  # fmt: skip
        if wanted.way == "query":
            self._left_behind(wanted, made)
        return len(self.alerts)

    def _webhooks(self, wanted: Wanted, made: Import) -> Iterator[dict[str, Any]]:
        """One, or several where the names are too many for one."""
        taken = {one["name"] for one in made.sources}
        for names in _parts(sorted({alert.name for alert in self.alerts})):
            name = made.name(self.name, taken)
            taken.add(name)
            source: dict[str, Any] = {
                "name": name, "kind": "AlertmanagerWebhook", "target": self.target.template,
                "matchers": [f"alertname=~{quoted('|'.join(map(re.escape, names)))}"],
                "onResolved": wanted.on_resolved,
            }  # fmt: skip
            if wanted.on_resolved == "Confirm" and self.target.confirm is not None:
                source["confirm"] = {"prometheus": wanted.prometheus, "query": self.target.confirm}
            yield source

    def _queries(self, wanted: Wanted, made: Import) -> Iterator[dict[str, Any]]:
        """One for each alert: Prometheus is asked for its expression."""
        taken = {one["name"] for one in made.sources}
        for alert in self.alerts:
            name = made.name(alert.name, taken)
            taken.add(name)
            yield {
                "name": name, "kind": "PrometheusQuery", "target": self.target.template,
                "prometheus": wanted.prometheus, "query": str(alert.rule["expr"]).strip(),
                "everySeconds": every_seconds(alert, made),
            }  # fmt: skip

    def _rule(self, sources: Sequence[dict[str, Any]], wanted: Wanted, made: Import) -> dict[str, Any]:
        message = as_message(self.alerts[0].rule.get("annotations")) if len(self.alerts) == 1 else None
        toleration, recovery = self.lasts
        rule: dict[str, Any] = {
            "name": made.name(sources[0]["name"] if wanted.way == "webhook" else self.name), "kind": "Notification",
            "mode": "DryRun", "match": pattern_of(self.target.template), "signals": [one["name"] for one in sources],
            "message": message if message is not None and wanted.way == "query" else _MESSAGE,
        }  # fmt: skip
        if toleration:
            rule["tolerationSeconds"] = toleration
        if recovery:
            rule["recoverySeconds"] = recovery
        return rule

    def _left_behind(self, wanted: Wanted, made: Import) -> None:
        """Say once what series do not have, and alerts have."""
        labels, others = set[str](), set[str]()
        for alert in self.alerts:
            labels |= {
                str(key) for key in mapping(alert.rule.get("labels")) if f"{{{key}}}" not in (wanted.target or "")
            }
            others |= mapping(alert.rule.get("annotations")).keys() - {"summary", "description"}
        what = [
            f"{kind} {', '.join(sorted(names))}"
            for kind, names in (("labels", labels), ("annotations", others))
            if names
        ]
        if what:
            first = self.alerts[0]
            message = f"not carried over: {' and '.join(what)}: series do not have them"
            made.problems.append(first.document.problem(first.at, message, severity="warning"))


def tell_apart(groups: Iterable[Together]) -> None:
    """Put before a name that groups of several places have what tells these apart: file, folder or object.

    A number would say nothing to a reader, and would be another one as soon as one more file is imported.
    """
    by_name: dict[str, list[Together]] = {}
    for group in groups:
        by_name.setdefault(group.name, []).append(group)
    for name, same in by_name.items():
        places = {group.alerts[0].place for group in same}
        if len(places) == 1:
            continue
        ways = [way for way, words in enumerate(zip(*places, strict=True)) if len({*words}) == len(places)]
        for group in same if ways else []:
            group.name = f"{group.alerts[0].place[ways[0]]}-{name}"


def lasts(alert: AlertingRule, wanted: Wanted) -> tuple[float, float]:
    """Give tolerationSeconds and recoverySeconds. Raises BadDuration with the key that is wrong.

    With --as webhook Prometheus has waited before Alertmanager says a word: waiting again would add up.
    """
    found = []
    for key in ("for", "keep_firing_for"):
        try:
            found.append(seconds(alert.rule.get(key, 0)))
        except BadDuration as error:
            raise BadDuration(f"{key} {error}") from error
    return (found[0], found[1]) if wanted.way == "query" else (0, 0)


def every_seconds(alert: AlertingRule, made: Import) -> float:
    """Give how often its group is evaluated."""
    if "interval" not in alert.group:
        return _EVERY_SECONDS
    try:
        return seconds(alert.group["interval"]) or _EVERY_SECONDS
    except BadDuration as error:
        message = f"alert {alert.name}: the group's interval: {error}; {_EVERY_SECONDS} s instead"
        made.problems.append(alert.document.problem(alert.at, message, severity="warning"))
        return _EVERY_SECONDS


def alerts_of(alerts: Sequence[AlertingRule], *, most: int = _SHOWN) -> str:
    """`2 alerts of group shop (A, B)`."""
    names = list(dict.fromkeys(alert.name for alert in alerts))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    group = str(alerts[0].group.get("name") or "without a name")
    return f"{count(len(alerts), 'alert')} of group {group} ({', '.join(names[:most])}{more})"


def pattern_of(template: str) -> str:
    """Give the pattern that all targets of a template match."""
    return "/".join("*" if "{" in part else part for part in template.split("/"))


def _parts(names: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for name in names:
        if part and sum(map(len, part)) + len(part) + len(name) > _NAMES_CHARACTERS:
            yield part
            part = []
        part.append(name)
    if part:
        yield part

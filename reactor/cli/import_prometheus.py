"""`reactor import prometheus`: alerting rules as sources, each with a Notification rule that waits as the alert does.

By default an alert is taken from Alertmanager's webhook: Prometheus goes on evaluating it. With --as query the reactor
evaluates its expression, and the alert can go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from reactor.cli.alerting import BadDuration, as_message, fixed_labels, mapping, quoted, seconds
from reactor.cli.importing import Import, findings, kind_of, objects
from rules.language.targets import BadTarget, check_template, encode_segment
from rules.language.yaml import Document
from rules.language.yaml import Path as At

DEFAULT_TARGET = "custom/alerts/{alertname}"
_MESSAGE = "{target} is {status} since {since}: {detail}"
"""Alertmanager's alerts have their summary as detail."""
_EVERY_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line."""

    target: str
    way: str
    alerts: tuple[str, ...]
    prometheus: str
    on_resolved: str


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the rules to this file.")
@click.option(
    "--target", default=DEFAULT_TARGET, show_default=True, metavar="TEMPLATE",
    help="What an alert is about, from its labels: 'service/{cluster}/{namespace}/{service}'.",
)  # fmt: skip
@click.option(
    "--as", "way", type=click.Choice(["webhook", "query"]), default="webhook", show_default=True,
    help="webhook: Alertmanager tells of the alert. query: the reactor asks Prometheus for its expression.",
)  # fmt: skip
@click.option("--alert", "alerts", multiple=True, metavar="PATTERN", help="Only alerts of such a name: 'Kube*'. Repeatable.")
@click.option(
    "--prometheus", default="main", show_default=True, metavar="NAME",
    help="With --as query: a Prometheus of the settings.",
)  # fmt: skip
@click.option(
    "--on-resolved", type=click.Choice(["Confirm", "Healthy"]), default="Confirm", show_default=True,
    help="With --as webhook: whether an alert that is resolved still has to be confirmed.",
)  # fmt: skip
def prometheus(files: tuple[str, ...], output: Path | None, **given: Any) -> None:
    """Turn Prometheus' alerting rules into sources and Notification rules.

    FILE is a Prometheus rule file, or YAML or JSON with PrometheusRule objects; a folder, a glob, or - for stdin.
    Recording rules are passed over.

    \b
    reactor import prometheus alerts.yml --target 'service/{cluster}/{namespace}/{service}' > alerts.yaml
    kubectl get prometheusrules -A -o yaml | reactor import prometheus --as query -

    `for` becomes tolerationSeconds, keep_firing_for recoverySeconds. What else an alert's target is, and what is to be
    done about it, no alerting rule says: a Notification tells people until you write a rule that acts.

    Exit code: 0 where every alerting rule became a rule, 1 where one could not, or where there was none.
    """
    try:
        check_template(given["target"])
    except BadTarget as error:
        raise click.BadParameter(str(error), param_hint="--target") from error
    wanted, made = Wanted(**given), Import()
    for document in made.documents(files):
        for alert in _alerts(document, wanted, made):
            alert.take()
    made.finish(files, "alerting rule", output)


@dataclass(frozen=True, slots=True)
class Alert:
    """One alerting rule, and what there is to say about it."""

    document: Document
    at: At
    group: Mapping[str, Any]
    wanted: Wanted
    made: Import

    @property
    def rule(self) -> Any:
        return self.document.at(self.at)

    @property
    def name(self) -> str:
        return str(self.rule["alert"])

    @property
    def labels(self) -> dict[str, str]:
        """Those that every alert of this rule has, whatever its series."""
        return fixed_labels(self.group.get("labels")) | fixed_labels(self.rule.get("labels"))

    def take(self) -> None:
        """Make the source and the rule, but where our checks find them wrong."""
        if not isinstance(self.rule.get("expr"), str | int | float):
            self._say(("expr",), "an alerting rule without one says nothing", severity="error")
            return
        name = self.made.name(self.name)
        source = {"name": name} | (self._webhook() if self.wanted.way == "webhook" else self._query())
        rule = self._notification(name, source["target"])
        if rule is None:
            return
        problems = findings([rule], [source])
        for one in problems:
            self._say((), f"{one.path}: {one.message}", severity=one.severity)
        if any(one.severity == "error" for one in problems):
            return
        self.made.sources.append(source)
        self.made.rules.append(rule)
        where = f", to be posted to /v1/alerts/{name}" if self.wanted.way == "webhook" else ""
        self.made.carry(self.document, self.at, f"alert {self.name} as source and rule {name}{where}")
        self._leftovers()

    def _webhook(self) -> dict[str, Any]:
        labels = {"alertname": self.name} | self.labels
        matchers = [f"{key}={quoted(value)}" for key, value in labels.items()]
        return {
            "kind": "AlertmanagerWebhook", "target": self.wanted.target, "matchers": matchers,
            "onResolved": self.wanted.on_resolved,
        }  # fmt: skip

    def _query(self) -> dict[str, Any]:
        """The series of an expression have no labels of the alert: those that are known are filled in here."""
        target = self.wanted.target
        for label, value in ({"alertname": self.name} | self.labels).items():
            target = target.replace(f"{{{label}}}", encode_segment(value))
        return {
            "kind": "PrometheusQuery", "target": target, "prometheus": self.wanted.prometheus,
            "query": str(self.rule["expr"]).strip(), "everySeconds": self._every_seconds(),
        }  # fmt: skip

    def _every_seconds(self) -> float:
        if "interval" not in self.group:
            return _EVERY_SECONDS
        try:
            return seconds(self.group["interval"])
        except BadDuration as error:
            self._say((), f"the group's interval: {error}; {_EVERY_SECONDS} s instead", severity="warning")
            return _EVERY_SECONDS

    def _notification(self, name: str, target: str) -> dict[str, Any] | None:
        annotations = self.rule.get("annotations")
        message = as_message(annotations) if self.wanted.way == "query" else _MESSAGE
        if message is None:
            message = f"{self.name}: {{target}} is {{status}} since {{since}}"
            if annotations:
                self._say(("annotations",), "not carried over: they calculate; the message says the alert's name")
        pattern = "/".join("*" if "{" in part else part for part in target.split("/"))
        rule: dict[str, Any] = {
            "name": name, "kind": "Notification", "mode": "DryRun", "match": pattern, "signals": [name],
            "message": message,
        }  # fmt: skip
        for key, ours in (("for", "tolerationSeconds"), ("keep_firing_for", "recoverySeconds")):
            try:
                rule[ours] = seconds(self.rule.get(key, 0))
            except BadDuration as error:
                self._say((key,), str(error), severity="error")
                return None
        return rule

    def _leftovers(self) -> None:
        """Say what does not come along, or not alone."""
        for key, ours in (("for", "tolerationSeconds"), ("keep_firing_for", "recoverySeconds")):
            if self.wanted.way == "webhook" and seconds(self.rule.get(key, 0)):
                self._say((key,), f"is {ours} now: take it out of the alert, or the two add up")
        for key in mapping(self.rule.get("labels")):
            if key not in self.labels:
                self._say(("labels", key), "not carried over: a template makes its value")
            elif self.wanted.way == "query" and f"{{{key}}}" not in self.wanted.target:
                self._say(("labels", key), "not carried over: series have no labels of the alert")
        others = sorted(mapping(self.rule.get("annotations")).keys() - {"summary", "description"})
        if others:
            self._say(("annotations",), f"not carried over: {', '.join(others)}")

    def _say(self, inside: At, message: str, *, severity: str = "warning") -> None:
        key = f"{inside[-1]} " if inside and not message.startswith("not carried over") else ""
        said = f"alert {self.name}: {key}{message}"
        self.made.problems.append(self.document.problem((*self.at, *inside), said, severity=severity))


def _alerts(document: Document, wanted: Wanted, made: Import) -> Iterator[Alert]:
    """Give the alerting rules of a document: a Prometheus rule file, or PrometheusRule objects."""
    for at in objects(document):
        found = document.at(at)
        kind, group = kind_of(found)
        if kind == "PrometheusRule" and group == "monitoring.coreos.com":
            at, found = (*at, "spec"), found.get("spec")
        groups = found.get("groups") if isinstance(found, dict) else None
        if not isinstance(groups, list):
            message = f"passed over: {kind or 'this'} has no groups of Prometheus rules"
            made.problems.append(document.problem(at, message, severity="warning"))
            continue
        for index, one in enumerate(groups):
            yield from _of_group(document, (*at, "groups", index), one, wanted, made)


def _of_group(document: Document, at: At, group: Any, wanted: Wanted, made: Import) -> Iterator[Alert]:
    rules = group.get("rules") if isinstance(group, dict) else None
    if not isinstance(rules, list):
        made.problems.append(document.problem(at, "passed over: a group without rules", severity="warning"))
        return
    for index, rule in enumerate(rules):
        here = (*at, "rules", index)
        name = rule.get("alert") if isinstance(rule, dict) else None
        if not isinstance(name, str) or not name:
            what = f"recording rule {rule['record']}" if isinstance(rule, dict) and "record" in rule else "this"
            made.problems.append(document.problem(here, f"passed over: {what} is no alert", severity="warning"))
        elif not wanted.alerts or any(fnmatchcase(name, pattern) for pattern in wanted.alerts):
            yield Alert(document, here, group, wanted, made)

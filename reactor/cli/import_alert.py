"""One alerting rule of Prometheus as a source and a Notification rule, and what could not come along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reactor.cli.alerting import BadDuration, as_message, fixed_labels, mapping, quoted, seconds
from reactor.cli.importing import Import, findings
from rules.language.targets import encode_segment
from rules.language.yaml import Document
from rules.language.yaml import Path as At

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
            return seconds(self.group["interval"]) or _EVERY_SECONDS
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

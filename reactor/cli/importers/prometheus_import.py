"""`reactor import prometheus`: alerting rules as sources and Notification rules, where their labels give a target.

By default alerts are taken from Alertmanager's webhook: Prometheus goes on evaluating them. With --as query the reactor
evaluates their expressions, and the alerts can go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from reactor.cli.importers.alert_groups import Together, alerts_of, lasts, tell_apart
from reactor.cli.importers.alerting_rule import AlertingRule, Wanted
from reactor.cli.importers.importing import Import, kind_of, objects
from reactor.cli.shared.alerting import BadDuration
from reactor.cli.shared.files import count
from reactor.cli.shared.old_names import file_options
from rules.rulefile.targets import BadTarget, check_template
from rules.rulefile.yaml import Document
from rules.rulefile.yaml import Path as At


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@file_options("yaml", "json", about="Write the rules to this file.")
@click.option(
    "--target", metavar="TEMPLATE",
    help="The target of all alerts, made of their labels: 'service/{cluster}/{namespace}/{service}'. Default: the most "
    "specific of workload, Service, node, instance and job that an alert has the labels of.",
)  # fmt: skip
@click.option("--cluster", metavar="NAME", help="The cluster of Kubernetes objects whose alerts have no cluster label.")
@click.option(
    "--as", "way", type=click.Choice(["webhook", "query"]), default="webhook", show_default=True,
    help="webhook: Alertmanager sends the alert. query: the reactor evaluates its expression on Prometheus.",
)  # fmt: skip
@click.option("--alert", "alerts", multiple=True, metavar="PATTERN", help="Only alerts whose name matches. Repeatable.")
@click.option(
    "--prometheus", default="main", show_default=True, metavar="NAME",
    help="A Prometheus of the settings: for queries, and to confirm resolved alerts.",
)  # fmt: skip
@click.option(
    "--on-resolved", type=click.Choice(["Confirm", "Healthy"]), default="Confirm", show_default=True,
    help="With --as webhook: confirm a resolved alert by a query, or treat its target as Healthy.",
)  # fmt: skip
def prometheus(files: tuple[str, ...], output: str, output_file: Path | None, **given: Any) -> None:
    """Convert alerting rules of Prometheus.

    They become sources and Notification rules. FILE is a Prometheus rule file, or YAML or JSON with PrometheusRule
    objects; a folder, a glob, or - for stdin.

    \b
    reactor import prometheus alerts.yml --target 'service/{cluster}/{namespace}/{service}' > alerts.yaml
    kubectl get prometheusrules -A -o yaml | reactor import prometheus --cluster east -

    Alerts of one group about one kind of target become one rule. An alert whose labels give no target is left out, and
    counted with the reason. An alerting rule does not say what to do about its target: the Notification informs people
    until you write a rule that acts.

    Exit code: 1 if an alerting rule could not be read, or there is no rule to write; else 0.
    """
    try:
        if given["target"] is not None:
            check_template(given["target"])
    except BadTarget as error:
        raise click.BadParameter(str(error), param_hint="--target") from error
    wanted, made = Wanted(**given), Import()
    alerts = [alert for document in made.documents(files) for alert in _alerts(document, wanted, made)]
    groups, left_out = _sorted(alerts, wanted, made)
    came = sum(group.make(wanted, made) for group in groups)
    _report(alerts, came, left_out, made)
    made.finish(files, "alerting rule", output, output_file)


def _sorted(
    alerts: Iterable[AlertingRule], wanted: Wanted, made: Import
) -> tuple[list[Together], dict[str, list[AlertingRule]]]:
    """Give the alerts that become rules, by what belongs together, and those that do not, by the reason."""
    groups: dict[tuple[object, ...], Together] = {}
    left_out: dict[str, list[AlertingRule]] = {}
    for alert in alerts:
        if not isinstance(alert.rule.get("expr"), str | int | float):
            _wrong(alert, "the alerting rule has no expr", made)
            continue
        try:
            waits = lasts(alert, wanted)
        except BadDuration as error:
            _wrong(alert, str(error), made)
            continue
        target = alert.target(wanted)
        if isinstance(target, str):
            left_out.setdefault(target, []).append(alert)
            continue
        name = str(alert.group.get("name") or alert.name)
        key = (id(alert.document), alert.at[:-2], target, waits)
        group = groups.setdefault(key, Together(f"{name}-{target.about}", target, waits))
        group.alerts.append(alert)
    tell_apart(groups.values())
    return [*groups.values()], left_out


def _wrong(alert: AlertingRule, message: str, made: Import) -> None:
    made.problems.append(alert.document.problem(alert.at, f"alert {alert.name}: {message}"))


def _report(alerts: list[AlertingRule], came: int, left_out: dict[str, list[AlertingRule]], made: Import) -> None:
    """Say what is left out, a line for each group and reason, and how much that is."""
    for reason, found in left_out.items():
        groups: dict[tuple[object, ...], list[AlertingRule]] = {}
        for alert in found:
            groups.setdefault((id(alert.document), alert.at[:-2]), []).append(alert)
        for some in groups.values():
            message = f"left out: {alerts_of(some, most=len(some))}: {reason}"
            made.problems.append(some[0].document.problem(some[0].at, message, severity="warning"))
    if alerts:
        made.summary.append(f"{came} of {count(len(alerts), 'alerting rule')} converted")
    for reason, found in sorted(left_out.items(), key=lambda one: -len(one[1])):
        made.summary.append(f"  {len(found)} left out: {reason}")


def _alerts(document: Document, wanted: Wanted, made: Import) -> Iterator[AlertingRule]:
    """Give the alerting rules of a document: a Prometheus rule file, or PrometheusRule objects."""
    for at in objects(document):
        found = document.at(at)
        kind, group = kind_of(found)
        if kind == "PrometheusRule" and group == "monitoring.coreos.com":
            at, found = (*at, "spec"), found.get("spec")
        groups = found.get("groups") if isinstance(found, dict) else None
        if not isinstance(groups, list):
            message = f"skipped: {kind or 'this'} has no groups of Prometheus rules"
            made.problems.append(document.problem(at, message, severity="warning"))
            continue
        for index, one in enumerate(groups):
            yield from _of_group(document, (*at, "groups", index), one, wanted, made)


def _of_group(document: Document, at: At, group: Any, wanted: Wanted, made: Import) -> Iterator[AlertingRule]:
    rules = group.get("rules") if isinstance(group, dict) else None
    if not isinstance(rules, list):
        made.problems.append(document.problem(at, "skipped: a group without rules", severity="warning"))
        return
    records = [str(rule["record"]) for rule in rules if isinstance(rule, dict) and "record" in rule]
    if records:
        message = f"skipped: recording rules are not alerts: {', '.join(records)}"
        made.problems.append(document.problem((*at, "rules"), message, severity="warning"))
    for index, rule in enumerate(rules):
        here = (*at, "rules", index)
        name = rule.get("alert") if isinstance(rule, dict) else None
        if not isinstance(name, str) or not name:
            if not (isinstance(rule, dict) and "record" in rule):
                made.problems.append(document.problem(here, "skipped: this is not an alert", severity="warning"))
        elif not wanted.alerts or any(fnmatchcase(name, pattern) for pattern in wanted.alerts):
            yield AlertingRule(document, here, group)

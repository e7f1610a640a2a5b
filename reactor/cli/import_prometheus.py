"""`reactor import prometheus`: alerting rules as sources, each with a Notification rule that waits as the alert does.

By default an alert is taken from Alertmanager's webhook: Prometheus goes on evaluating it. With --as query the reactor
evaluates its expression, and the alert can go.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from reactor.cli.import_alert import Alert, Wanted
from reactor.cli.importing import Import, kind_of, objects
from rules.language.targets import BadTarget, check_template
from rules.language.yaml import Document
from rules.language.yaml import Path as At

DEFAULT_TARGET = "custom/alerts/{alertname}"


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
@click.option("--alert", "alerts", multiple=True, metavar="PATTERN", help="Only alerts with such a name. Repeatable.")
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

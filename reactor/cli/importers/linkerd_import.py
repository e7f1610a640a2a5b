"""`reactor import linkerd`: what linkerd-failover does for TrafficSplits, as TrafficFailover rules.

linkerd-failover has no configuration but the TrafficSplits themselves: a label says which are its own, an annotation
names the primary, readiness of endpoints decides, and it acts at once in both directions. So do these rules, but for
one thing: with no backend ready they leave the weights as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bus.messages import Route
from reactor.cli.importers.importing import Import, findings, kind_of, label_of, objects, path_of
from reactor.cli.shared.old_names import file_options
from reactor.sources.kubernetes.route_projection import route_from
from rules.kinds.traffic.route_state import PRIMARY_ANNOTATION as PRIMARY
from rules.rulefile.selectors import BadSelector, matches
from rules.rulefile.yaml import Document
from rules.rulefile.yaml import Path as At

LABEL = "failover.linkerd.io/controlled-by"
_GROUP = "split.smi-spec.io"
_SIGNAL = "endpoints"
_NEVER = datetime.fromtimestamp(0, UTC)  # a file does not say when its objects were seen


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@file_options("yaml", "json", about="Write the rules to this file.")
@click.option(
    "--cluster", default="local", show_default=True, metavar="NAME",
    help="The name of their cluster in the settings.",
)  # fmt: skip
@click.option(
    "--label", default=f"{LABEL}=linkerd-failover", show_default=True, metavar="LABELS",
    help="The label of those that linkerd-failover moves: its --selector, or selector of its Helm chart.",
)  # fmt: skip
@click.option("--selector", is_flag=True, help="Write one rule that selects all of them by label.")
def linkerd(
    files: tuple[str, ...], output: str, output_file: Path | None, cluster: str, label: str, *, selector: bool
) -> None:
    """Convert TrafficSplits of linkerd-failover into rules.

    FILE is YAML or JSON with any number of objects, as `kubectl get -o yaml` prints them; a folder, a glob, or - for
    stdin. Objects of other kinds and TrafficSplits without the label are skipped.

    \b
    kubectl get ts -A -o yaml | reactor import linkerd --cluster east -
    kubectl get ts -A -o yaml | reactor import linkerd --cluster east --selector -

    Exit code: 0 if every TrafficSplit with the label became a rule, 1 if one did not or there was none.
    """
    try:
        matches(label, {})
    except BadSelector as error:
        raise click.BadParameter(str(error), param_hint="--label") from error
    made = Import()
    splits = [split for document in made.documents(files) for split in _splits(document, cluster, label, made)]
    usable = [split for split in splits if split.usable()]
    if selector and usable:
        made.rules.append(_for_all(cluster, label))
        for split in usable:
            split.carry("linkerd-failover")
    else:
        for split in usable:
            split.take()
    if made.rules:
        made.sources.append({"name": _SIGNAL, "kind": "EndpointsWatch", "cluster": cluster})
    made.finish(files, "TrafficSplit with that label", output, output_file)


def _for_all(cluster: str, label: str) -> dict[str, Any]:
    route = {"cluster": cluster, "kind": "TrafficSplit", "selector": label}
    return _rule("linkerd-failover", route)


def _rule(name: str, route: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "kind": "TrafficFailover", "mode": "DryRun", "signals": [_SIGNAL], "route": route,
        "tolerationSeconds": 0, "recoverySeconds": 0,  # at once in both directions, as linkerd-failover does
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Split:
    """One TrafficSplit, and what there is to say about it."""

    document: Document
    at: At
    route: Route
    made: Import

    @property
    def object(self) -> Any:
        return self.document.at(self.at)

    @property
    def primary(self) -> str:
        """Name of the primary as linkerd-failover reads it: the annotation if it is there, else the first backend."""
        return self.route.annotations.get(PRIMARY, self.route.backends[0].service)

    def usable(self) -> bool:
        """Say what will not be as it was, and whether the rule can be made at all."""
        if self.route.problem:
            self.say(("spec",), self.route.problem)
            return False
        services = [backend.service for backend in self.route.backends]
        if self.primary not in services:
            message = (
                f"{self.primary!r} is not a backend; linkerd-failover treats that as a failed primary, "
                "this reactor would hold with UnknownPrimary: correct the annotation"
            )
            self.say(("metadata", "annotations", PRIMARY), message)
            return False
        if PRIMARY not in self.route.annotations:
            message = f"no annotation {PRIMARY}: the first backend, {self.primary}, is the primary"
            self.say(("metadata", "annotations"), message, severity="warning")
        for index, backend in enumerate(self.route.backends):
            if backend.weight > 1:
                message = (
                    f"weight {backend.weight} is not carried over: as with linkerd-failover, one backend has all or "
                    "the ready ones share equally; for shares by size see distribution: Proportional"
                )
                self.say(("spec", "backends", index, "weight"), message, severity="warning")
        return True

    def take(self) -> None:
        """Make a rule for this one alone."""
        route = {
            "cluster": self.route.cluster, "kind": "TrafficSplit", "namespace": self.route.namespace,
            "name": self.route.name,
        }  # fmt: skip
        rule = _rule(self.made.name("-".join(path_of(self.object))), route)
        rule["primary"] = self.primary
        rule["backends"] = [{"service": backend.service} for backend in self.route.backends]
        problems = findings([rule])
        for one in problems:
            self.say(("spec", "backends"), one.message, severity=one.severity)
        if not any(one.severity == "error" for one in problems):
            self.made.rules.append(rule)
            self.carry(rule["name"])

    def carry(self, name: str) -> None:
        """Say which rule it has become a part of."""
        message = f"{label_of(self.object)} as rule {name}: {len(self.route.backends)} backends, primary {self.primary}"
        self.made.carry(self.document, self.at, message)

    def say(self, inside: At, message: str, *, severity: str = "error") -> None:
        """Say something about it, at its place."""
        said = f"{label_of(self.object)}: {message}"
        self.made.problems.append(self.document.problem((*self.at, *inside), said, severity=severity))


def _splits(document: Document, cluster: str, label: str, made: Import) -> Iterator[Split]:
    """Give the TrafficSplits of a document that linkerd-failover moves."""
    for at in objects(document):
        found = document.at(at)
        if kind_of(found) != ("TrafficSplit", _GROUP):
            kind = kind_of(found)[0] or "this"
            made.problems.append(document.problem(at, f"skipped: {kind} is not a TrafficSplit", severity="warning"))
            continue
        split = Split(document, at, route_from(cluster, "TrafficSplit", found, None, at=_NEVER), made)
        if len(path_of(found)) < 2:
            split.say(("metadata",), "needs a namespace and a name, since a rule names both")
        elif not matches(label, split.route.labels):
            message = f"skipped: {label_of(found)} does not have the label {label}, so linkerd-failover ignores it"
            made.problems.append(document.problem((*at, "metadata"), message, severity="warning"))
        else:
            yield split

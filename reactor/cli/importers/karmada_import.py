"""`reactor import karmada`: PropagationPolicies and ClusterPropagationPolicies as WorkloadFailover rules.

The body of such a rule is the spec of a policy, so most of it is copied unchanged. What our own checks have nothing
to say about is carried over, and everything else is told with its place in the policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from reactor.cli.importers.importing import Import, findings, kind_of, label_of, objects, path_of
from reactor.cli.shared.old_names import file_options
from rules.rulefile.yaml import Document
from rules.rulefile.yaml import Path as At

KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")
_GROUP = "policy.karmada.io"
_DROPPED = ("unknown key", "is Karmada's business")
"""Beginnings of findings about keys that a rule is as good without."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@file_options("yaml", "json", about="Write the rules to this file.")
@click.option(
    "--carrier", type=click.Choice(["Karmada", "Kubernetes"]), default="Karmada", show_default=True,
    help="Karmada: Karmada places, the reactor says when to move. Kubernetes: the reactor copies and removes.",
)  # fmt: skip
def karmada(files: tuple[str, ...], output: str, output_file: Path | None, carrier: str) -> None:
    """Convert Karmada policies into rules.

    FILE is YAML or JSON with any number of objects, as `kubectl get -o yaml` prints them; a folder, a glob, or - for
    stdin. Objects of other kinds are skipped.

    \b
    reactor import karmada policies/ > workloads.yaml
    kubectl get pp,cpp -A -o yaml | reactor import karmada -

    Exit code: 0 if every policy became a rule, 1 if one did not or there was none.
    """
    made = Import()
    for document in made.documents(files):
        for policy in _policies(document, made):
            policy.take(carrier)
    made.finish(files, " and no ".join(KINDS), output, output_file)


@dataclass(frozen=True, slots=True)
class PolicyObject:
    """One policy object, and what there is to say about it."""

    document: Document
    at: At
    made: Import

    @property
    def object(self) -> Any:
        return self.document.at(self.at)

    def take(self, carrier: str) -> None:
        """Make the rule, but where our checks find it wrong."""
        spec = self.object.get("spec")
        if not isinstance(spec, dict):
            self._say(("spec",), "the policy has no spec")
            return
        name = self.made.name("-".join(path_of(self.object)) or "policy")
        rule: dict[str, Any] = {
            "name": name, "kind": "WorkloadFailover", "mode": "DryRun", "carrier": carrier,
            **self._scoped(deepcopy(spec)),
        }  # fmt: skip
        while True:  # one key less each time
            problems = findings([rule])
            dropped = [one for one in problems if one.message.startswith(_DROPPED) and _drop(rule, one.path)]
            for one in dropped:
                self._say(_path(one.path), f"not carried over: {one.message}", severity="warning")
            if not dropped:
                break
        for one in problems:
            self._say(_path(one.path), one.message, severity=one.severity)
        if not any(one.severity == "error" for one in problems):
            self.made.rules.append(rule)
            self.made.carry(self.document, self.at, f"{label_of(self.object)} as rule {name}")

    def _scoped(self, spec: dict[str, Any]) -> dict[str, Any]:
        """A PropagationPolicy selects only in its own namespace, and need not say so."""
        namespace = (self.object.get("metadata") or {}).get("namespace")
        selectors = spec.get("resourceSelectors")
        if self.object["kind"] == "PropagationPolicy" and namespace and isinstance(selectors, list):
            for one in selectors:
                if isinstance(one, dict):
                    one.setdefault("namespace", namespace)
        return spec

    def _say(self, inside: At, message: str, *, severity: str = "error") -> None:
        at = inside if inside[:1] == ("spec",) else ("spec", *inside)
        said = f"{label_of(self.object)}: {message}"
        self.made.problems.append(self.document.problem((*self.at, *at), said, severity=severity))


def _policies(document: Document, made: Import) -> Iterator[PolicyObject]:
    """Give the policies of a document."""
    for at in objects(document):
        kind, group = kind_of(document.at(at))
        if kind in KINDS and group == _GROUP:
            yield PolicyObject(document, at, made)
        else:
            made.problems.append(document.problem(at, f"skipped: {kind or 'this'} is not a policy", severity="warning"))


def _path(text: str) -> At:
    """Read the place of a finding, without the rule that it is in: `rules[0].placement.x[1]`."""
    steps = re.findall(r"[^.\[\]]+", text)[2:]
    return tuple(int(step) if step.isdigit() else step for step in steps)


def _drop(rule: dict[str, Any], path: str) -> bool:
    """Take the key at this path away, and say whether it was there."""
    *way, last = _path(path) or ("",)
    inside: Any = rule
    for step in way:
        try:
            inside = inside[step]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(inside, dict) and inside.pop(last, None) is not None

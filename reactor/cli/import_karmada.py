"""`reactor import karmada`: PropagationPolicies and ClusterPropagationPolicies as WorkloadFailover rules.

The body of such a rule is the spec of a policy, so most of it is copied as it stands. What our own checks have nothing
to say about is carried over, and everything else is told with its place in the policy.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import yaml

from reactor.cli.files import count, find_rules, read_all, shown
from rules.errors import InvalidFiles, Problem
from rules.language import loader
from rules.language.model import API_VERSION
from rules.language.yaml import Document, read

KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")
_GROUP = "policy.karmada.io/"
_DROPPED = ("unknown key", "is Karmada's business")
"""Beginnings of findings about keys that a rule is as good without."""
_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_NAME = re.compile(r"[^A-Za-z0-9._-]")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*")
_NO_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the rules to this file.")
@click.option(
    "--carrier", type=click.Choice(["Karmada", "Kubernetes"]), default="Karmada", show_default=True,
    help="Karmada: it goes on placing, told when to move. Kubernetes: the reactor copies and removes by itself.",
)  # fmt: skip
def karmada(files: tuple[str, ...], output: Path | None, carrier: str) -> None:
    """Turn Karmada policies into rules.

    FILE is YAML or JSON with any number of objects, as `kubectl get -o yaml` prints them; a folder, a glob, or - for
    stdin. Objects of other kinds are passed over.

    \b
    reactor import karmada policies/ > workloads.yaml
    kubectl get pp,cpp -A -o yaml | reactor import karmada -

    Exit code: 0 where every policy became a rule, 1 where one could not, or where there was none.
    """
    names, problems = find_rules(files)
    rules: list[dict[str, Any]] = []
    for name, text in read_all(names, problems):
        for document in _documents(name, text, problems):
            for policy in _policies(document, problems):
                rule = policy.rule(carrier, taken={one["name"] for one in rules})
                problems += policy.findings
                rules += [rule] if rule is not None else []
    if not rules:
        problems.append(Problem(", ".join(files), 1, 1, "", f"no {' and no '.join(KINDS)} that can be used"))
    else:
        _write(rules, output)
    for problem in problems:
        click.echo(shown(problem), err=True)
    failed = [problem for problem in problems if problem.severity == "error"]
    click.echo(f"{count(len(rules), 'rule')} in mode DryRun, {count(len(problems), 'remark')}", err=True)
    sys.exit(int(bool(failed)))


def _documents(name: str, text: str, problems: list[Problem]) -> Iterator[Document]:
    """Give each document of a file, with the lines that it has there."""
    starts = [0, *(found.start() for found in _DOCUMENT_START.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        part = _DOCUMENT_START.sub("   ", text[start:end], count=1)
        if not part.strip():
            continue
        document, found = read("\n" * text.count("\n", 0, start) + part, name)
        problems += found
        if document.value is not None:
            yield document


@dataclass(slots=True)
class Policy:
    """One policy object, and what there is to say about it."""

    document: Document
    at: tuple[str | int, ...]
    findings: list[Problem] = field(default_factory=list)

    @property
    def object(self) -> Any:
        return self.document.at(self.at)

    @property
    def label(self) -> str:
        """`PropagationPolicy shop/nginx`."""
        metadata = self.object.get("metadata") or {}
        path = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
        return f"{self.object['kind']} {path or 'without a name'}"

    def rule(self, carrier: str, *, taken: set[str]) -> dict[str, Any] | None:
        """Give the rule, or None where our checks find it wrong. What is said about it is in `findings`."""
        spec = self.object.get("spec")
        if not isinstance(spec, dict):
            self._say(("spec",), "a policy without a spec says nothing")
            return None
        rule: dict[str, Any] = {
            "name": self._name(taken), "kind": "WorkloadFailover", "mode": "DryRun", "carrier": carrier,
            **self._scoped(deepcopy(spec)),
        }  # fmt: skip
        while True:  # one key less each time
            problems = _check(rule)
            dropped = [one for one in problems if one.message.startswith(_DROPPED) and _drop(rule, one.path)]
            for one in dropped:
                self._say(_path(one.path), f"not carried over: {one.message}", severity="warning")
            if not dropped:
                break
        for one in problems:
            self._say(_path(one.path), one.message, severity=one.severity)
        return None if any(one.severity == "error" for one in problems) else rule

    def _name(self, taken: set[str]) -> str:
        metadata = self.object.get("metadata") or {}
        parts = [str(metadata[key]) for key in ("namespace", "name") if metadata.get(key)]
        name = _NAME.sub("-", "-".join(parts))[:120] or "policy"
        number = next(number for number in range(1, len(taken) + 2) if self._numbered(name, number) not in taken)
        return self._numbered(name, number)

    def _numbered(self, name: str, number: int) -> str:
        return name if number == 1 else f"{name}-{number}"

    def _scoped(self, spec: dict[str, Any]) -> dict[str, Any]:
        """A PropagationPolicy selects only in its own namespace, and need not say so."""
        namespace = (self.object.get("metadata") or {}).get("namespace")
        selectors = spec.get("resourceSelectors")
        if self.object["kind"] == "PropagationPolicy" and namespace and isinstance(selectors, list):
            for one in selectors:
                if isinstance(one, dict):
                    one.setdefault("namespace", namespace)
        return spec

    def _say(self, inside: tuple[str | int, ...], message: str, *, severity: str = "error") -> None:
        at = inside if inside[:1] == ("spec",) else ("spec", *inside)
        self.findings.append(self.document.problem((*self.at, *at), f"{self.label}: {message}", severity=severity))


def _policies(document: Document, problems: list[Problem]) -> Iterator[Policy]:
    """Give the policies of a document: one object, or a List of them."""
    value = document.value
    listed = isinstance(value, dict) and isinstance(value.get("items"), list)
    places: list[tuple[str | int, ...]] = [("items", n) for n in range(len(value["items"]))] if listed else [()]
    for at in places:
        one = document.at(at)
        kind, version = (one.get("kind"), str(one.get("apiVersion"))) if isinstance(one, dict) else (None, "")
        if kind in KINDS and version.startswith(_GROUP):
            yield Policy(document, at)
        else:
            problems.append(document.problem(at, f"passed over: {kind or 'this'} is no policy", severity="warning"))


def _check(rule: Mapping[str, Any]) -> list[Problem]:
    """Give what our own checks say about a rule."""
    text = _dump([dict(rule)])
    try:
        return [*loader.load([("", text)]).warnings]
    except InvalidFiles as error:
        return [*error.problems]


def _path(text: str) -> tuple[str | int, ...]:
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


class _Dumper(yaml.SafeDumper):
    """Quotes each text that some reader of YAML might take for something else."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def _dump(rules: list[dict[str, Any]]) -> str:
    return yaml.dump({"apiVersion": API_VERSION, "rules": rules}, Dumper=_Dumper, sort_keys=False, width=120)


def _write(rules: list[dict[str, Any]], output: Path | None) -> None:
    if output is None:
        click.echo(_dump(rules), nl=False)
        return
    output.write_text(_dump(rules), encoding="utf-8")

"""Rule files in, one rule set out, or every problem of all files at once."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from rules.catalog import FILE_KINDS, AnyRule, file_kind_of
from rules.core.errors import InvalidFiles, Problem
from rules.lint import hints as lint
from rules.lint.coverage import inventories
from rules.rulefile import findings
from rules.rulefile.checks import entry_checks as checks
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import API_VERSION, Rule
from rules.rulefile.readings import readings_of
from rules.rulefile.rule_set import RuleSet as RuleSet
from rules.rulefile.sources import AnySource, LoadedSource
from rules.rulefile.yaml import Document, Path, read_yaml

_KINDS: Mapping[str, Any] = {"sources": AnySource, "rules": AnyRule, "guards": FileGuard}
_TOP = ("apiVersion", *_KINDS)


@dataclass(slots=True)
class LoadedParts:
    """Documents read so far, with their places."""

    rules: list[tuple[Rule, Document, Path]] = field(default_factory=list)
    sources: list[tuple[LoadedSource, Document, Path]] = field(default_factory=list)
    guards: list[tuple[FileGuard, Document, Path]] = field(default_factory=list)
    entries: dict[str, list[tuple[Document, Path]]] = field(
        default_factory=lambda: {"rules": [], "sources": [], "guards": []}
    )
    """All of them, also those that are wrong."""
    problems: list[Problem] = field(default_factory=list)

    def rule_set(self) -> RuleSet:
        """Give what the files say. Raises InvalidFiles with every error of every file."""
        if any(problem.severity == "error" for problem in self.problems):
            raise InvalidFiles(self.problems)
        readings = readings_of([source for source, _, _ in self.sources])
        return RuleSet(
            tuple(file_kind_of(rule).beside(rule, readings) for rule, _, _ in self.rules),
            tuple(source for source, _, _ in self.sources),
            tuple(guard for guard, _, _ in self.guards),
            tuple(sorted(self.problems)),
            {rule.name: f"{doc.file}:{doc.places[at][0]}" for rule, doc, at in self.rules},
        )

    def hints(self) -> list[Problem]:
        """Give what is allowed and seldom meant, sorted. Only worth a look where nothing is wrong."""
        return sorted(lint.hints(self.rules, self.sources, [guard for guard, _, _ in self.guards]))


def load_rules(files: Iterable[tuple[str, str]]) -> RuleSet:
    """Read rule files, given as (name, text).

    Raises InvalidFiles with every error of every file. Warnings come with the result.
    """
    return examine(files).rule_set()


def examine(files: Iterable[tuple[str, str]]) -> LoadedParts:
    """Read rule files, given as (name, text), with all findings and the place of everything."""
    reading = LoadedParts()
    for name, text in files:
        document, problems = read_yaml(text, name)
        reading.problems += problems
        if document.value is not None or not problems:
            _file(document, reading)
    reading.guards = _disambiguated(reading.guards)
    found = [problem for key, entries in reading.entries.items() for problem in checks.names(entries, key[:-1])]
    for rule, document, at in reading.rules:
        found += file_kind_of(rule).checks(rule, document, at)
    for source, document, at in reading.sources:
        found += checks.source(source, document, at)
    found += checks.together(reading.rules, reading.sources, inventories(rule for rule, _, _ in reading.rules))
    sources = [source for source, _, _ in reading.sources]
    for model, kind in FILE_KINDS.items():
        found += kind.checks_together([one for one in reading.rules if isinstance(one[0], model)], sources)
    found += checks.guards(reading.guards, reading.rules)
    reading.problems += found
    return reading


def _file(document: Document, reading: LoadedParts) -> None:
    value = document.value
    if not isinstance(value, dict):
        reading.problems.append(document.problem((), "a rule file is a mapping with apiVersion, sources and rules"))
        return
    if value.get("apiVersion") != API_VERSION:
        reading.problems.append(document.problem(("apiVersion",), f"must be {API_VERSION}"))
    for key in value.keys() - set(_TOP):
        line, column = document.keys[key,]
        known = ", ".join(_TOP)
        reading.problems.append(Problem(document.file, line, column, key, f"unknown key; a rule file has {known}"))
    reading.guards += _items(document, "guards", FileGuard, reading)
    reading.sources += _items(document, "sources", AnySource, reading)
    reading.rules += _items(document, "rules", AnyRule, reading)


def _disambiguated(found: Sequence[tuple[FileGuard, Document, Path]]) -> list[tuple[FileGuard, Document, Path]]:
    """Give guards without a name that are for the same rules names of their own, by what they say.

    A guard's name is where its turns are kept: by its place in the file, another order would swap them.
    """
    labels = Counter(guard.label for guard, _, _ in found)
    return [
        (guard if guard.name or labels[guard.label] == 1 else _named(guard), document, at)
        for guard, document, at in found
    ]


def _named(guard: FileGuard) -> FileGuard:
    digest = hashlib.sha256(guard.model_dump_json().encode()).hexdigest()[:6]
    return guard.model_copy(update={"name": f"{guard.label}#{digest}"})


def _items(document: Document, key: str, kind: Any, reading: LoadedParts) -> list[tuple[Any, Document, Path]]:
    """Validate each entry of a list by itself, so that one bad entry hides nothing of the others."""
    items = document.value.get(key)
    if items is None:
        return []
    if not isinstance(items, list):
        reading.problems.append(document.problem((key,), "must be a list"))
        return []
    out: list[tuple[Any, Document, Path]] = []
    for index, item in enumerate(items):
        at: Path = (key, index)
        reading.entries[key].append((document, at))
        try:
            model = _adapter(key).validate_json(json.dumps(item), by_name=False)
        except ValidationError as error:
            errors = [*error.errors(include_url=False), *_of_what_was_meant(key, item, error)]
            reading.problems += findings.problems(document, at, errors, kind)
        else:
            out.append((file_kind_of(model).plain(model) if isinstance(model, Rule) else model, document, at))
    return out


def _of_what_was_meant(key: str, item: Any, error: ValidationError) -> Sequence[ErrorDetails]:
    """Errors of the entry as one of the nearest kind, where only the kind's name is misspelled; else empty."""
    first = error.errors(include_url=False)[0]
    near = findings.near_tag(first)
    if near is None or not isinstance(item, dict) or first["loc"]:
        return ()
    try:
        _adapter(key).validate_json(json.dumps({**item, "kind": near}), by_name=False)
    except ValidationError as other:
        return other.errors(include_url=False)
    return ()


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[key])


DESCRIPTIONS = {
    "sources": "Where health comes from: probes, watches, queries and alerts.",
    "rules": "What to do about it, and for which targets.",
    "guards": "Limits that rules of this file share.",
}
"""Of the keys of a rule file."""


def schema() -> dict[str, Any]:
    """The JSON Schema of a rule file, for editors."""
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {"apiVersion": {"const": API_VERSION, "description": "The version of rule files."}}
    for key in _KINDS:
        part = _adapter(key).json_schema(ref_template="#/$defs/{model}")
        definitions |= part.pop("$defs", {})
        properties[key] = {"type": "array", "items": part, "description": DESCRIPTIONS[key]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "alert-reactor rule file",
        "type": "object", "required": ["apiVersion"], "additionalProperties": False,
        "properties": properties, "$defs": dict(sorted(definitions.items())),
    }  # fmt: skip

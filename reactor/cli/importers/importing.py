"""Common part of all imports: objects with the lines of their files, a report, and rules as text.

A report has one line with its place for each object that was found: the rule that it became, or why it was skipped.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from reactor.cli.shared.files import count, find_rules, read_all, shown
from reactor.cli.shared.printing import say
from reactor.rulefiles.writer import named, rule_file
from rules import loader
from rules.core.errors import InvalidFiles, Problem
from rules.rulefile.yaml import Document, read_yaml
from rules.rulefile.yaml import Path as At

CARRIED_SHOWN = 20
"""Lines of the report for converted objects, at most. Skipped objects are all listed."""
_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(slots=True)
class Import:
    """One run of an import: what has become of what was read."""

    sources: list[dict[str, Any]] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Objects that were not converted: errors where there is no rule for it, warnings where a part of a rule is
    missing."""
    carried: list[Problem] = field(default_factory=list)
    """Objects that were converted."""
    summary: list[str] = field(default_factory=list)
    """Last lines of the report."""

    def documents(self, files: Sequence[str]) -> Iterator[Document]:
        """Give each document of these files, folders and globs, with the lines that it has there."""
        names, problems = find_rules(files)
        self.problems += problems
        for name, text in read_all(names, self.problems):
            yield from _documents(name, text, self.problems)

    def name(self, wanted: str, more: Iterable[str] = ()) -> str:
        """Give a name that no rule has, nor anything of `more`, as near to the wanted one as names may be."""
        return named(wanted, {one["name"] for one in self.rules} | set(more))

    def carry(self, document: Document, at: At, message: str) -> None:
        """Say what something has become."""
        self.carried.append(document.problem(at, message, severity="carried over"))

    def finish(self, files: Sequence[str], missing: str, output: str, file: Path | None) -> None:
        """Write the rules, say on stderr what came along and what did not, and end: 1 where something was an error."""
        if not self.rules:
            self.problems.append(Problem(", ".join(files), 1, 1, "", f"no {missing} that can be used"))
        else:
            self._write(output, file)
        carried = sorted(set(self.carried))
        for problem in sorted({*self.problems, *carried[:CARRIED_SHOWN]}):
            say(shown(problem), err=True)
        if more := len(carried[CARRIED_SHOWN:]):
            say(f"and {more} more carried over: see the rules", err=True)
        for line in self.summary:
            say(line, err=True)
        say(f"{count(len(self.rules), 'rule')} in mode DryRun, {count(len(self.problems), 'remark')}", err=True)
        sys.exit(int(any(problem.severity == "error" for problem in self.problems)))

    def _write(self, output: str, file: Path | None) -> None:
        text = rule_file(self.sources, self.rules)
        if output == "json":
            text = json.dumps(read_yaml(text, "")[0].value, indent=2, ensure_ascii=False) + "\n"
        if file is None:
            click.echo(text, nl=False)
            return
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            self.problems.append(Problem(str(file), 1, 1, "", f"cannot be written: {error.strerror or error}"))


def _documents(name: str, text: str, problems: list[Problem]) -> Iterator[Document]:
    starts = [0, *(found.start() for found in _DOCUMENT_START.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        part = _DOCUMENT_START.sub("   ", text[start:end], count=1)
        if not part.strip():
            continue
        document, found = read_yaml("\n" * text.count("\n", 0, start) + part, name)
        problems += found
        if document.value is not None:
            yield document


def objects(document: Document) -> Iterator[At]:
    """Give the places of a document's objects: itself, or the items of a List."""
    value = document.value
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        yield from (("items", index) for index in range(len(value["items"])))
    else:
        yield ()


def kind_of(found: object) -> tuple[str, str]:
    """Give kind and API group of an object; empty where it has none."""
    if not isinstance(found, dict):
        return "", ""
    return str(found.get("kind") or ""), str(found.get("apiVersion") or "").partition("/")[0]


def label_of(found: Mapping[str, Any]) -> str:
    """`PropagationPolicy shop/nginx`."""
    return f"{found['kind']} {'/'.join(path_of(found)) or 'without a name'}"


def path_of(found: Mapping[str, Any]) -> list[str]:
    """Give namespace and name, as far as there are any."""
    metadata = found.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return [str(known[key]) for key in ("namespace", "name") if known.get(key)]


def findings(rules: Sequence[Mapping[str, Any]], sources: Sequence[Mapping[str, Any]] = ()) -> list[Problem]:
    """Give what our own checks say about these."""
    try:
        return [*loader.load_rules([("", rule_file(sources, rules))]).warnings]
    except InvalidFiles as error:
        return [*error.problems]

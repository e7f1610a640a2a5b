"""`reactor check`: every mistake of every file, with its place."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from reactor.cli.files import count, find_rules, read_all, read_text, shown
from rules.bench import tester
from rules.errors import InvalidFiles, Problem
from rules.language import loader


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "github"]), default="text", show_default=True,
    help="text: one finding a line. json: a list of them. github: annotations for GitHub Actions.",
)  # fmt: skip
def check(files: tuple[str, ...], output: str) -> None:
    """Find every mistake in rule files.

    FILE is a rule file, a folder (its *.yaml that are no tests), a glob, or - for stdin. Files given together are
    checked together: names must be unique over all of them. A file named *_test.yaml is checked as a rule test.

    \b
    reactor check rules/
    reactor check shop.yaml payments.yaml
    reactor check -o github 'rules/*.yaml'

    Exit code: 0 where the files can be used (warnings are no errors), 1 where they cannot.
    """
    names, problems = find_rules(files)
    tests = [name for name in names if Path(name).stem.endswith("_test")]
    rules = 0
    try:
        loaded = loader.load(read_all([name for name in names if name not in tests], problems))
        problems += loaded.warnings
        rules = len(loaded.rules)
    except InvalidFiles as error:
        problems += error.problems
    for name, text in read_all(tests, problems):
        try:
            problems += tester.load(text, name, read_text).warnings
        except InvalidFiles as error:
            problems += error.problems
    problems = sorted(set(problems))
    _print(problems, output)
    if output == "text":
        click.echo(_summary(problems, len(names), rules), err=bool(problems))
    sys.exit(int(any(problem.severity == "error" for problem in problems)))


def _print(problems: Sequence[Problem], output: str) -> None:
    if output == "json":
        click.echo(json.dumps([asdict(problem) for problem in problems], indent=2, ensure_ascii=False))
        return
    for problem in problems:
        click.echo(shown(problem) if output == "text" else _annotation(problem))


def _annotation(problem: Problem) -> str:
    def escaped(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    def value(text: str) -> str:
        return escaped(text).replace(":", "%3A").replace(",", "%2C")

    where = f"file={value(problem.file)},line={problem.line},col={problem.column}"
    message = f"{problem.path}: {problem.message}" if problem.path else problem.message
    return f"::{problem.severity} {where}::{escaped(message)}"


def _summary(problems: Iterable[Problem], files: int, rules: int) -> str:
    severities = [problem.severity for problem in problems]
    errors, warnings = severities.count("error"), severities.count("warning")
    found = [count(number, what) for number, what in ((errors, "error"), (warnings, "warning")) if number]
    checked = count(files, "file") if errors else f"{count(files, 'file')}, {count(rules, 'rule')}"
    return f"{checked}: {', '.join(found) or 'no problems'}"

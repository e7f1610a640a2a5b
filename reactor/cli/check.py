"""`reactor check`: every mistake of every file, with its place."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from reactor.cli.shared.files import count, find_rules, read_all, read_text, shown
from reactor.cli.shared.printing import as_yaml, say
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible_json
from reactor.workbench.livecheck import SETTINGS
from rules import loader
from rules.core.errors import InvalidFiles, Problem
from rules.loader import LoadedParts
from rules.rehearsal.rule_tests import tester


@click.command()
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml", "github"]), default="text", show_default=True,
    help="text: one finding a line. json, yaml: a list of them. github: annotations for GitHub Actions.",
)  # fmt: skip
@click.option(
    "--against", multiple=True, is_flag=False, flag_value=SETTINGS, metavar="[[NAME=]WHERE]",
    help="Check live servers for everything that the files name: those of --config, a URL, or a kubeconfig context.",
)  # fmt: skip
@click.option(
    "-c", "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="REACTOR_CONFIG",
    help="Settings file, with the addresses of clusters and Prometheus: for --against.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings and hints too.")
def check(files: tuple[str, ...], output: str, *, against: tuple[str, ...], config: Path | None, strict: bool) -> None:
    """Find mistakes in rule files.

    FILE is a rule file, a folder (its *.yaml except tests), a glob, or - for stdin. All files are checked together:
    names must be unique in all of them. A file named *_test.yaml is checked as a rule test.

    \b
    reactor check rules/
    reactor check shop.yaml payments.yaml
    reactor check -o github 'rules/*.yaml'
    reactor check rules/ --against -c reactor.yaml
    reactor check rules/ --against http://127.0.0.1:9090 --against east=kind-east

    A hint names something that is allowed but seldom intended. To silence it, write a comment on its line, or on the
    line before it: # reactor: ignore no-recovery

    --against only reads. It looks up routes, workloads, namespaces, kinds, permissions and series. WHERE is the URL of
    a Prometheus, the URL of a Kubernetes API that needs no credentials (kubectl proxy), or a context of the kubeconfig.
    It replaces the server that the files call NAME, or all servers of its kind. Without WHERE, all servers of the
    settings are used. A server that cannot be reached is a finding.

    Exit code: 0 if the files can be used (with --strict: and there are no warnings or hints), 1 if not.
    """
    # `--against rules/` is meant as a switch before a file.
    paths = tuple(word for word in against if word != SETTINGS and Path(word).exists())
    if not paths and not files:
        raise click.UsageError("Missing argument 'FILE...'.")
    names, problems = find_rules((*paths, *files))
    tests = [name for name in names if Path(name).stem.endswith("_test")]
    reading = loader.examine(read_all([name for name in names if name not in tests], problems))
    problems += reading.problems
    if not _errors(problems):
        problems += reading.hints()
        if against:
            problems += _asked(reading, [SETTINGS if word in paths else word for word in against], config)
    for name, text in read_all(tests, problems):
        try:
            problems += tester.load_suite(text, name, read_text).warnings
        except InvalidFiles as error:
            problems += error.problems
    problems = sorted(set(problems))
    _print(problems, output)
    if output == "text":
        say(_summary(problems, len(names), len(reading.rules)), err=bool(problems))
    sys.exit(int(bool(problems) if strict else _errors(problems)))


def _asked(reading: LoadedParts, words: Sequence[str], config: Path | None) -> list[Problem]:
    from reactor.workbench.livecheck import (
        live_servers,  # only who asks a server pays for its client
        livecheck_run,
    )

    try:
        return livecheck_run.run(reading, words, config)
    except (live_servers.BadWhere, SettingsError) as error:
        raise click.UsageError(str(error)) from error


def _errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


def _print(problems: Sequence[Problem], output: str) -> None:
    if output == "yaml":
        say(as_yaml([asdict(problem) for problem in problems]))
        return
    if output == "json":
        say(visible_json(json.dumps([asdict(problem) for problem in problems], indent=2, ensure_ascii=False)))
        return
    for problem in problems:
        say(shown(problem) if output == "text" else _annotation(problem))


def _annotation(problem: Problem) -> str:
    def escaped(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    def value(text: str) -> str:
        return escaped(text).replace(":", "%3A").replace(",", "%2C")

    where = f"file={value(problem.file)},line={problem.line},col={problem.column}"
    message = f"{problem.path}: {problem.message}" if problem.path else problem.message
    command = "notice" if problem.severity == "hint" else problem.severity  # GitHub's word for it
    title = f",title={value(problem.hint)}" if problem.hint else ""
    return f"::{command} {where}{title}::{escaped(message)}"


def _summary(problems: Iterable[Problem], files: int, rules: int) -> str:
    severities = [problem.severity for problem in problems]
    found = [count(number, what) for what in ("error", "warning", "hint") if (number := severities.count(what))]
    checked = count(files, "file") if "error" in severities else f"{count(files, 'file')}, {count(rules, 'rule')}"
    return f"{checked}: {', '.join(found) or 'no problems'}"

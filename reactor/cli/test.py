"""`reactor test`: rule tests, with expected and actual and why where one fails."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from reactor.cli.files import read_all, read_text, shown
from rules.bench import tester
from rules.bench.play import Said, second
from rules.bench.simulator import line
from rules.bench.testfile import Expected
from rules.errors import InvalidFiles, Problem


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="text: PASS or FAIL for each test. json: one object with all results.",
)  # fmt: skip
def test(files: tuple[str, ...], output: str) -> None:
    """Run rule tests.

    FILE is a test file (*_test.yaml), a rule file with a test file beside it (shop.yaml and shop_test.yaml), or a
    folder of them. The rules decide as they do live; a rule in mode DryRun is tested as it would act.

    \b
    reactor test shop_test.yaml
    reactor test rules/
    reactor test -o json rules/ | jq '.results[] | select(.passed | not)'

    Exit code: 0 where all tests pass, 1 where one fails or a file cannot be used.
    """
    problems: list[Problem] = []
    names = list(dict.fromkeys(_find(files, problems)))
    results: list[tester.Result] = []
    for name, text in read_all(names, problems):
        try:
            suite = tester.load(text, name, read_text)
        except InvalidFiles as error:
            problems += error.problems
            continue
        problems += suite.warnings
        for result in tester.run(suite):
            results.append(result)
            if output == "text":
                click.echo("\n".join(_lines(result)))
    errors = any(problem.severity == "error" for problem in problems)
    failed = sum(not result.passed for result in results)
    if output == "json":
        click.echo(json.dumps(_report(results, problems), indent=2, ensure_ascii=False))
    else:
        for problem in sorted(set(problems)):
            click.echo(shown(problem), err=True)
        click.echo(f"{len(results) - failed} passed, {failed} failed")
    sys.exit(int(bool(failed or errors)))


def _find(names: Iterable[str], problems: list[Problem]) -> Iterator[str]:
    """Give the test files that are meant: themselves, those beside rule files, those of a folder."""
    for name in names:
        path = Path(name)
        if path.is_dir():
            found = sorted(str(file) for file in path.glob("*_test.y*ml"))
            if not found:
                problems.append(Problem(name, 1, 1, "", "the folder has no rule tests (*_test.yaml)"))
            yield from found
        elif path.stem.endswith("_test") or not path.exists():
            yield name
        elif (beside := path.with_name(f"{path.stem}_test{path.suffix}")).exists():
            yield str(beside)
        else:
            problems.append(Problem(name, 1, 1, "", f"no {beside.name} beside it: write its tests there"))


def _lines(result: tester.Result) -> Iterator[str]:
    if result.passed:
        yield f"PASS {result.file}: {result.name}"
        return
    yield f"FAIL {result.file}:{result.line}: {result.name}"
    yield "  expected:" if result.expected else "  expected: nothing"
    for expected in result.expected:
        mark = "   <- did not happen" if expected in result.missing else ""
        yield f"    {_flow(_asked(expected))}{mark}"
    yield "  actual:" if result.said else "  actual: nothing"
    for said in result.said:
        mark = "   <- not expected" if said in result.unexpected else ""
        body = line(said)
        body.pop("id", None)
        yield f"    {_flow(body)}{mark}"
        for reason in said.because:
            yield f"      {_MOMENT.sub(_as_second, reason)}"


_MOMENT = re.compile(r"\b19[67]\d-\d\d-\d\dT[\d:.]+\+00:00")


def _as_second(moment: re.Match[str]) -> str:
    """A test speaks of seconds from zero, so its reasons do as well."""
    return f"second {second(datetime.fromisoformat(moment[0])):g}"


def _asked(expected: Expected) -> dict[str, Any]:
    return expected.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _flow(body: dict[str, Any]) -> str:
    """As it would be written into the test file."""
    parts = []
    for key, value in body.items():
        if isinstance(value, dict):
            text = "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
        elif isinstance(value, float):
            text = f"{value:g}" if value < 1e6 else repr(value)
        else:
            text = json.dumps(value, ensure_ascii=False) if key in ("message", "detail") else str(value)
        parts.append(f"{key}: {text}")
    return "- {" + ", ".join(parts) + "}"


def _report(results: Iterable[tester.Result], problems: Iterable[Problem]) -> dict[str, Any]:
    def happened(said: Said) -> dict[str, Any]:
        return {**line(said), "why": list(said.because)}

    return {
        "results": [
            {
                "file": result.file, "line": result.line, "name": result.name, "passed": result.passed,
                "expected": [_asked(expected) for expected in result.expected],
                "actual": [happened(said) for said in result.said],
                "missing": [_asked(expected) for expected in result.missing],
                "unexpected": [happened(said) for said in result.unexpected],
            }
            for result in results
        ],
        "problems": [shown(problem) for problem in sorted(set(problems))],
    }  # fmt: skip

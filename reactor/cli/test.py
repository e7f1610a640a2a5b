"""`reactor test`: rule tests, with expected and actual and why where one fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from reactor.cli.shared import junit
from reactor.cli.shared.files import read_all, shown
from reactor.cli.shared.printing import as_yaml, say
from reactor.cli.shared.tested import coverage_lines, lines, report
from reactor.cli.shared.tested_files import all_tested
from reactor.runtime.visible import visible, visible_json
from rules.core.errors import Problem
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.rule_tests.reason_coverage import coverage
from rules.rehearsal.rule_tests.suite_loader import RuleTestSuite


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True,
    help="text: PASS or FAIL for each test. json, yaml: one object with all results.",
)  # fmt: skip
@click.option(
    "--coverage",
    "wants_coverage",
    is_flag=True,
    help="List the reasons that the tests reach, and those they do not.",
)
@click.option(
    "--junit", "junit_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit XML, for CI.",
)  # fmt: skip
def test(files: tuple[str, ...], output: str, *, wants_coverage: bool, junit_file: Path | None) -> None:
    """Run rule tests.

    FILE is a test file (*_test.yaml), a rule file with a test file beside it (shop.yaml and shop_test.yaml), or a
    folder of them. The rules decide as in the live service. A rule in mode DryRun is tested as if it acted.

    \b
    reactor test shop_test.yaml
    reactor test --coverage rules/
    reactor test --junit report.xml rules/
    reactor test -o json rules/ | jq '.results[] | select(.passed | not)'

    Exit code: 0 if all tests pass; 1 if one fails or a file cannot be used.
    """
    problems: list[Problem] = []
    names = list(dict.fromkeys(_find(files, problems)))
    suites: list[tuple[RuleTestSuite, list[tester.RuleTestResult]]] = []
    timed: list[junit.JUnitSuite] = []
    for file in all_tested(read_all(names, problems)):
        problems += file.problems
        if not file.suite.tests:
            continue
        suites.append((file.suite, file.results))
        timed.append(junit.JUnitSuite(file.suite.file, [*map(junit.case, file.results, file.seconds)]))
        for result in file.results if output == "text" else ():
            say("\n".join(map(visible, lines(result))))
    results = [result for _, found in suites for result in found]
    covered = list(coverage(suites)) if wants_coverage else None
    errors = [problem for problem in sorted(set(problems)) if problem.severity == "error"]
    failed = sum(not result.passed for result in results)
    if output != "text":
        body = report(results, problems, covered)
        say(as_yaml(body) if output == "yaml" else visible_json(json.dumps(body, indent=2, ensure_ascii=False)))
    else:
        for problem in sorted(set(problems)):
            say(shown(problem), err=True)
        for line in coverage_lines(covered) if covered is not None else ():
            say(line)
        say(f"{len(results) - failed} passed, {failed} failed")
    if junit_file is not None:
        try:
            junit_file.write_bytes(junit.document(timed, errors))
        except OSError as error:
            raise click.FileError(str(junit_file), error.strerror) from error
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
            problems.append(Problem(name, 1, 1, "", f"there is no {beside.name}: write the tests of this file there"))

"""Test files in, one suite out, or every mistake of the test file and of the rule files that it names."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pydantic import ValidationError

from bus.messages import Health, Observation
from rules.core.errors import InvalidFiles, Problem
from rules.engine.routing import Routing
from rules.loader import RuleSet, load_rules
from rules.rehearsal.rule_tests.model import FILES_MAX, TOP, Happening, OutcomeGiven, RuleTest, adapter
from rules.rehearsal.simulation import at
from rules.rulefile import findings
from rules.rulefile.model import API_VERSION
from rules.rulefile.yaml import Document, Path, read_yaml

_OF_A_TEST = re.compile(r"tests\[(\d+)\]")
ReadFile = Callable[[str], str]
"""Gives the text of a file. May raise OSError or UnicodeDecodeError."""


@dataclass(frozen=True, slots=True)
class RuleTestSuite:
    """One test file with the rules that it is about."""

    file: str
    rules: RuleSet
    tests: tuple[RuleTest, ...]
    lines: tuple[int, ...]
    """First line of each test."""
    warnings: tuple[Problem, ...] = ()


def load_suite(text: str, file: str, read_file: ReadFile) -> RuleTestSuite:
    """Read a test file, and through `read_file` the rule files beside it.

    Raises InvalidFiles with every mistake of all of them.
    """
    suite, problems = examine(text, file, read_file)
    if any(problem.severity == "error" for problem in problems):
        raise InvalidFiles([problem for problem in problems if problem not in suite.rules.warnings])
    return suite


def examine(text: str, file: str, read_file: ReadFile) -> tuple[RuleTestSuite, list[Problem]]:
    """Read it, and give the tests that can be run, with every mistake of all files.

    A mistake of one test costs that test alone; with one of anything else none can be run.
    """
    document, problems = read_yaml(text, file)
    rules = RuleSet()
    tests: list[tuple[RuleTest, Path]] = []
    if isinstance(document.value, dict):
        problems += _top(document)
        try:
            rules = load_rules(_rule_files(document, read_file, problems))
        except InvalidFiles as error:
            problems += error.problems
        tests = list(_tests(document, problems))
        problems += _names(tests, document)
        if rules.rules:
            problems += _strangers(tests, document, rules)
    elif not problems:
        problems.append(document.problem((), "a test file is a mapping with apiVersion, ruleFiles and tests"))
    wrong = {_number_of(problem) for problem in problems if problem.severity == "error"}
    sound = [] if None in wrong else [(test, path) for test, path in tests if path[1] not in wrong]
    lines = tuple(document.places[path][0] for _, path in sound)
    warnings = sorted([*(one for one in problems if one.severity != "error"), *rules.warnings])
    suite = RuleTestSuite(file, rules, tuple(test for test, _ in sound), lines, tuple(warnings))
    return suite, [*problems, *rules.warnings]


def _number_of(problem: Problem) -> int | None:
    """Give the test that a problem is of; None: it is of the whole file."""
    found = _OF_A_TEST.match(problem.path)
    return int(found[1]) if found is not None else None


def _top(document: Document) -> Iterator[Problem]:
    if document.value.get("apiVersion") != API_VERSION:
        yield document.problem(("apiVersion",), f"must be {API_VERSION}")
    for key in document.value.keys() - set(TOP):
        line, column = document.keys[key,]
        yield Problem(document.file, line, column, key, f"unknown key; a test file has {', '.join(TOP)}")
    if not document.value.get("tests"):
        yield document.problem(("tests",), "needs at least one test")


def _rule_files(document: Document, read_file: ReadFile, problems: list[Problem]) -> list[tuple[str, str]]:
    names = document.value.get("ruleFiles")
    if not isinstance(names, list) or not names or len(names) > FILES_MAX:
        problems.append(document.problem(("ruleFiles",), f"needs a list of 1 to {FILES_MAX} rule files"))
        return []
    out: list[tuple[str, str]] = []
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            problems.append(document.problem(("ruleFiles", index), "must be a path, relative to this file"))
            continue
        path = str(PurePath(document.file).parent / name)
        try:
            out.append((path, read_file(path)))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            problems.append(document.problem(("ruleFiles", index), f"{path} cannot be read: {reason}"))
    return out


def _tests(document: Document, problems: list[Problem]) -> Iterator[tuple[RuleTest, Path]]:
    items = document.value.get("tests") or []
    if not isinstance(items, list):
        problems.append(document.problem(("tests",), "must be a list"))
        return
    for index, item in enumerate(items):
        path: Path = ("tests", index)
        try:
            test = adapter().validate_json(json.dumps(item), by_name=False)
        except ValidationError as error:
            problems += findings.problems(document, path, error.errors(include_url=False), RuleTest)
            continue
        problems += _contradictions(test, path, document)
        yield test, path


def _contradictions(test: RuleTest, path: Path, document: Document) -> Iterator[Problem]:
    for number, expected in enumerate(test.expect):
        here: Path = (*path, "expect", number)
        if sum(one is not None for one in (expected.action, expected.held, expected.absent)) != 1:
            yield document.problem(here, "needs either action or held, or absent")
        elif (absent := expected.absent) is not None:
            if expected.model_fields_set != {"absent"}:
                yield document.problem(here, "goes alone: absent has all keys inside")
            if not absent.model_fields_set - {"since", "until"}:
                yield document.problem((*here, "absent"), "needs a key that says what is absent, such as held")
            if absent.until is not None and absent.until < absent.since:
                yield document.problem((*here, "absent", "until"), f"must be {absent.since:g} (since) or more")
    for number, given in enumerate(test.inventory):
        if len(given.model_fields_set - {"at"}) != 1:
            message = "needs exactly one kind of inventory, such as route or zones"
            yield document.problem((*path, "inventory", number), message)
    for number, command in enumerate(test.commands):
        if len(command.given) != 1:
            message = "needs exactly one command, such as isolateZone"
            yield document.problem((*path, "commands", number), message)
    for number, outcome in enumerate(test.outcomes):
        if isinstance(outcome, OutcomeGiven) and isinstance(outcome.action, Happening):
            here = (*path, "outcomes", number, "action")
            if outcome.action.action is None:
                yield document.problem(here, "needs an action: {action: Place}, or its id as text")
            if outcome.action.held is not None:
                yield document.problem((*here, "held"), "a hold has no outcome: remove it")


def _names(tests: Sequence[tuple[RuleTest, Path]], document: Document) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for test, path in tests:
        if test.name in first:
            message = f"test {test.name!r} is given twice; first in line {first[test.name]}"
            yield document.problem((*path, "name"), message)
        first.setdefault(test.name, document.places[path][0])


def _strangers(tests: Sequence[tuple[RuleTest, Path]], document: Document, rules: RuleSet) -> Iterator[Problem]:
    """Names that no rule knows: a test that misspells one would pass for the wrong reason."""
    routing = Routing.of(rules)
    for test, path in tests:
        for where, name in _rules_named(test):
            if name is not None and name not in routing.rules:
                near = difflib.get_close_matches(name, routing.rules, n=1, cutoff=0.6)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield document.problem((*path, *where), f"no rule {name!r} in ruleFiles{hint}")
        for index, given in enumerate(test.inputs):
            seen = Observation(target=given.target, status=Health.HEALTHY, signal=given.signal, observed_at=at(0))
            if not routing.addresses(seen):
                message = f"no rule in ruleFiles looks at {given.target}"
                yield document.problem((*path, "inputs", index, "target"), message, severity="warning")


def _rules_named(test: RuleTest) -> Iterator[tuple[Path, str | None]]:
    for index, expected in enumerate(test.expect):
        yield ("expect", index, "rule"), expected.rule
        if expected.absent is not None:
            yield ("expect", index, "absent", "rule"), expected.absent.rule
    for index, outcome in enumerate(test.outcomes):
        if isinstance(outcome, OutcomeGiven) and isinstance(outcome.action, Happening):
            yield ("outcomes", index, "action", "rule"), outcome.action.rule

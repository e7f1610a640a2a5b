"""What a rule test file may say, and the loader that finds every mistake in it and in the rule files it names.

The words are promtool's: inputs with values at an interval, and what is expected of them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, ValidationError

from bus.messages import Health, Mode, Observation
from rules.bench.play import at
from rules.engine.routing import Routing
from rules.errors import InvalidFiles, Problem
from rules.language import findings
from rules.language.loader import RuleSet
from rules.language.loader import load as load_rules
from rules.language.model import API_VERSION, YEAR, ClusterName, KubeName, Model, TargetName
from rules.language.yaml import Document, Path, read
from rules.reasons import Because, Held

SAMPLES_MAX = 100_000
"""How many values one input may stand for: a day at one a second, and some."""
FILES_MAX = 1000
_WORDS: Mapping[str, Health | None] = {"_": None} | {health.value: health for health in Health}
_TOP = ("apiVersion", "ruleFiles", "tests")
Read = Callable[[str], str]
"""Gives the text of a file. May raise OSError or UnicodeDecodeError."""


def samples(values: str) -> list[Health | None]:
    """Give the values one by one; None: nothing is heard. Raises ValueError where a word is none."""
    out: list[Health | None] = []
    last: Health | None = None
    for index, word in enumerate(values.split()):
        if word in _WORDS:
            last = _WORDS[word]
            out.append(last)
        elif word[0] == "x" and word[1:].isdecimal() and word.isascii():
            if not index or (before := values.split()[index - 1]) not in _WORDS:
                raise ValueError(f"{word} repeats the word before it: write a status first, as in `Healthy {word}`")
            if not 1 <= int(word[1:9]) <= SAMPLES_MAX - len(out):
                raise ValueError(f"{before} {word}: from 1 to {SAMPLES_MAX:,} values are taken")
            out += [last] * (int(word[1:]) - 1)
        else:
            near = difflib.get_close_matches(word, _WORDS, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else f"; words are {', '.join(_WORDS)} and xN"
            raise ValueError(f"{word!r} is no value{hint}")
    return out


def _values(text: str) -> str:
    samples(text)
    return text


class Input(Model):
    """What one source says of one target, at second 0 and then every intervalSeconds."""

    target: TargetName
    values: Annotated[str, StringConstraints(min_length=1, max_length=SAMPLES_MAX), AfterValidator(_values)]
    """`Healthy`, `Unhealthy`, `Unknown`, `_` (nothing heard), and `xN`: the word before it stands N times in all."""
    signal: Annotated[str, StringConstraints(min_length=1, max_length=253)] = "health"
    """Which opinion of the target this is."""
    stale_seconds: Annotated[float, Field(gt=0, le=YEAR)] | None = None
    """Silence for this long makes the target Unknown. Default: it never does."""


class Standing(Model):
    """One backend of a route as it stands."""

    service: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    weight: Annotated[int, Field(ge=0, le=1_000_000)] = 1


class RouteGiven(Model):
    """A route as it stands in its cluster."""

    cluster: ClusterName
    kind: Literal["TrafficSplit", "HTTPRoute", "GRPCRoute"]
    namespace: KubeName
    name: KubeName
    rule: int | str | None = None
    annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    backends: tuple[Standing, ...] = ()
    exists: bool = True


class Inventory(Model):
    """What exists, from a second on."""

    at: Annotated[float, Field(ge=0, le=YEAR)] = 0
    route: RouteGiven


class Expected(Model):
    """An action or a hold, by those of its keys that matter to the test."""

    at: Annotated[float, Field(ge=0, le=YEAR)] | None = None
    """The second in which it happens."""
    action: Literal["SetWeights", "Notify"] | None = None
    held: Held | None = None
    """A hold with this reason. Holds that are not expected are no failure."""
    rule: str | None = None
    object: str | None = None
    weights: Mapping[str, int] | None = None
    """All weights of the action, not some of them."""
    because: Because | Held | None = None
    message: str | None = None
    detail: str | None = None
    mode: Mode | None = None
    id: str | None = None


class RuleTest(Model):
    """A short history, and what the rules make of it."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    interval_seconds: Annotated[float, Field(ge=0.001, le=YEAR)] = 60
    """The time between two values."""
    inventory: tuple[Inventory, ...] = Field(default=(), max_length=1000)
    """Routes that do not stand in their healthy state, or whose rule reads its backends from them."""
    inputs: tuple[Input, ...] = Field(default=(), max_length=1000)
    expect: tuple[Expected, ...] = Field(max_length=10_000)
    """All actions, in order. Empty: nothing happens."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One test file with the rules that it is about."""

    file: str
    rules: RuleSet
    tests: tuple[RuleTest, ...]
    lines: tuple[int, ...]
    """Where each test begins."""
    warnings: tuple[Problem, ...] = ()


def load(text: str, file: str, read_file: Read) -> Suite:
    """Read a test file, and through `read_file` the rule files beside it.

    Raises InvalidFiles with every mistake of all of them.
    """
    document, problems = read(text, file)
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
    if any(problem.severity == "error" for problem in problems):
        raise InvalidFiles(problems)
    lines = tuple(document.places[path][0] for _, path in tests)
    return Suite(file, rules, tuple(test for test, _ in tests), lines, tuple(sorted([*problems, *rules.warnings])))


def _top(document: Document) -> Iterator[Problem]:
    if document.value.get("apiVersion") != API_VERSION:
        yield document.problem(("apiVersion",), f"must be {API_VERSION}")
    for key in document.value.keys() - set(_TOP):
        line, column = document.keys[key,]
        yield Problem(document.file, line, column, key, f"unknown key; a test file has {', '.join(_TOP)}")
    if not document.value.get("tests"):
        yield document.problem(("tests",), "needs at least one test")


def _rule_files(document: Document, read_file: Read, problems: list[Problem]) -> list[tuple[str, str]]:
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


@cache
def _adapter() -> TypeAdapter[RuleTest]:
    return TypeAdapter(RuleTest)


def _tests(document: Document, problems: list[Problem]) -> Iterator[tuple[RuleTest, Path]]:
    items = document.value.get("tests") or []
    if not isinstance(items, list):
        problems.append(document.problem(("tests",), "must be a list"))
        return
    for index, item in enumerate(items):
        path: Path = ("tests", index)
        try:
            test = _adapter().validate_json(json.dumps(item), by_name=False)
        except ValidationError as error:
            problems += findings.problems(document, path, error.errors(include_url=False), RuleTest)
            continue
        for number, expected in enumerate(test.expect):
            if (expected.action is None) == (expected.held is None):
                problems.append(document.problem((*path, "expect", number), "needs either action or held"))
        yield test, path


def _names(tests: Sequence[tuple[RuleTest, Path]], document: Document) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for test, path in tests:
        if test.name in first:
            message = f"test {test.name!r} stands twice; first in line {first[test.name]}"
            yield document.problem((*path, "name"), message)
        first.setdefault(test.name, document.places[path][0])


def _strangers(tests: Sequence[tuple[RuleTest, Path]], document: Document, rules: RuleSet) -> Iterator[Problem]:
    """Names that no rule knows: a test that misspells one would pass for the wrong reason."""
    routing = Routing(rules.rules)
    for test, path in tests:
        for index, expected in enumerate(test.expect):
            if expected.rule is not None and expected.rule not in routing.rules:
                near = difflib.get_close_matches(expected.rule, routing.rules, n=1, cutoff=0.6)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield document.problem(
                    (*path, "expect", index, "rule"), f"no rule {expected.rule!r} in ruleFiles{hint}"
                )
        for index, given in enumerate(test.inputs):
            seen = Observation(target=given.target, status=Health.HEALTHY, signal=given.signal, observed_at=at(0))
            if not routing.addresses(seen):
                message = f"no rule in ruleFiles looks at {given.target}"
                yield document.problem((*path, "inputs", index, "target"), message, severity="warning")


def schema() -> dict[str, Any]:
    """The JSON Schema of a rule test file, for editors."""
    part = _adapter().json_schema(ref_template="#/$defs/{model}")
    definitions = part.pop("$defs", {})
    files = {"type": "array", "minItems": 1, "maxItems": FILES_MAX, "items": {"type": "string", "minLength": 1}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "alert-reactor rule test file",
        "type": "object", "required": list(_TOP), "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": API_VERSION}, "ruleFiles": files,
            "tests": {"type": "array", "minItems": 1, "items": part},
        },
        "$defs": dict(sorted(definitions.items())),
    }  # fmt: skip

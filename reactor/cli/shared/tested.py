"""Reports the results of rule tests: lines for people, one object for machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from reactor.cli.shared.files import count, shown
from rules.core.errors import Problem
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.rule_tests.model import Expected, OutcomeGiven
from rules.rehearsal.rule_tests.reason_coverage import Covered
from rules.rehearsal.simulation import Emitted, second
from rules.rehearsal.simulator import line


def lines(result: tester.RuleTestResult) -> Iterator[str]:
    """PASS, or FAIL with what was expected, what happened, and why."""
    if result.passed:
        yield f"PASS {result.file}: {result.name}"
        return
    yield f"FAIL {result.file}:{result.line}: {result.name}"
    yield "  expected:" if result.expected else "  expected: nothing"
    for expected in result.expected:
        wrong = "   <- did not happen" if expected.absent is None else "   <- is there"
        yield f"    {_flow(_asked(expected))}{wrong if expected in result.missing else ''}"
    yield "  actual:" if result.said else "  actual: nothing"
    for said in result.said:
        mark = "   <- not expected" if said in result.unexpected else ""
        body = line(said)
        body.pop("id", None)
        yield f"    {_flow(body)}{mark}"
        for reason in said.because:
            yield f"      {_MOMENT.sub(_as_second, reason)}"
    for unmet in result.unmet:
        yield f"  outcome: {_flow(_asked(unmet))}   <- no rule that enforces had asked for such an action by then"


_MOMENT = re.compile(r"\b19[67]\d-\d\d-\d\dT[\d:.]+\+00:00")


def _as_second(moment: re.Match[str]) -> str:
    """A test counts seconds from zero, so its reasons do as well."""
    return f"second {second(datetime.fromisoformat(moment[0])):g}"


def _asked(given: Expected | OutcomeGiven) -> dict[str, Any]:
    body = given.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {"at": body.pop("at"), **body} if "at" in body else body


def _flow(body: Mapping[str, Any]) -> str:
    """The body as YAML in flow style, as it would be written into the test file."""
    return f"- {_value(body)}"


def _value(value: object, key: str = "") -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{name}: {_value(inside, name)}" for name, inside in value.items()) + "}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case bool() | None:
            return json.dumps(value)
        case float():
            return f"{value:g}" if value < 1e6 else repr(value)
        case _:
            return json.dumps(value, ensure_ascii=False) if key in ("message", "detail") else str(value)


def report(
    results: Iterable[tester.RuleTestResult], problems: Iterable[Problem], covered: Sequence[Covered] | None
) -> dict[str, Any]:
    """Give all of it, for machines."""

    def happened(said: Emitted) -> dict[str, Any]:
        return {**line(said), "why": list(said.because)}

    return {
        "results": [
            {
                "file": result.file, "line": result.line, "name": result.name, "passed": result.passed,
                "expected": [_asked(expected) for expected in result.expected],
                "actual": [happened(said) for said in result.said],
                "missing": [_asked(expected) for expected in result.missing],
                "unexpected": [happened(said) for said in result.unexpected],
                "unmetOutcomes": [_asked(outcome) for outcome in result.unmet],
            }
            for result in results
        ],
        "problems": [shown(problem) for problem in sorted(set(problems))],
        **({} if covered is None else {"coverage": [_covered(one) for one in covered]}),
    }  # fmt: skip


def _covered(one: Covered) -> dict[str, Any]:
    return {
        "rule": one.rule, "kind": one.kind, "place": one.place, "seen": one.seen, "possible": one.possible,
        "because": dict(one.because), "held": dict(one.held),
        "never": {"because": list(one.never_because), "held": list(one.never_held)},
    }  # fmt: skip


def coverage_lines(covered: Sequence[Covered]) -> Iterator[str]:
    """Lines with the numbers of rules, kinds and reasons that were seen, then the reasons of each rule that were and
    were not."""
    kinds = {kind: [one for one in covered if one.kind == kind] for kind in sorted({one.kind for one in covered})}
    touched = sum(any(one.seen for one in some) for some in kinds.values())
    rules, reasons = _counts(covered)
    yield f"coverage: {rules}, {touched} of {count(len(kinds), 'kind')}, {reasons}"
    if len(kinds) > 1:
        yield from (f"  {kind}: {', '.join(_counts(some))}" for kind, some in kinds.items())
    for one in covered:
        yield f"  {one.rule} ({one.kind}, {one.place}): {one.seen} of {one.possible}"
        for title, reasons in (
            ("acted", _times(one.because)), ("held", _times(one.held)),
            ("never acted", ", ".join(one.never_because)), ("never held", ", ".join(one.never_held)),
        ):  # fmt: skip
            if reasons:
                yield f"    {title}: {reasons}"


def _counts(covered: Sequence[Covered]) -> tuple[str, str]:
    """Texts for the numbers of these rules, and of their reasons, that were seen."""
    seen, possible = sum(one.seen for one in covered), sum(one.possible for one in covered)
    touched = sum(one.seen > 0 for one in covered)
    return f"{touched} of {count(len(covered), 'rule')}", f"{seen} of {count(possible, 'reason')}"


def _times(seen: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} ×{number}" if number > 1 else reason for reason, number in seen.items())

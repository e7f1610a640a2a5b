"""JUnit XML, as GitLab, Jenkins and GitHub's reporters read it: a testsuite for each file, a testcase for each test.

Source: the schema of Jenkins' xUnit plugin (junit-10.xsd), and what GitLab says that it shows: name, classname, file,
time, failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from xml.etree import ElementTree as ET

from reactor.cli.shared.tested import lines
from rules.core.errors import Problem
from rules.rehearsal.rule_tests import tester

_NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Characters that XML 1.0 cannot have at all, not even escaped."""


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test."""

    name: str
    line: int
    seconds: float
    """Seconds that it took to run, not the length of its history."""
    failure: str = ""
    """Expected, actual and why; empty where it passed."""
    error: str = ""
    """Reason why it could not be run at all."""


@dataclass(frozen=True, slots=True)
class JUnitSuite:
    """One file."""

    file: str
    cases: list[JUnitCase] = field(default_factory=list)


def case(result: tester.RuleTestResult, seconds: float) -> JUnitCase:
    """Give a result as a test case."""
    return JUnitCase(result.name, result.line, seconds, "" if result.passed else "\n".join(lines(result)))


def document(suites: Iterable[JUnitSuite], errors: Sequence[Problem]) -> bytes:
    """Give the whole report. Files that cannot be used are suites of errors."""
    unusable = [
        JUnitSuite(file, [JUnitCase(one.path or "the file can be used", one.line, 0, error=str(one)) for one in found])
        for file, found in groupby(sorted(errors), key=lambda one: one.file)
    ]
    root = ET.Element("testsuites")
    total: list[JUnitCase] = []
    for suite in (*suites, *unusable):
        total += suite.cases
        element = ET.SubElement(root, "testsuite", {"name": _text(suite.file), **_counts(suite.cases)})
        for one in suite.cases:
            element.append(_case(suite.file, one))
    root.attrib |= {"name": "reactor test", **_counts(total)}
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'.encode()


def _counts(cases: Sequence[JUnitCase]) -> dict[str, str]:
    return {
        "tests": str(len(cases)), "failures": str(sum(bool(one.failure) for one in cases)),
        "errors": str(sum(bool(one.error) for one in cases)), "skipped": "0",
        "time": f"{sum(one.seconds for one in cases):.3f}",
    }  # fmt: skip


def _case(file: str, one: JUnitCase) -> ET.Element:
    where = {"classname": _text(file), "file": _text(file), "line": str(one.line), "time": f"{one.seconds:.3f}"}
    element = ET.Element("testcase", {"name": _text(one.name), **where})
    for tag, words in (("failure", one.failure), ("error", one.error)):
        if words:
            ET.SubElement(element, tag, message=_text(words.splitlines()[0]), type=tag).text = _text(words)
    return element


def _text(words: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", words)

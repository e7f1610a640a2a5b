"""Checks that the rule files can be used: what `reactor check` says of them, and what the settings lack for them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from reactor.rulefiles.snapshot import Snapshot, digest, load_for
from reactor.runtime.errors import SettingsError
from reactor.runtime.threads import FILES
from reactor.settings.model import Settings
from reactor.workbench.doctor.finding import Finding, Findings, limited, of_problem, of_problems
from rules.core.errors import Problem
from rules.loader import LoadedParts, examine

GROUP = "rules"
NOT_FED = "not-fed"
"""The hint of `reactor check` for a rule that no source feeds."""


@dataclass(slots=True)
class Rules:
    """Result of reading the rule files."""

    reading: LoadedParts = field(default_factory=LoadedParts)
    digest: str = ""
    """Digest of the rules as a process would load them; empty: it would not."""


async def findings(settings: Settings, seconds: float) -> tuple[Rules, Findings]:
    """Read the rule files that the settings name."""
    rules = Rules()

    async def look() -> Findings:
        if not settings.rule_files:
            fix = "name rule files: reactor doctor FILES, or ruleFiles in the settings"
            return [Finding(GROUP, "files", "skipped", f"no rule files are named: {fix}")]
        snapshot = await FILES.run(lambda: Snapshot.take(settings))
        return judged(settings, snapshot, rules)

    return rules, await limited(GROUP, "files", look(), seconds)


def judged(settings: Settings, snapshot: Snapshot, rules: Rules) -> Findings:
    """Check what was read, and put it into `rules`."""
    fix = f"reactor check {shlex.join(settings.rule_files)}"
    if snapshot.unreadable:
        return [Finding(GROUP, "files", "failed", line, fix) for line in snapshot.unreadable.splitlines()]
    reading = examine(snapshot.files)
    wrong = [problem for problem in reading.problems if problem.severity == "error"]
    if wrong:
        return [of_problem(GROUP, "files", one, fix) for one in sorted(wrong)]
    rules.reading = reading
    loaded = Finding(GROUP, "files", "ok", f"rules: {len(reading.rules)}, sources: {len(reading.sources)}")
    said = [*reading.problems, *reading.hints()]
    unfed = [one for one in said if one.hint == NOT_FED]
    others = [one for one in said if one.hint != NOT_FED]
    return [
        loaded,
        _names(settings, snapshot, rules),
        *_fed(reading, unfed),
        *of_problems(
            GROUP,
            "check",
            others,
            "correct the rule, or write a comment that silences the hint: reactor check --help",
            "no warnings or hints",
        ),
    ]


def _names(settings: Settings, snapshot: Snapshot, rules: Rules) -> Finding:
    try:
        rules.digest = digest(load_for(settings, snapshot))
    except SettingsError as error:
        detail = "; ".join(str(error).splitlines())
        return Finding(GROUP, "names", "failed", detail, "add what is missing to the settings, or correct the rules")
    return Finding(GROUP, "names", "ok", "the settings have every name that the rules use")


def _fed(reading: LoadedParts, unfed: list[Problem]) -> Findings:
    if not reading.sources:
        return [Finding(GROUP, "sources", "skipped", "the files have no sources: signals come from elsewhere")]
    fix = "add a source for this target, or correct the name of the target"
    return of_problems(GROUP, "sources", unfed, fix, "a source feeds each rule")

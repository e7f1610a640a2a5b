"""One thing that was looked at, and how long a look may take."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rules.core.errors import Problem

FindingStatus = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and its result."""

    group: str
    name: str
    """Name of the check. Several findings of one check have one name."""
    status: FindingStatus
    """failed: a reactor cannot work so. warning: it can, and may surprise. skipped: `detail` says why."""
    detail: str = ""
    fix: str = ""
    """The command, or the change, that mends it; empty where nothing is wrong."""


Findings = Sequence[Finding]


async def limited(group: str, name: str, look: Coroutine[Any, Any, Findings], seconds: float) -> Findings:
    """Give what a look gives; where it does not end within `seconds`, that is the finding.

    A look that does not end when it is cancelled is left behind: its answer is no longer waited for.
    """
    task = asyncio.ensure_future(look)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        return task.result()
    task.cancel()
    detail = f"no answer within {seconds:g} s"
    return [Finding(group, name, "failed", detail, f"look at {name}, or allow it more time with --timeout")]


def of_problem(group: str, name: str, problem: Problem, fix: str) -> Finding:
    """Give what a check of rule files says as a finding, with its place."""
    return Finding(group, name, "failed" if problem.severity == "error" else "warning", str(problem), fix)


def of_problems(group: str, name: str, problems: Sequence[Problem], fix: str, well: str) -> Findings:
    """Give one finding for each problem, or that there is none."""
    return [of_problem(group, name, one, fix) for one in sorted(problems)] or [Finding(group, name, "ok", well)]

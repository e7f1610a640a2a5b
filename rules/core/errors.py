"""Errors in rule files and histories: always their author's mistake, so each has its line and says what to do.

RulesError
├── InvalidFiles     one or more problems in rule files, all of them at once
└── InvalidHistory   a line of a history that cannot be read
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class RulesError(Exception):
    """Something the author of a file has to mend."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One finding in a file. Prints as `file:line:column: path: what to do`."""

    file: str
    line: int
    column: int
    path: str
    message: str
    severity: str = "error"
    """error: the file cannot be used. warning: it can, and will likely surprise. hint: it may be meant."""
    hint: str = ""
    """The name of a hint, by which a comment silences it."""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {where}{self.message}"


class InvalidFiles(RulesError):
    """Files with problems: never only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


class InvalidHistory(RulesError):
    """A history or a rule test that cannot be played, with the line that is wrong."""

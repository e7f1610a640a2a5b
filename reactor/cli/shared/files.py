"""Files named on the command line: found, read, and what is wrong with them told like any other finding."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from reactor.cli.shared.printing import say
from reactor.rulefiles.snapshot import find_rule_files
from reactor.runtime.errors import SettingsError
from reactor.runtime.textfiles import text_of
from rules.core.errors import InvalidFiles, Problem

STDIN = "-"
Text = tuple[str, str]
"""A file's name and its text."""


def find_rules(patterns: Iterable[str]) -> tuple[list[str], list[Problem]]:
    """Give the rule files that files, folders and globs mean, each once, and those that mean none."""
    names: dict[str, None] = {}
    problems = []
    for pattern in patterns:
        if pattern == STDIN:
            names[STDIN] = None
            continue
        try:
            names |= dict.fromkeys(map(str, find_rule_files([pattern])))
        except SettingsError:
            problems.append(Problem(pattern, 1, 1, "", _nothing(Path(pattern))))
    return list(names), problems


def _nothing(path: Path) -> str:
    return "the folder has no rule files (*.yaml)" if path.is_dir() else "no such file"


def read_text(name: str) -> str:
    """Give the text of a file, or of stdin for `-`. Raises OSError, UnicodeDecodeError."""
    if name == STDIN:
        return sys.stdin.buffer.read().decode("utf-8")
    return text_of(Path(name))


def read_all(names: Iterable[str], problems: list[Problem]) -> Iterator[Text]:
    """Give each file with its text; one that cannot be read becomes a problem."""
    for name in names:
        shown = "<stdin>" if name == STDIN else name
        try:
            yield shown, read_text(name)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(unreadable(shown, error))


def unreadable(name: str, error: OSError | UnicodeDecodeError) -> Problem:
    """Say why a file cannot be read, and where in it."""
    if isinstance(error, UnicodeDecodeError):
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        return Problem(name, line, column, "", f"not UTF-8: byte 0x{error.object[error.start]:02x}; save it as UTF-8")
    return Problem(name, 1, 1, "", f"cannot be read: {error.strerror or error}")


def fail(error: InvalidFiles | Iterable[Problem]) -> None:
    """Print the problems on stderr, and end with 1."""
    problems = error.problems if isinstance(error, InvalidFiles) else error
    for problem in problems:
        say(shown(problem), err=True)
    sys.exit(1)


def shown(problem: Problem) -> str:
    """`file:line:column: path: message`, with `warning:` or `hint:` where it is only one."""
    if problem.severity == "error":
        return str(problem)
    where = f"{problem.path}: " if problem.path else ""
    name = f" [{problem.hint}]" if problem.hint else ""
    return f"{problem.file}:{problem.line}:{problem.column}: {problem.severity}: {where}{problem.message}{name}"


def count(number: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

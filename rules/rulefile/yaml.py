"""YAML under limits, with a position for everything and duplicate keys refused.

Events are scanned one by one before anything is built: libyaml crashes the process at 100,000 nested brackets, and
aliases are how bombs are made. Scalars are read by YAML 1.2's core schema: `no` is a word, `1:30` is a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import yaml
from yaml import events as ev

from rules.core.errors import Problem

BYTES_MAX = 1 << 20
DEPTH_MAX = 32
NODES_MAX = 50_000

Path = tuple[str | int, ...]
LineColumn = tuple[int, int]
"""Line and column, from 1."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+\Z|0x[0-9a-fA-F]+\Z|0o[0-7]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
_IGNORE = re.compile(r"#\s*reactor:\s*ignore\s+([a-z][a-z-]*(?:\s*,\s*[a-z][a-z-]*)*)")
_SPECIAL = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")


@dataclass(slots=True)
class Document:
    """A document's value, and the place of each part in the file."""

    file: str
    value: Any = None
    places: dict[Path, LineColumn] = field(default_factory=dict)
    keys: dict[Path, LineColumn] = field(default_factory=dict)
    """The place of the key itself, for findings about keys."""
    ignored: dict[int, frozenset[str]] = field(default_factory=dict)
    """Line to the hints that a comment silences there: `# reactor: ignore <hint>, <hint>`."""

    def at(self, path: Path) -> Any:
        """The value at this path. Raises KeyError, IndexError or TypeError where none does."""
        value = self.value
        for part in path:
            value = value[part]
        return value

    def problem(self, path: Path, message: str, *, severity: str = "error", hint: str = "") -> Problem:
        """A finding at the nearest thing that has a position."""
        at = path
        while at and at not in self.places:
            at = at[:-1]
        line, column = self.places.get(at, (1, 1))
        return Problem(self.file, line, column, show(path), message, severity, hint)


def show(path: Path) -> str:
    """`rules[2].backends[0].tier`."""
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out


class _Stop(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class _Builder:
    """Builds values from events, within the limits."""

    def __init__(self, text: str, file: str) -> None:
        self.document = Document(file)
        self.problems: list[Problem] = []
        self._events: Iterator[ev.Event] = yaml.parse(text, Loader=_LOADER)
        self._nodes = 0

    def _next(self) -> ev.Event:
        return next(self._events)

    def _stop(self, event: ev.Event, path: Path, message: str) -> _Stop:
        line, column = _place(event)
        return _Stop(Problem(self.document.file, line, column, show(path), message))

    def run(self) -> None:
        """Read the one document of the stream."""
        event = self._next()
        while not isinstance(event, (ev.DocumentStartEvent, ev.StreamEndEvent)):
            event = self._next()
        if isinstance(event, ev.StreamEndEvent):
            raise _Stop(Problem(self.document.file, 1, 1, "", "the file is empty; it needs apiVersion and rules"))
        self.document.value = self._value(self._next(), (), 0)
        self._next()
        after = self._next()
        if not isinstance(after, ev.StreamEndEvent):
            raise self._stop(after, (), "a second document starts here; one rule file is one document")

    def _value(self, event: ev.Event, path: Path, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self._stop(event, path, f"more than {NODES_MAX:,} nodes; split the file")
        if depth > DEPTH_MAX:
            raise self._stop(event, path, f"nested deeper than {DEPTH_MAX} levels")
        if isinstance(event, ev.AliasEvent):
            raise self._stop(event, path, f"alias *{event.anchor}: aliases are not read; write the value out")
        self.document.places[path] = _place(event)
        if isinstance(event, ev.ScalarEvent):
            return self._scalar(event, path)
        tag = event.tag  # type: ignore[attr-defined]  # only starts of lists and mappings are left: both have one
        if tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise self._stop(event, path, f"tag {tag} is not read")
        if isinstance(event, ev.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _sequence(self, path: Path, depth: int) -> list[Any]:
        out: list[Any] = []
        while not isinstance(event := self._next(), ev.SequenceEndEvent):
            out.append(self._value(event, (*path, len(out)), depth + 1))
        return out

    def _mapping(self, path: Path, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while not isinstance(event := self._next(), ev.MappingEndEvent):
            if not isinstance(event, ev.ScalarEvent):
                raise self._stop(event, path, "a key must be plain text")
            key, at = event.value, (*path, event.value)
            if key in out:
                first = self.document.keys[at]
                line, column = _place(event)
                message = f"the key is given twice, first in line {first[0]}"
                self.problems.append(Problem(self.document.file, line, column, show(at), message))
                self._value(self._next(), (*path, key, "again"), depth + 1)
                continue
            self.document.keys[at] = _place(event)
            out[key] = self._value(self._next(), at, depth + 1)
        return out

    def _scalar(self, event: ev.ScalarEvent, path: Path) -> Any:
        text: str = event.value
        tag = event.tag
        if tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise self._stop(event, path, f"tag {tag} is not read")
        if not event.implicit[0] or tag is not None:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text) and len(text) < 20:
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _SPECIAL.match(text):
            raise self._stop(event, path, f"{text} is not a number that can be used here")
        if _FLOAT.match(text) and len(text) < 40:
            number = float(text)
            if not isfinite(number):  # 1e999
                raise self._stop(event, path, f"{text} is not a number that can be used here")
            return number
        return text


def _ignored(text: str) -> dict[int, frozenset[str]]:
    """Comments that silence hints. One that has a line for itself is about the next line.

    The scanner knows no comments, so the text is searched; the same words inside of a value silence a hint as well.
    """
    out: dict[int, frozenset[str]] = {}
    if "reactor:" not in text:
        return out
    for number, line in enumerate(text.split("\n"), start=1):
        if found := _IGNORE.search(line):
            alone = not line[: found.start()].strip()
            out[number + alone] = out.get(number + alone, frozenset()) | set(re.split(r"\s*,\s*", found[1]))
    return out


def _place(event: ev.Event) -> LineColumn:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def read_yaml(text: str, file: str) -> tuple[Document, list[Problem]]:
    """Read one document. What is wrong comes back as problems; with any, the value may be incomplete."""
    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        return Document(file), [Problem(file, 1, 1, "", f"larger than {BYTES_MAX >> 20} MiB; split the file")]
    builder = _Builder(text, file)
    builder.document.ignored = _ignored(text)
    try:
        builder.run()
    except _Stop as stop:
        builder.problems.append(stop.problem)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        builder.problems.append(Problem(file, line, column, "", f"not YAML: {error.problem or error.context}"))
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        builder.problems.append(Problem(file, 1, 1, "", f"not YAML: {' '.join(str(error).split())}"))
    return builder.document, builder.problems

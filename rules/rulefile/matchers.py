"""Label matchers in Alertmanager's syntax: `severity=~"critical|page",team!="web"`, with or without braces.

Regular expressions are RE2, anchored at both ends, as in Alertmanager and Prometheus: linear time on any input.
A label that is absent counts as empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rules.rulefile.regex import BadExpression, compiled, full_match

_NAME = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^\s{}!=~,\\"\'`]+)\s*(=~|!~|!=|=)\s*')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_BARE = re.compile(r'[^\s{}!=~,\\"\'`]+')
_ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}


class BadMatcher(ValueError):
    """The text is not a list of matchers: says where."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """One comparison."""

    label: str
    operator: str
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if the labels satisfy the matcher."""
        have = labels.get(self.label, "")
        if self.operator in ("=", "!="):
            return (have == self.value) == (self.operator == "=")
        return _full_match(self.value, have) == (self.operator == "=~")


@dataclass(frozen=True, slots=True)
class Matchers:
    """All of them must match; none matches everything."""

    all: tuple[Matcher, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if the labels satisfy all matchers."""
        return all(matcher.matches(labels) for matcher in self.all)

    @classmethod
    def parse(cls, text: str) -> Matchers:
        """Read matchers. Raises BadMatcher."""
        inside = text.strip()
        if inside.startswith("{") != inside.endswith("}"):
            raise BadMatcher(f"{text!r}: a brace without its partner")
        inside = inside[1:-1] if inside.startswith("{") else inside
        out: list[Matcher] = []
        at = 0
        while inside[at:].strip():
            matcher, at = _matcher(inside, at)
            out.append(matcher)
            rest = inside[at:].lstrip()
            if rest and not rest.startswith(","):
                raise BadMatcher(f"{text!r}: expected a comma before {rest[:20]!r}")
            at = len(inside) - len(rest) + 1 if rest else len(inside)
        return cls(tuple(out))


def _matcher(text: str, at: int) -> tuple[Matcher, int]:
    name = _NAME.match(text, at)
    if name is None:
        raise BadMatcher(f'{text!r}: expected label="value" at {text[at:].strip()[:20]!r}')
    label = _unquote(name[1][1:-1]) if name[1].startswith('"') else name[1]
    value = _QUOTED.match(text, name.end()) or _BARE.match(text, name.end())
    if value is None:
        raise BadMatcher(f"{text!r}: expected a value after {label}{name[2]}, in double quotes where it is not a word")
    content = _unquote(value[1]) if value.re is _QUOTED else value[0]
    if "~" in name[2]:
        try:
            compiled(content)
        except BadExpression as error:
            raise BadMatcher(f"{text!r}: {error}") from error
    return Matcher(label, name[2], content), value.end()


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[0]), text)


@lru_cache(maxsize=65_536)
def _full_match(pattern: str, value: str) -> bool:
    # RE2 through Python costs 40 µs a call; alerts come again and again with the same values.
    return full_match(pattern, value)

"""Targets and the patterns that match them, segment by segment.

`*` is one segment, `**` any number of segments, anything else is literal or a glob (`*`, `?`, `[a-z]`) inside one
segment. A segment may hold any text and is percent-encoded only where it contains `/`, or what would look so encoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from rules.core.segments import encode_segment as encode_segment
from rules.rulefile.regex import BadExpression, compiled, escaped, full_match

SEGMENTS = {"cluster": 1, "zone": 2, "node": 2, "service": 3, "workload": 4}
"""Number of segments after each kind; `custom` takes one or more."""
_WILD = frozenset("*?[")
_PLACE = re.compile(r"\{([^{}]*)\}")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]*\Z")


class BadTarget(ValueError):
    """The text is no target, no pattern or no template: says why."""


class MissingLabel(ValueError):
    """A template names a label that is not there, or is empty."""

    def __init__(self, label: str) -> None:
        super().__init__(f"label {label!r} is missing or empty")
        self.label = label


def check_target(text: str) -> None:
    """Raise BadTarget unless the text is `<kind>/<segment>…` with as many segments as its kind has."""
    kind, *segments = text.split("/")
    if kind not in SEGMENTS and kind != "custom":
        known = ", ".join([*SEGMENTS, "custom"])
        raise BadTarget(f"{text!r} starts with {kind!r}; a target starts with one of {known}")
    if not all(segments) or not segments:
        raise BadTarget(f"{text!r} has an empty segment")
    wanted = SEGMENTS.get(kind)
    if wanted is not None and len(segments) != wanted:
        raise BadTarget(f"{text!r} has {len(segments)} segments after {kind!r}, a {kind} has {wanted}")


def check_template(template: str) -> frozenset[str]:
    """Give the labels that a template takes. Raises BadTarget where it is no template of a target."""
    rest = _PLACE.sub("x", template)
    if "{" in rest or "}" in rest:
        raise BadTarget(f"{template!r} has a brace without its partner; write {{label}}")
    labels = _PLACE.findall(template)
    for label in labels:
        if not _LABEL.match(label):
            raise BadTarget(f"{{{label}}} in {template!r} is not a label's name")
    check_target(rest)
    return frozenset(labels)


def fill(template: str, labels: Mapping[str, str]) -> str:
    """Put the labels into the template, each as (part of) one segment. Raises MissingLabel."""

    def value(place: re.Match[str]) -> str:
        text = labels.get(place[1], "")
        if not text:
            raise MissingLabel(place[1])
        return encode_segment(text)

    return _PLACE.sub(value, template)


def check_pattern(pattern: str) -> None:
    """Raise BadTarget unless the text can match some target."""
    if not all(pattern.split("/")):
        raise BadTarget(f"{pattern!r} has an empty segment")
    if not pattern.isascii() or _whole_segments(pattern) is None:  # else it is compared by segments, never compiled
        _expression(pattern)


def matches(pattern: str, target: str) -> bool:
    """True if the pattern matches the target."""
    segments = _whole_segments(pattern)
    if segments is not None:
        parts = target.split("/")
        return len(parts) == len(segments) and all(
            part == segment or (segment == "*" and part != "") for part, segment in zip(parts, segments, strict=True)
        )
    return full_match(_expression(pattern), target)


@lru_cache(maxsize=65_536)
def _whole_segments(pattern: str) -> tuple[str, ...] | None:
    """The segments of a pattern of which each is text or any one segment: it needs no expression."""
    segments = tuple(pattern.split("/"))
    plain = all(segment == "*" or not _WILD.intersection(segment) for segment in segments)
    return segments if plain else None


@lru_cache(maxsize=4096)
def _expression(pattern: str) -> str:
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise BadTarget(f"{pattern!r} is not a pattern: it holds a lone surrogate") from error
    segments = pattern.split("/")
    # `**/**` says no more than `**`.
    once = [one for one, before in zip(segments, ["", *segments], strict=False) if (one, before) != ("**", "**")]
    text = "/".join(map(_segment, once))
    # `**` may also be no segment at all, so it takes its own slash with it.
    text = text.replace("/\0", "(?:/[^/]+)*").replace("\0/", "(?:[^/]+/)*").replace("\0", ".+")
    try:
        compiled(text)
    except BadExpression as error:
        raise BadTarget(f"{pattern!r} is not a pattern: {error}") from error
    return text


def _segment(segment: str) -> str:
    if segment == "**":
        return "\0"
    if segment == "*":
        return "[^/]+"
    out, rest = "", segment
    while rest:
        char, rest = rest[0], rest[1:]
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[" and "]" in rest[1:]:
            end = rest.index("]", 1)
            out += _class(rest[:end])
            rest = rest[end + 1 :]
        else:
            out += escaped(char)
    return out


def _class(inside: str) -> str:
    """A set of characters; never the slash, so that a pattern has as many segments as it shows."""
    text = inside.replace("\\", "\\\\")
    if inside[0] in "!^":
        return f"[^/{text[1:]}]"
    try:
        if compiled(f"[{text}]").fullmatch("/"):
            raise BadTarget(f"[{inside}] would match a slash: a pattern matches segment by segment")
    except BadExpression as error:
        raise BadTarget(f"[{inside}] is no set of characters: {error}") from error
    return f"[{text}]"

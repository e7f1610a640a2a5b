"""Concrete names for what rule files only describe: patterns, templates, selectors of labels."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rules.kinds.workload.placement import LabelSelector, Requirement
from rules.rulefile.selectors import parsed
from rules.rulefile.targets import SEGMENTS, matches

_CLASS = re.compile(r"\[([^\]])[^\]]*\]")
_PLACE = re.compile(r"\{[^{}]*\}")
NAMES = ("one", "two", "three", "four")
FIRST: dict[str, tuple[str, ...]] = {
    "cluster": ("east",), "zone": ("east", "zone-a"), "node": ("east", "node-1"), "service": ("east", "shop", "web"),
    "workload": ("east", "default", "Deployment", "web"), "custom": ("thing",),
}  # fmt: skip
"""The segments of a target of each kind, where a pattern leaves them open."""


def targets_of(pattern: str, known: Iterable[str] = (), least: int = 2) -> list[str]:
    """Give targets that a pattern matches: of those that are known, and where these are fewer than `least`, new ones.

    Empty where the pattern is too strange to be filled.
    """
    found = [target for target in known if matches(pattern, target)]
    kind = pattern.split("/")[0]
    kinds = [kind] if kind in FIRST else ["service"]
    for number in range(least):
        if len(found) >= least:
            break
        made = _filled(pattern, kinds[0], number)
        if made not in found and matches(pattern, made):
            found.append(made)
    return found


def _filled(pattern: str, kind: str, number: int) -> str:
    """Fill a pattern; the last open segment takes the number, so that two fillings are two targets."""
    head, *rest = pattern.split("/")
    open_ = FIRST[kind]
    wanted = SEGMENTS.get(kind, max(len(rest), 1))
    if "**" in (head, *rest):
        at = [head, *rest].index("**")
        before, after = [head, *rest][:at], [head, *rest][at + 1 :]
        missing = wanted + 1 - len(before) - len(after)
        rest = [*before, *["*"] * max(missing, 0), *after][1:]
    out = [_segment(text, open_[index] if index < len(open_) else "part") for index, text in enumerate(rest)]
    variable = [index for index, text in enumerate(rest) if set(text) & set("*?[")]
    if number and variable:
        last = variable[-1]
        out[last] = _segment(rest[last], f"{open_[last] if last < len(open_) else 'part'}-{NAMES[number % 4]}")
    return "/".join([kind, *out])


def _segment(glob: str, default: str) -> str:
    if glob == "*":
        return default
    return _CLASS.sub(r"\1", glob).replace("*", default if "*" in glob else "").replace("?", "x")


def could_observe(template: str, target: str) -> bool:
    """True if a source with this template could observe this target."""
    return matches(_PLACE.sub("*", template), target)


def labels_for(selector: str) -> dict[str, str]:
    """Give labels that a label selector selects."""
    return {
        key: min(values, default="yes") or "yes"
        for key, operator, values in parsed(selector)
        if operator in ("in", "exists")
    }


def labels_of(selector: LabelSelector | None) -> dict[str, str]:
    """Give labels that a selector of a policy selects."""
    if selector is None:
        return {}
    return dict(selector.match_labels) | values_of(selector.match_expressions)


def values_of(expressions: Iterable[Requirement]) -> dict[str, str]:
    """Give values that requirements ask for."""
    return {one.key: one.values[0] if one.values else "yes" for one in expressions if one.operator in ("In", "Exists")}

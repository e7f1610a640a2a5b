"""Quantities of the Kubernetes API (`100m`, `1.5`, `2Gi`, `1e3`) as numbers."""

from __future__ import annotations

import re

from reactor.clients.object_fields import MalformedField

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i))?")
_SUFFIX = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


def quantity(text: object) -> float:
    """Give its value in whole units. Raises MalformedField."""
    found = _QUANTITY.fullmatch(str(text)) if isinstance(text, str | int | float) else None
    if found is None:
        raise MalformedField(f"{text!r} is no quantity such as 100m or 2Gi")
    number, exponent, suffix = found.groups()
    return float(number + (exponent or "")) * _SUFFIX.get(suffix, 1.0)

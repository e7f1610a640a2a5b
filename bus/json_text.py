"""JSON that others wrote: read, or refused with one kind of error; and what of it another release knows, kept."""

from __future__ import annotations

import json
from typing import Any


def parsed(text: str | bytes) -> Any:
    """Read it. Raises ValueError where it is no JSON, no UTF-8, or nested too deep for Python."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def later_keys(stored: Any, known: Any) -> Any:
    """Give what `stored` has and `known` has not, or None.

    Of an object, a dict of its unknown keys and of what is unknown below known ones. Of a list, a list of pairs: an
    entry as it is known, and what is unknown of it; an entry that changes or goes takes its unknown keys with it.
    """
    if isinstance(stored, dict) and isinstance(known, dict):
        below = {key: later_keys(stored[key], known[key]) for key in stored if key in known}
        found = {key: value for key, value in stored.items() if key not in known}
        nested = {key: value for key, value in below.items() if value is not None}
        return {"new": found, "below": nested} if found or nested else None
    if isinstance(stored, list) and isinstance(known, list) and len(stored) == len(known):
        pairs = [[one, more] for old, one in zip(stored, known, strict=True) if (more := later_keys(old, one))]
        return pairs or None
    return None


def with_later(known: Any, later: Any) -> Any:
    """Give `known` with the keys that `later_keys` found, wherever what they belong to is still there."""
    if isinstance(known, dict) and isinstance(later, dict):
        below = {key: with_later(known[key], more) for key, more in later["below"].items() if key in known}
        return {**known, **below, **later["new"]}
    if isinstance(known, list) and isinstance(later, list):
        return [next((with_later(one, more) for was, more in later if was == one), one) for one in known]
    return known

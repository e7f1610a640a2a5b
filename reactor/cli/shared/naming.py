"""Names that nothing has: an error that lists near ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHOWN_MAX = 10


def near(name: str, there: Iterable[str], what: str) -> str:
    """Say that nothing is called so, and what comes near, or what there is."""
    names = sorted(set(there))
    found = difflib.get_close_matches(name.strip("*"), names, n=3, cutoff=0.5)
    if found:
        return f"no {what} {name!r}; did you mean {' or '.join(found)}?"
    more = f", and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return f"no {what} {name!r}; there are: {', '.join(names[:SHOWN_MAX]) or 'none'}{more}"

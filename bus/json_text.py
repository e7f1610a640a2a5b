"""JSON that others wrote: read, or refused with one kind of error."""

from __future__ import annotations

import json
from typing import Any


def parsed(text: str | bytes) -> Any:
    """Read it. Raises ValueError where it is no JSON, no UTF-8, or nested too deep for Python."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error

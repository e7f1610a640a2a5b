"""Message texts: `{word}` is replaced, and that is all. No attribute access, no format language."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.:/-]*)\}")


def substitute(text: str, words: Mapping[str, str]) -> str:
    """Replace each `{word}`; one that is not known stays as it is, so that it can be seen and mended."""
    return _WORD.sub(lambda place: words.get(place[1], place[0]), text)

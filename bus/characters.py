"""Invisible characters are refused in names and in texts that people write: they make one text look like another."""

from __future__ import annotations

import unicodedata

_SEPARATORS = ("Zl", "Zp")


def unseen(text: str) -> str | None:
    """Give the first character that is a control, format, unassigned or line separating one (`U+001B`)."""
    if text.isprintable():
        return None
    return next((f"U+{ord(char):04X}" for char in text if _is_unseen(unicodedata.category(char))), None)


def all_seen(text: str) -> str:
    """Give it back. Raises ValueError where it holds such a character."""
    if (found := unseen(text)) is not None:
        msg = f"holds {found}: control and invisible characters are refused"
        raise ValueError(msg)
    return text


def _is_unseen(category: str) -> bool:
    return category.startswith("C") or category in _SEPARATORS

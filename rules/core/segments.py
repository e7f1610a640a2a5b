"""Segments of targets and of the patterns that match them: text between slashes."""

from __future__ import annotations


def encode_segment(text: str) -> str:
    """Make one segment of any text: another one of each, also of `a/b` and `a%2Fb`."""
    if not any(part in text for part in ("/", "%2F", "%25")):
        return text
    return text.replace("%", "%25").replace("/", "%2F")

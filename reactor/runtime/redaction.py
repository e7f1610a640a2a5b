"""Credentials taken out of text: of log lines, and of errors, in which a server may echo what it was sent."""

from __future__ import annotations

import re

_HEADER = re.compile(
    r"(?i)((?:proxy-)?authorization['\"\\]*\s*[:=]\s*['\"\\]*(?:(?:bearer|basic|token|geniekey|digest)\s+)?"
    r"|x-[a-z-]*(?:key|token|secret)['\"\\]*\s*[:=]\s*['\"\\]*)[^\s'\",}\\]+"
)
_SECRET = re.compile(r"(?i)((?:password|token|secret|(?:routing|api)_key)['\"\\]*\s*[:=]\s*['\"\\]*)[^\s'\",}\\]+")
_USERINFO = re.compile(r"(\w+://)[^/\s:@]+:[^/\s@]+@")


def without_credentials(text: str) -> str:
    """Take out what only servers need: headers with credentials, user:password in URLs."""
    folded = text.casefold()
    # To look for a word takes a thousandth of what its pattern takes. Only "author", as to (?i) a Turkish ı is an i.
    if "author" in folded or ("x-" in folded and _any_of(("key", "token", "secret"), folded)):
        text = _HEADER.sub(r"\1***", text)
    return _USERINFO.sub(r"\1***@", text) if "://" in text else text


def redact(text: str) -> str:
    """Take these out of a line, and the values of whatever is called a password, a token or a secret."""
    text = without_credentials(text)
    if _any_of(("password", "token", "secret", "_key"), text.casefold()):
        return _SECRET.sub(r"\1***", text)
    return text


def _any_of(words: tuple[str, ...], text: str) -> bool:
    """True if one of them is in the text."""
    return any(word in text for word in words)

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
    return _USERINFO.sub(r"\1***@", _HEADER.sub(r"\1***", text))


def redact(text: str) -> str:
    """Take these out of a line, and the values of whatever is called a password, a token or a secret."""
    return _SECRET.sub(r"\1***", without_credentials(text))

"""Errors while running.

ReactorError
├── SettingsError    the operator's mistake: says which key, and what to do
├── Terminal         trying again cannot help: the object does not exist, we are not allowed
└── Retryable        trying again may help: a timeout, a conflict, an overloaded server
    └── SourceUnknown  the rules here do not name the source of a post; those of another process may
"""

from __future__ import annotations

from reactor.runtime.redaction import without_credentials


class ReactorError(Exception):
    """Something went wrong. What it says has no credentials in it, although a server may have echoed ours."""

    def __str__(self) -> str:
        return without_credentials(super().__str__())


class SettingsError(ReactorError):
    """The settings cannot be used."""


class Terminal(ReactorError):
    """Trying again cannot help."""


class Retryable(ReactorError):
    """Trying again may help.

    `after`: seconds the other side asked us to wait, or None.
    """

    def __init__(self, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class SourceUnknown(Retryable):
    """The rules of this process do not name the source of a post. Rules that are being rolled out may."""

"""A permission, as an RBAC rule gives it."""

from __future__ import annotations

from typing import NamedTuple

WATCHES = ("get", "list", "watch")
LOOKS = ("list", "watch")
WRITES = ("create", "patch")
"""Server-side apply of an object that is not there yet needs both."""


class Grant(NamedTuple):
    """A permission in one cluster."""

    group: str
    resource: str
    """With its subresource: `pods/eviction`."""
    verbs: tuple[str, ...]
    namespace: str = ""
    """Empty: everywhere, or no matter."""
    name: str = ""
    """Of the only object that is meant. Empty: all."""


class Needs(NamedTuple):
    """What one rule or source needs in one cluster, by who needs it."""

    observer: tuple[Grant, ...] = ()
    executor: tuple[Grant, ...] = ()
    """What it reads to act."""
    writes: tuple[Grant, ...] = ()
    """What the executor changes, where the rule acts."""

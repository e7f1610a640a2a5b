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
    """Resource with its subresource: `pods/eviction`."""
    verbs: tuple[str, ...]
    namespace: str = ""
    """Namespace; empty: all of them, or the resource has none."""
    name: str = ""
    """Name of the only object that is meant; empty: all."""


class Needs(NamedTuple):
    """Permissions that one rule or source needs in one cluster, by role."""

    observer: tuple[Grant, ...] = ()
    executor: tuple[Grant, ...] = ()
    """Reads of the executor before it acts."""
    writes: tuple[Grant, ...] = ()
    """Writes of the executor, where the rule acts."""

"""Copies of a store of groups, for rehearsals that begin alike: one for each rule test of a file.

A new store opens a group for each route that a rule names, which takes a hundred times as long.
"""

from __future__ import annotations

from copy import copy
from typing import TypeVar

from rules.engine.groups import GroupStore
from rules.engine.pauses import Pauses
from rules.engine.subscriptions import Subscriptions

T = TypeVar("T")
_PARTS = (GroupStore, Subscriptions, Pauses)
"""All that changes in a store, besides containers. Groups, facts and rules are values, and a routing only caches."""


def copied(store: GroupStore) -> GroupStore:
    """Give a store of the same groups. Neither knows of what is applied to the other."""
    return _unshared(store)


def _unshared(value: T) -> T:
    """Give the value with parts and containers of its own, at any depth."""
    if isinstance(value, dict):
        own = copy(value)
        own.update((key, _unshared(inside)) for key, inside in value.items() if isinstance(inside, dict | list | set))
        return own
    if isinstance(value, list | set):
        return copy(value)
    if isinstance(value, _PARTS):
        part = copy(value)
        for name, inside in vars(value).items():
            setattr(part, name, _unshared(inside))
        return part
    return value

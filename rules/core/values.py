"""Copies of frozen dataclasses with other fields, at half the cost of `dataclasses.replace`.

Every decision makes a dozen of them. `dataclasses.replace` looks at the definition of each field each time and runs
`__init__`; here the slots of the copy are filled directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")
Setter = Callable[[object, Any], None]


def replace(value: T, /, **changes: Any) -> T:
    """Give a copy of a dataclass with slots in which these fields are others. Raises KeyError for a field it lacks."""
    kind: Any = type(value)
    values, setters, by_name = _slots(kind)
    copy: T = object.__new__(kind)
    for setter, old in zip(setters, values(value), strict=True):
        setter(copy, old)
    for name, new in changes.items():
        by_name[name](copy, new)
    return copy


@cache
def _slots(kind: Any) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[Setter, ...], Mapping[str, Setter]]:
    """Give what reads all fields of a dataclass at once, and what writes each."""
    if hasattr(kind, "__post_init__"):
        msg = f"{kind.__name__} checks itself when it is made: use dataclasses.replace"
        raise TypeError(msg)
    names = [field.name for field in fields(kind)]
    setters = {name: _setter(kind, name) for name in names}
    # attrgetter gives a tuple only of two names or more.
    values = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
    return values, tuple(setters.values()), setters


def _setter(kind: Any, name: str) -> Setter:
    owner = next(one for one in kind.__mro__ if name in one.__dict__.get("__slots__", ()))
    setter: Setter = owner.__dict__[name].__set__
    return setter

"""Copies of frozen dataclasses with other fields, at a third of the cost of `dataclasses.replace`.

Every decision makes a dozen of them. `dataclasses.replace` looks at the definition of each field each time and runs
`__init__`; here the slots of the copy are filled directly, by a function that is written for its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
Setter = Callable[[object, Any], None]


def replace(value: T, /, **changes: Any) -> T:
    """Give a copy of a dataclass with slots in which these fields are others. Raises KeyError for a field it lacks."""
    kind: Any = type(value)
    copied, setters = _copying(kind)
    copy: T = copied(value)
    for name, new in changes.items():
        setters[name](copy, new)
    return copy


@cache
def _copying(kind: Any) -> tuple[Callable[[Any], Any], Mapping[str, Setter]]:
    """Give what copies a value of this class, and what writes each of its fields."""
    if hasattr(kind, "__post_init__"):
        msg = f"{kind.__name__} checks itself when it is made: use dataclasses.replace"
        raise TypeError(msg)
    setters = {field.name: _setter(kind, field.name) for field in fields(kind)}
    lines = "".join(f"    set_{name}(copy, value.{name})\n" for name in setters)
    known: dict[str, Any] = {f"set_{name}": setter for name, setter in setters.items()}
    known |= {"new": object.__new__, "kind": kind}
    # As dataclasses makes `__init__`: of the names of fields, which are identifiers. A loop takes twice as long.
    exec(f"def copied(value):\n    copy = new(kind)\n{lines}    return copy\n", known)  # noqa: S102
    return known["copied"], setters


def _setter(kind: Any, name: str) -> Setter:
    owner = next(one for one in kind.__mro__ if name in one.__dict__.get("__slots__", ()))
    setter: Setter = owner.__dict__[name].__set__
    return setter


def without(items: Mapping[str, T], name: str) -> dict[str, T]:
    """Give a copy of the items without that one."""
    return {key: value for key, value in items.items() if key != name}

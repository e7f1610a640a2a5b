"""Keys that a later release stored and this one does not know: kept, and written back with what they belong to.

Of a map, an entry is known by its key. Of a list, it is known by what its class calls its `IDENTITY`: it may change,
its neighbours may go, and it may move to another place of the same value, and its keys go with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from bus.errors import Malformed

EntryId: TypeAlias = tuple[str, ...]
"""The name of an entry's class, and the values of its `IDENTITY` as JSON."""


@dataclass(frozen=True, slots=True)
class StoredShape:
    """Shape of a stored value: its fields or entries, and the identity of an entry."""

    name: str = ""
    """Of the class; empty: no class of its own."""
    identity: tuple[str, ...] = ()
    """Paths to the fields by which an entry is known; empty: by its place."""
    fields: Mapping[str, StoredShape] = field(default_factory=dict)
    entries: StoredShape | None = None
    """Of a list or a map."""

    def of(self, key: str) -> StoredShape:
        """Of what is stored under this key."""
        return self.fields.get(key) or self.entries or PLAIN


PLAIN = StoredShape()
"""Of a value without entries that are known by more than their place."""


@dataclass(frozen=True, slots=True)
class LaterKeys:
    """The unknown keys of a stored value."""

    new: Mapping[str, Any] = field(default_factory=dict)
    """Those of the value itself."""
    below: Mapping[str, LaterKeys] = field(default_factory=dict)
    """Those below known keys."""
    entries: Mapping[EntryId, LaterKeys] = field(default_factory=dict)
    """Those of entries that are known by their identity, wherever in the value they are; only at the top."""

    def __bool__(self) -> bool:
        return bool(self.new or self.below or self.entries)


def later_keys(stored: Any, known: Any, shape: StoredShape = PLAIN) -> LaterKeys | None:
    """Give what `stored` has and `known`, which is the same as this release reads it, has not; None: nothing.

    Raises Malformed for what could not be written back: unknown keys in entries that cannot be told apart.
    """
    entries: dict[EntryId, LaterKeys] = {}
    found = _found(stored, known, shape, entries)
    every = {one: keys for one, keys in entries.items() if keys}
    return LaterKeys(found.new, found.below, every) if found or every else None


def with_later(known: Any, later: LaterKeys | None, shape: StoredShape = PLAIN) -> Any:
    """Give `known` with the keys that `later_keys` found, wherever what they belong to is still there."""
    return known if later is None else _with(known, later, shape, later.entries)


def still_there(known: Any, later: LaterKeys | None, shape: StoredShape = PLAIN) -> LaterKeys | None:
    """Give the unknown keys of what is still there: an entry that comes under the name of one that went is another."""
    return None if later is None else later_keys(with_later(known, later, shape), known, shape)


@cache
def shape_of(kind: Any) -> StoredShape:
    """Give the shape of what is stored of a dataclass, or of a generic one with its state. Raises TypeError for a list
    of dataclasses without `IDENTITY`."""
    return _shape(kind, {})


def _found(stored: Any, known: Any, shape: StoredShape, entries: dict[EntryId, LaterKeys]) -> LaterKeys:
    if isinstance(stored, list) and isinstance(known, list) and len(stored) == len(known):
        inner = shape.entries or PLAIN
        pairs = enumerate(zip(stored, known, strict=True))
        below = {str(at): keys for at, (old, one) in pairs if (keys := _apart(old, one, inner, entries))}
        if below:
            raise Malformed(f"keys of a later release in a list whose entries have no identity: {sorted(below)}")
        return LaterKeys()
    if not isinstance(stored, dict) or not isinstance(known, dict):
        return LaterKeys()
    new = {key: value for key, value in stored.items() if key not in known}
    shared = ((key, _apart(stored[key], known[key], shape.of(key), entries)) for key in stored if key in known)
    return LaterKeys(new, {key: keys for key, keys in shared if keys})


def _apart(stored: Any, known: Any, shape: StoredShape, entries: dict[EntryId, LaterKeys]) -> LaterKeys:
    """The unknown keys of this place; those of an entry that has an identity go to `entries`."""
    found = _found(stored, known, shape, entries)
    name = _id(known, shape)
    if name is None:
        return found
    if entries.setdefault(name, found) != found:
        raise Malformed(f"keys of a later release in two entries that cannot be told apart: {' '.join(name)}")
    return LaterKeys()


def _with(known: Any, later: LaterKeys, shape: StoredShape, entries: Mapping[EntryId, LaterKeys]) -> Any:
    if isinstance(known, list):
        return [_with(one, _of(one, shape.of(""), entries), shape.of(""), entries) for one in known]
    if not isinstance(known, dict):
        return known
    below = {
        key: _with(value, _of(value, shape.of(key), entries, later.below.get(key)), shape.of(key), entries)
        for key, value in known.items()
    }
    return {**below, **later.new}


def _of(
    known: Any, shape: StoredShape, entries: Mapping[EntryId, LaterKeys], here: LaterKeys | None = None
) -> LaterKeys:
    name = _id(known, shape)
    return (here if name is None else entries.get(name)) or _NOTHING


_NOTHING = LaterKeys()


def _id(known: Any, shape: StoredShape) -> EntryId | None:
    if not shape.identity or not isinstance(known, dict):
        return None
    return shape.name, *(json.dumps(_at(known, path.split(".")), sort_keys=True) for path in shape.identity)


def _at(value: Any, path: list[str]) -> Any:
    for key in path:
        value = value[key]
    return value


def _shape(hint: Any, types: Mapping[Any, Any]) -> StoredShape:
    hint = types.get(hint, hint) if isinstance(hint, TypeVar) else hint
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _shape(args[0], types)
    if origin in (Union, UnionType):
        return next((shape for one in args if (shape := _shape(one, types)) != PLAIN), PLAIN)
    if is_dataclass(origin):
        return _of_class(origin, dict(zip(getattr(origin, "__parameters__", ()), args, strict=True)))
    if is_dataclass(hint):
        return _of_class(hint, {})
    inner = next((shape for one in args if (shape := _shape(one, types)) != PLAIN), None)
    if inner is not None and origin is tuple and not inner.identity:
        msg = f"{inner.name} is stored in a list: say by IDENTITY what it is known by"
        raise TypeError(msg)
    return PLAIN if inner is None else StoredShape(entries=inner)


def _of_class(kind: Any, types: Mapping[Any, Any]) -> StoredShape:
    hints = get_type_hints(kind, include_extras=True)
    inner = dict(_inner(kind, hints, types))
    return StoredShape(kind.__name__, getattr(kind, "IDENTITY", ()), inner)


def _inner(kind: Any, hints: Mapping[str, Any], types: Mapping[Any, Any]) -> Iterator[tuple[str, StoredShape]]:
    for one in fields(kind):
        if (shape := _shape(hints[one.name], types)) != PLAIN:
            yield one.name, shape

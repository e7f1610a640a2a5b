"""Groups as they are stored: JSON, compressed where it is large. Keys of another release are kept and written back.

Two releases share a fleet while it is upgraded or rolled back, and take over partitions from each other: what one has
stored and the other does not know must not vanish with the first write.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bus.errors import Malformed
from bus.json_text import parsed
from rules.core.group import VERSION, Group, NoState
from rules.core.later_keys import StoredShape, later_keys, shape_of, still_there, with_later
from rules.engine.known_kinds import kinds

_KIND = re.compile(rb'\{"kind":"(\w*)",')
_OURS = {"later"}
"""Fields that are never stored themselves."""


@cache
def _states() -> Mapping[str, type[Any]]:
    """By `kind` in a stored group: the name of the model of its rule."""
    return {"": NoState} | {model.__name__: kind.state for model, kind in kinds().items()}


@cache
def _names() -> Mapping[type[Any], str]:
    return {state: name for name, state in _states().items()}


@cache
def _adapter(name: str) -> TypeAdapter[Group]:
    """Of the kind of this name. Made when it is needed: each takes some 30 ms, and most rule files have few kinds."""
    state = _states()[name]
    return TypeAdapter(Group[state])  # type: ignore[valid-type]  # known when it runs, not before


LARGE = 1 << 10
"""From so many bytes on a group is stored compressed: ten members, 6 kB, become 0.7 kB within 10 µs, and a guard that
ten thousand groups ask has 2.6 MB, where a NATS server takes 1 MB in one message by default."""
BYTES_MAX = 256 << 20  # what a million requests would have: more is no group, and is not unpacked


def dump_group(group: Group) -> bytes:
    """Give the group as JSON, compressed where it is large."""
    body = _json(group)
    if group.later is not None:
        body = json.dumps(with_later(json.loads(body), group.later, _shape(group)), separators=(",", ":")).encode()
    return body if len(body) < LARGE else zlib.compress(body, 1)


def load_group(body: bytes) -> Group:
    """Read a group back. Raises Malformed where it is none, or of a newer version."""
    text = unpacked(body)
    group = _read(text)
    if (known := _json(group)) == text:
        return group
    later = later_keys(json.loads(text), json.loads(known), _shape(group))
    return replace(group, later=later) if later is not None else group


def _read(text: bytes) -> Group:
    name = _kind(text)
    if name not in _states():
        raise Malformed(f"not a stored group: {name!r} is no kind of rule that this version knows")
    try:
        group = _adapter(name).validate_json(text)
    except ValidationError as error:
        raise Malformed(f"not a stored group: {error.errors(include_url=False, include_input=False)[0]}") from error
    if group.version > VERSION:
        raise Malformed(f"stored by a newer version ({group.version}; this one reads up to {VERSION})")
    return group


def without_gone(group: Group) -> Group:
    """Give the group without unknown keys of what it has no more: what comes later under the same name is another."""
    if group.later is None:
        return group
    return replace(group, later=still_there(json.loads(_json(group)), group.later, _shape(group)))


def _shape(group: Group) -> StoredShape:
    return shape_of(Group[type(group.state)])  # type: ignore[misc]  # known when it runs, not before


def _json(group: Group) -> bytes:
    name = _names()[type(group.state)]
    return b'{"kind":"%s",%s' % (name.encode(), _adapter(name).dump_json(group, by_alias=False, exclude=_OURS)[1:])


def _kind(text: bytes) -> str:
    """Give the name of the rule's kind. Raises Malformed."""
    if found := _KIND.match(text):
        return found[1].decode()
    try:
        value = parsed(text)
    except ValueError as error:
        raise Malformed(f"not a stored group: {error}") from error
    return str(value.get("kind")) if isinstance(value, dict) else ""


def unpacked(body: bytes) -> bytes:
    """Give the JSON of a stored group. Raises Malformed."""
    if body.startswith(b"{"):
        return body
    unpack = zlib.decompressobj()
    try:
        text = unpack.decompress(body, BYTES_MAX)
    except zlib.error as error:
        raise Malformed(f"not a stored group: {error}") from error
    if not unpack.eof:
        raise Malformed("not a stored group: it is cut off, or too large")
    return text


def to_python(group: Group) -> Any:
    """Give the group as plain values, for people."""
    name = _names()[type(group.state)]
    return {"kind": name, **_adapter(name).dump_python(group, mode="json", exclude=_OURS)}


def from_python(values: Any) -> Group:
    """Read back what `to_python` gave, from a record of the audit. It is not stored again, so that keys of a later
    release are left out. Raises Malformed."""
    return _read(json.dumps(values).encode())

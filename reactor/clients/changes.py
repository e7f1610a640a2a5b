"""Objects and watch events of the Kubernetes API, read with care: anything may be missing or of the wrong type."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from bus.json_text import parsed
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject
from reactor.clients.watching import Expired

_NUMBER = re.compile(r"[0-9]{1,20}")
"""A resourceVersion as API servers on etcd give it, of 64 bits."""


class ChangeType(StrEnum):
    """Kind of change to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class ReadInterval(NamedTuple):
    """Begin and end of a look: what was found was so at some moment between the two."""

    began: datetime
    ended: datetime


class ObjectChange(NamedTuple):
    """One object that is now different. A deleted one is given as it was last known."""

    kind: ChangeType
    object: JsonObject
    unbroken: bool = True
    """False: it changed while no watch was open; what it was in between is not known."""


class ObjectKey(NamedTuple):
    """Identity of an object in its collection; the namespace is empty for cluster-wide kinds."""

    namespace: str
    name: str


def metadata_of(found: object) -> JsonObject:
    """Give the object's metadata, empty where it has none."""
    metadata = found.get("metadata") if isinstance(found, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def key_of(found: object) -> ObjectKey | None:
    """Give namespace and name, or None where the object has no name."""
    metadata = metadata_of(found)
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        return None
    return ObjectKey(namespace if isinstance(namespace, str) else "", name)


def version_of(found: object) -> str:
    """Give the resourceVersion of an object or of a list, empty where it has none."""
    version = metadata_of(found).get("resourceVersion")
    return version if isinstance(version, str) else ""


def is_earlier(version: str, other: str) -> bool:
    """True if one resourceVersion is before another of the same kind; False where they are not decimal numbers.

    They may be compared as numbers where they are such: KEP-5504.
    """
    numbers = _NUMBER.fullmatch(version), _NUMBER.fullmatch(other)
    return all(numbers) and int(version) < int(other)


def state_of_objects(found: Iterable[object]) -> str:
    """Give one short text for the state of these objects: each change of one of them changes it. Empty for none."""
    return digest(f"{metadata_of(one).get('uid')}/{version_of(one)}" for one in found)


def digest(parts: Iterable[str]) -> str:
    """Give one short text for all of these, in whatever order; empty for none, and where one of them is empty."""
    there = sorted(parts)
    return hashlib.blake2b("\0".join(there).encode(), digest_size=8).hexdigest() if all(there) and there else ""


def strings_of(found: object) -> dict[str, str]:
    """Give those entries of a map of labels or annotations that are what the API says they are."""
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(key, str) and isinstance(value, str)}


def parsed_event(where: str, line: bytes) -> tuple[str, JsonObject]:
    """Give type and object of one line of a watch. Raises ApiUnavailable for no event, Expired for a 410."""
    try:
        event = parsed(line)
        kind, found = event["type"], event["object"]
    except (ValueError, TypeError, KeyError) as error:
        raise ApiUnavailable(f"{where} said something that is no watch event: {line[:80]!r}") from error
    if not isinstance(found, dict):
        raise ApiUnavailable(f"{where} sent an event without an object: {line[:80]!r}")
    if kind == "ERROR":
        message = f"{where} ended with {found.get('code')}: {found.get('message')}"
        raise Expired(message) if found.get("code") == 410 else ApiUnavailable(message)
    return str(kind), found


def text_of(found: object) -> str:
    """Give a text, empty where it is none."""
    return found if isinstance(found, str) else ""


def dict_of(found: object) -> JsonObject:
    """Give an object, empty where it is none."""
    return found if isinstance(found, dict) else {}


def list_of(found: object) -> list[JsonObject]:
    """Give the objects of a list, none where it is no list."""
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

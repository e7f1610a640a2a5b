"""Assignment of partitions to members: all that know the same members compute the same, without asking."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType


def assignment(members: Sequence[str], partitions: int) -> Mapping[int, str]:
    """Give each partition to a member: evenly (one more or less), and so that a change of members moves little.

    Rendezvous hashing with quotas: the pairs of the highest weight are served first, until a member has its share.
    Processes that know the same members compute the same assignment.
    """
    return _assigned(tuple(sorted(set(members))), partitions)


@lru_cache(maxsize=8)
def _assigned(ordered: tuple[str, ...], partitions: int) -> Mapping[int, str]:
    # Kept: it is asked for several times a second, and members seldom change.
    base, more = divmod(partitions, len(ordered))
    left = {member: base + (number < more) for number, member in enumerate(ordered)}
    out: dict[int, str] = {}
    pairs = [(_weight(member, partition), partition, member) for partition in range(partitions) for member in ordered]
    for _, partition, member in sorted(pairs, reverse=True):
        if partition not in out and left[member]:
            out[partition] = member
            left[member] -= 1
    return MappingProxyType(out)


def _weight(member: str, partition: int) -> bytes:
    return hashlib.sha256(f"{member}\0{partition}".encode()).digest()

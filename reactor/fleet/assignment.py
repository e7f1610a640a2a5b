"""Who should own what: everybody who knows the same members comes to the same answer, without asking others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def assignment(members: Sequence[str], partitions: int) -> dict[int, str]:
    """Give each partition to a member: evenly (one more or less), and so that a change of members moves little.

    Rendezvous hashing with quotas: the pairs of the highest weight are served first, until a member has its share.
    Everybody who knows the same members comes to the same answer.
    """
    ordered = sorted(set(members))
    base, more = divmod(partitions, len(ordered))
    left = {member: base + (number < more) for number, member in enumerate(ordered)}
    out: dict[int, str] = {}
    pairs = [(_weight(member, partition), partition, member) for partition in range(partitions) for member in ordered]
    for _, partition, member in sorted(pairs, reverse=True):
        if partition not in out and left[member]:
            out[partition] = member
            left[member] -= 1
    return out


def _weight(member: str, partition: int) -> bytes:
    return hashlib.sha256(f"{member}\0{partition}".encode()).digest()

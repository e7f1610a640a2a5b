"""Whole-number shares of a whole."""

from __future__ import annotations

from collections.abc import Sequence


def apportion(total: int, shares: Sequence[int]) -> list[int]:
    """Divide `total` by `shares` so that the parts are whole and sum to it (largest remainder; ties: the earlier).

    No part is zero while `total` is at least the number of shares: each that is ready gets something.
    """
    whole = sum(shares)
    if not shares or whole == 0:
        return [0] * len(shares)
    parts = [total * share // whole for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda i: (-(total * shares[i] % whole), i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    for i in range(len(parts)):
        if parts[i] == 0 and shares[i] > 0 and max(parts) > 1:
            largest = max(range(len(parts)), key=lambda i: (parts[i], i))
            parts[largest] -= 1
            parts[i] = 1
    return parts

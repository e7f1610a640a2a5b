"""Smooth weighted round robin, as nginx does it: by weights, and spread as evenly as they allow."""

from __future__ import annotations

from collections.abc import Mapping


class Balance:
    """Picks names by their weights. Of any `sum(weights)` picks in a row, each name gets exactly its weight."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        """Weights below one get nothing."""
        self._weights = {name: weight for name, weight in weights.items() if weight > 0}
        self._total = sum(self._weights.values())
        self._credit = dict.fromkeys(self._weights, 0)

    def pick(self) -> str | None:
        """Give the next name; None where no name has any weight."""
        if not self._weights:
            return None
        for name, weight in self._weights.items():
            self._credit[name] += weight
        chosen = max(self._credit, key=self._credit.__getitem__)  # the first of equals, so that it can be told before
        self._credit[chosen] -= self._total
        return chosen

"""Finds those of many patterns that may fit a path, in a time that does not grow with the number of patterns.

A trie of segments, as in a NATS server's subject list. A literal segment is found by its text; one with wildcards by
the text before its first wildcard and after its last, so it may be found where it does not fit: the caller checks
what it gets. What fits is always found.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Glob:
    """A segment with wildcards: `*`, `?`, `[a-z]`; `**` alone is any number of segments."""

    text: str


Segment = str | Glob
Pattern = tuple[Segment, ...]
Path = tuple[str, ...]
ANY = Glob("*")
"""One segment, whatever it is."""
MANY = Glob("**")
"""Any number of segments, also none."""


def pattern_of(text: str) -> Pattern:
    """Give the segments of a pattern such as `service/*/shop/cart-*`."""
    return tuple(Glob(segment) if _WILD.search(segment) else segment for segment in text.split("/"))


class Index(Generic[T]):
    """Items under patterns of paths."""

    def __init__(self, entries: Iterable[tuple[Pattern, T]] = ()) -> None:
        self._root = _TrieNode()
        self._items: list[T] = []
        self._numbers: dict[T, int] = {}
        for pattern, item in entries:
            self.add(pattern, item)

    def add(self, pattern: Pattern, item: T) -> None:
        """Have `find` give this item for every path that the pattern fits."""
        number = self._numbers.setdefault(item, len(self._items))
        if number == len(self._items):
            self._items.append(item)
        node = self._root
        for segment in pattern:
            node = node.child(segment)
        if node.ends is None:
            node.ends = []
        node.ends.append(number)

    def find(self, path: Sequence[str]) -> tuple[T, ...]:
        """Give the items whose patterns may fit, each once, in the order in which they were first added."""
        found: set[int] = set()
        seen: set[tuple[int, int]] = set()
        ahead = [(self._root, 0)]
        while ahead:
            node, at = ahead.pop()
            if (id(node), at) in seen:
                continue
            seen.add((id(node), at))
            if at == len(path):
                found.update(node.ends or ())
            else:
                ahead += [(child, at + 1) for child in node.fitting(path[at])]
            if node.rest is not None:
                ahead += [(node.rest, later) for later in range(at, len(path) + 1)]
        return tuple(self._items[number] for number in sorted(found))


class _TrieNode:
    """Node of the trie of patterns: children by next segment. Absent parts take no memory: most nodes have one child,
    and 1,000 rules have 13,000 nodes."""

    __slots__ = ("ends", "exact", "globs", "rest", "shapes")

    def __init__(self) -> None:
        self.ends: list[int] | None = None
        """Numbers of the items that end here, also twice: most nodes have one, and a set of it takes 0.1 kB more."""
        self.exact: dict[str, _TrieNode] | None = None
        self.globs: dict[tuple[str, str], _TrieNode] | None = None
        """By the text before the first wildcard and after the last."""
        self.shapes: tuple[tuple[int, int], ...] = ()
        """The lengths of these texts, each pair once: few, however many patterns there are."""
        self.rest: _TrieNode | None = None
        """After `**`."""

    def child(self, segment: Segment) -> _TrieNode:
        """Give the node behind a segment of a pattern."""
        if isinstance(segment, str):
            if self.exact is None:
                self.exact = {}
            return self.exact.get(segment) or self.exact.setdefault(segment, _TrieNode())
        if segment == MANY:
            self.rest = self.rest or _TrieNode()
            return self.rest
        ends = _ends(segment.text)
        if (shape := (len(ends[0]), len(ends[1]))) not in self.shapes:
            self.shapes += (shape,)
        if self.globs is None:
            self.globs = {}
        return self.globs.get(ends) or self.globs.setdefault(ends, _TrieNode())

    def fitting(self, segment: str) -> Iterable[_TrieNode]:
        """Give the nodes behind all segments of patterns that this one may fit."""
        if self.exact is not None and (exact := self.exact.get(segment)) is not None:
            yield exact
        if self.globs is None:
            return
        for before, after in self.shapes:
            if before + after <= len(segment):
                node = self.globs.get((segment[:before], segment[len(segment) - after :]))
                if node is not None:
                    yield node


def _ends(glob: str) -> tuple[str, str]:
    """Fixed text at the start and end of each segment that matches. After a set of characters the end is not certain:
    ""."""
    wild = [match.start() for match in _WILD.finditer(glob)]
    return glob[: wild[0]], "" if "[" in glob else glob[wild[-1] + 1 :]

"""One page of a LIST as the server sent it: its objects are parsed only where they are not those of a page before.

At rest a LIST brings what the last one has brought, byte for byte, except for the list's own metadata. To compare the
text costs a twentieth of parsing it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from typing import Any

from bus.json_text import parsed
from reactor.clients.kubernetes_port import JsonObject

_ITEMS = re.compile(rb'"items": ?\[')


class ListPage:
    """A page; raises ValueError where it is no JSON object."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        # Real servers put the list's metadata before the items of built-in kinds and behind those of custom resources.
        # What is before the first "items" is no object of the list, and nor is what is behind the last bracket.
        found = _ITEMS.search(text)
        self._from, self._to = (found.end() - 1, text.rfind(b"]") + 1) if found else (0, 0)
        self._whole: JsonObject | None = None
        head = self._head() if found else None
        if not isinstance(head, dict) or head.get("items") != []:
            head = self._whole = parsed(text)
        if not isinstance(head, dict):
            raise ValueError("JSON that is no object")  # noqa: TRY004 - of the answer, not of an argument
        metadata = head.get("metadata")
        self.metadata: JsonObject = metadata if isinstance(metadata, dict) else {}
        self.version = self._word("resourceVersion")
        """The list's own; empty where it has none."""
        self.token = self._word("continue")
        """Token that asks for the next page; empty: this is the last one."""

    @cached_property
    def digest(self) -> bytes:
        """The same for the same objects in the same words. Empty: it has to be read."""
        if self._whole is not None:
            return b""
        return hashlib.blake2b(memoryview(self._text)[self._from : self._to], digest_size=16).digest()

    @property
    def items(self) -> list[Any]:
        """The objects. Raises ValueError where that is no list of JSON."""
        items = self._whole.get("items") if self._whole is not None else parsed(self._text[self._from : self._to])
        if not isinstance(items, list | None):
            raise ValueError("items that are no list")  # noqa: TRY004 - of the answer, not of an argument
        return items or []

    def _head(self) -> Any:
        try:
            return parsed(self._text[: self._from] + b"[]" + self._text[self._to :])
        except ValueError:
            return None

    def _word(self, key: str) -> str:
        word = self.metadata.get(key)
        return word if isinstance(word, str) else ""

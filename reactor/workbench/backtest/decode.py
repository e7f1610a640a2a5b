"""Reads an answer of /api/v1/query_range series by series while it arrives: it may be larger than memory should be."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator
from typing import Any

TRY_BYTES = 1 << 20
"""Bytes that are gathered before the first try to read a series. Doubled for a series that is larger."""
HEAD_CHARACTERS_MAX = 1 << 16
"""Most characters of the answer before the series begin."""
_RESULT = re.compile(r'"result"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


class NoAnswer(ValueError):
    """The text is no successful range: says what it is."""


class Partial(NoAnswer):
    """The server says that the answer is not all there is."""


async def series(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Give each entry of the result. Raises NoAnswer, also after some were given: then none of them counts."""
    text = _Text(pieces)
    while (found := _RESULT.search(text.buffer, 0, HEAD_CHARACTERS_MAX)) is None:
        if len(text.buffer) > HEAD_CHARACTERS_MAX or not await text.more():
            raise NoAnswer(_failure(text.buffer))
    head, text.buffer = text.buffer[: found.end()], text.buffer[found.end() :]
    at = 0
    while True:
        at = _after(text.buffer, at)
        if at < len(text.buffer) and text.buffer[at] == "]":
            break
        try:
            entry, at = _DECODER.raw_decode(text.buffer, at)
        except ValueError as error:
            text.buffer, at = text.buffer[at:], 0
            if not await text.more():
                raise NoAnswer(f"the answer breaks off: {error}") from error
            continue
        if not isinstance(entry, dict):
            raise NoAnswer("the answer is no list of series")
        yield entry
    while await text.more():
        pass
    _check(head + text.buffer[at:])


class _Text:
    """Text that has arrived and not been read yet."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._decode = codecs.getincrementaldecoder("utf-8")("strict").decode
        self.buffer = ""

    async def more(self) -> bool:
        """Wait for as much again as is there, at least TRY_BYTES. False: that was all."""
        wanted = max(2 * len(self.buffer), TRY_BYTES)
        parts = [self.buffer]
        size = len(self.buffer)
        async for piece in self._pieces:
            parts.append(self._decode(piece))
            size += len(piece)
            if size >= wanted:
                break
        grown = len(parts) > 1
        self.buffer = "".join(parts)
        return grown


def _after(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _failure(text: str) -> str:
    """Error message of Prometheus; the beginning of the text where it is not Prometheus that answers."""
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if isinstance(said, dict) and isinstance(said.get("error"), str):
        return str(said["error"])
    return f"no answer of Prometheus's: {' '.join(text[:200].split())!r}"


def _check(frame: str) -> None:
    """Look at what is around the series: an answer that is cut off or partial must not pass for a whole one."""
    try:
        said = json.loads(frame)
    except ValueError as error:
        raise NoAnswer(f"the answer breaks off: {error}") from error
    if said.get("status") != "success" or said.get("data", {}).get("resultType") != "matrix":
        raise NoAnswer(_failure(frame))
    if said.get("isPartial") is True:
        raise Partial("the server says that the answer is partial")

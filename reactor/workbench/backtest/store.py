"""Answers on disk: those of the past for the next time, the newest only for this run.

A file that was cut off, edited or written by another version is as good as none: its chunk is fetched again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from reactor.runtime.errors import SettingsError
from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.value_runs import ChunkResult, Corrupt, dump_result, load_result

CACHE_BYTES_MAX = 2 << 30
"""Most bytes in the folder; the entries that were not used for longest go first."""
SETTLED_MS = 10 * 60 * 1000
"""A chunk that ended this long ago no longer changes: scrapes, rules and remote writes that come late are in."""


class ResultStore:
    """The answers of this run. Made by `opened`."""

    def __init__(self, kept: Path | None, own: Path, *, now_ms: int) -> None:
        """`kept`: the cache, which outlives the run; None: nothing does. `own`: for this run alone."""
        self._kept = kept
        self._own = own
        self._now_ms = now_ms

    def load(self, url: str, query: str, chunk: Chunk) -> ChunkResult | None:
        """Give an answer that is there; None: it has to be fetched."""
        path = self._path(url, query, chunk)
        try:
            answer = load_result(path.read_bytes())
            os.utime(path)
        except FileNotFoundError:
            return None
        except (Corrupt, OSError, ValueError):
            path.unlink(missing_ok=True)
            return None
        return answer

    def save(self, url: str, query: str, chunk: Chunk, answer: ChunkResult) -> None:
        """Keep an answer. Whole or not at all: two runs may write the same one. Raises SettingsError."""
        path = self._path(url, query, chunk)
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
                file.write(dump_result(answer))
            Path(file.name).replace(path)
        except OSError as error:
            raise SettingsError(f"{path.parent}: cannot keep what was fetched: {error}") from error

    def _path(self, url: str, query: str, chunk: Chunk) -> Path:
        key = json.dumps([url, query, *asdict(chunk).values()]).encode()
        lasting = chunk.whole and chunk.last_ms < self._now_ms - SETTLED_MS
        return (self._kept if self._kept is not None and lasting else self._own) / sha256(key).hexdigest()


@contextmanager
def opened(cache: Path | None, *, now_ms: int) -> Iterator[ResultStore]:
    """Give a store; what is of this run alone is deleted at the end. Raises SettingsError."""
    try:
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True, mode=0o700)  # labels may say more than others should read
    except OSError as error:
        raise SettingsError(f"{cache}: cannot be used as a cache: {error}") from error
    with tempfile.TemporaryDirectory(prefix="reactor-backtest-") as own:
        yield ResultStore(cache, Path(own), now_ms=now_ms)
    if cache is not None:
        _tidy(cache)


def default_folder() -> Path:
    """Default folder for answers."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "alert-reactor" / "backtest"


def _tidy(folder: Path) -> None:
    """Delete what was not used for longest, down to CACHE_BYTES_MAX."""
    entries = []
    for path in folder.iterdir():
        try:
            found = path.stat()
        except FileNotFoundError:
            continue  # another run tidies too
        entries.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= CACHE_BYTES_MAX:
            return
        path.unlink(missing_ok=True)
        total -= size

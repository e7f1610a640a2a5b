"""HTTP by `requests` within bounds: answers of at most so many bytes, and calls that another thread can end.

`requests` bounds neither: its time-out is for each read, so a server that drips holds it without end, and 1.5 MB of
gzip become 1.5 GB.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

_here = threading.local()


class AnswerTooLarge(OSError):
    """An answer has more bytes than are taken."""


class ThreadCall:
    """One call to a server, made in a thread: `with call:` there, `end()` from any other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._ended = False

    def __enter__(self) -> None:
        _here.call = self

    def __exit__(self, *_: object) -> None:
        _here.call = None
        with self._lock:
            self._socket = None  # the next call may use it by now

    def end(self) -> None:
        """Cut its connection: its thread gets an error at once."""
        with self._lock:
            self._ended = True
            self._cut()

    def uses(self, connected: socket.socket) -> None:
        """Take note of the connection that its answer comes by."""
        with self._lock:
            self._socket = connected
            if self._ended:
                self._cut()

    def _cut(self) -> None:
        if self._socket is None:
            return
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            self._socket = None  # it is closed already


class _ConnectionReport:
    """Tells the call of this thread which connection it uses."""

    sock: Any

    def getresponse(self) -> Any:
        call: ThreadCall | None = getattr(_here, "call", None)
        if call is not None and self.sock is not None:
            call.uses(self.sock)
        return super().getresponse()  # type: ignore[misc]  # of the connection that this is mixed into


class _PlainConnection(_ConnectionReport, HTTPConnection):
    pass


class _SecureConnection(_ConnectionReport, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class BoundedAdapter(HTTPAdapter):
    """Adapter to mount on a session: every answer of more bytes, unpacked, raises AnswerTooLarge."""

    def __init__(self, bytes_max: int, **options: Any) -> None:
        self._bytes_max = bytes_max
        super().__init__(**options)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}

    def send(self, *arguments: Any, **options: Any) -> Any:
        response = super().send(*arguments, **options)
        response.raw = _Bounded(response.raw, self._bytes_max)
        return response


class _Bounded:
    """An answer whose bytes are counted as they are read."""

    def __init__(self, raw: Any, bytes_max: int) -> None:
        self._raw = raw
        self._bytes_max = bytes_max

    def stream(self, *arguments: Any, **options: Any) -> Iterator[bytes]:
        read = 0
        for piece in self._raw.stream(*arguments, **options):
            read += len(piece)
            if read > self._bytes_max:
                self._raw.close()
                raise AnswerTooLarge(f"the answer has more than {self._bytes_max} bytes")
            yield piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

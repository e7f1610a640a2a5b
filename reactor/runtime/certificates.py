"""TLS material that is read again when its files change: certificates are renewed while a process runs."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path

log = logging.getLogger(__name__)

FileStamp = tuple[tuple[int, int, int], ...]


class Certificates:
    """A TLS context as its files last were. What cannot be used, a half written pair for instance, changes nothing."""

    def __init__(self, make: Callable[[], ssl.SSLContext], files: Iterable[Path | None]) -> None:
        """Raises what `make` raises: OSError where a file is missing or is no certificate."""
        self._make = make
        self._files = [file for file in files if file is not None]
        self._stamp = self._look()
        self._context = make()
        self._told = ""

    def context(self) -> ssl.SSLContext:
        """Look at the files, and give the context for the next handshake."""
        try:
            stamp = self._look()
            if stamp != self._stamp:
                self._context, self._stamp = self._make(), stamp
                log.info("TLS certificates are read again", extra={"path": str(self._files[0])})
            self._told = ""
        except (OSError, ValueError) as error:
            if str(error) != self._told:
                log.error(  # noqa: TRY400 - the reason says it all
                    "TLS certificates cannot be read again, the last ones count",
                    extra={"path": str(self._files[0]), "reason": str(error)},
                )
            self._told = str(error)
        return self._context

    def _look(self) -> FileStamp:
        stats = [file.stat() for file in self._files]
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats)


def serving(certificates: Certificates) -> ssl.SSLContext:
    """Give a server's context whose every handshake is by the files as they are then."""

    def renew(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = certificates.context()

    context = certificates.context()
    context.sni_callback = renew  # called for clients that name no server too
    return context
